"""Graphs of large segments, on usearch: made, extended, kept in files that are mapped into memory."""

import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bedstone.search.indexes.segments.arrays import READ_BYTES, ArraysDamaged
from bedstone.search.indexes.segments.segment import Graph, Numbers, Segment

if TYPE_CHECKING:
    from usearch.index import Index

# Recall@10 is 0.97 at 100,000 where every vector has several near copies, which is hard for a graph; 0.96 with 800.
CONNECTIVITY = 32
EXPANSION_ADD = 256
EXPANSION_SEARCH = 1_200
ADDED_AT_ONCE = 1_000


def make_graph(
    segment: Segment, file: Path | None, old: Graph | None, old_ids: Numbers, check: Callable[[], None]
) -> Graph:
    """Return the graph of a segment: an extended copy of an old one, which holds `old_ids`, or a new one.

    Extending costs as much as what is added. After as many removals as it has passages, a graph is made again.
    """
    index, removed, missing = None, 0, segment.ids
    if old is not None:
        kept = np.isin(old_ids, segment.ids, assume_unique=True)
        removed = old.removed + len(old_ids) - int(np.count_nonzero(kept))
        if removed * 2 <= len(segment):
            index = _copy(old)
            if len(gone := old_ids[~kept]):
                index.remove(gone)
            missing = np.setdiff1d(segment.ids, old_ids, assume_unique=True)
    if index is None:
        index, removed = new_index(segment.codes.shape[1]), 0
    for start in range(0, len(missing), ADDED_AT_ONCE):
        check()
        added = missing[start : start + ADDED_AT_ONCE]
        index.add(added, segment.codes[segment.positions(added)])
    if file is None:
        return Graph(index, None, 0, removed)
    index.save(str(file))
    with file.open("rb") as saved:
        os.fsync(saved.fileno())
    checksum = file_checksum(file)
    return Graph(open_index(file, len(segment), segment.codes.shape[1]), file, checksum, removed)


def open_index(file: Path, count: int, dimensions: int) -> "Index":
    """Map the file of a graph; raise `ArraysDamaged` if it does not fit its segment."""
    try:
        index = usearch_index().restore(str(file), view=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise ArraysDamaged(f"{file.name}: {error}") from error
    if index is None or index.ndim != dimensions or len(index) != count:
        raise ArraysDamaged(f"{file.name}: it does not fit its segment")
    _set_widths(index)
    return index


def new_index(dimensions: int) -> "Index":
    """Return an empty graph."""
    return usearch_index()(
        ndim=dimensions,
        metric="cos",
        dtype="i8",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=EXPANSION_SEARCH,
    )


def file_checksum(file: Path) -> int:
    """Return the checksum of a whole file."""
    checksum = 0
    with file.open("rb") as opened:
        while part := opened.read(READ_BYTES):
            checksum = zlib.crc32(part, checksum)
    return checksum


def usearch_index() -> "type[Index]":
    """Import the library of the graph, which a small index never needs.

    onnxruntime must be imported first: after usearch 2.26 it crashes the process.
    """
    with suppress(ImportError):
        import onnxruntime  # noqa: F401, PLC0415
    from usearch.index import Index  # noqa: PLC0415

    return Index


def _copy(graph: Graph) -> "Index":
    index = usearch_index().restore(str(graph.file)) if graph.file is not None else graph.index.copy()
    assert index is not None
    _set_widths(index)
    return index


def _set_widths(index: "Index") -> None:
    # The file does not record them; mypy takes the properties for read-only.
    index.expansion_add = EXPANSION_ADD  # type: ignore[misc]
    index.expansion_search = EXPANSION_SEARCH  # type: ignore[misc]
