"""Write segments: from the store, or from other segments."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bedstone.search.indexes.segments.arrays import ArrayWriter
from bedstone.search.indexes.segments.facets import FacetList, FacetTable, join_tables
from bedstone.search.indexes.segments.segment import (
    Codes,
    Halves,
    Part,
    Segment,
    count_distinct,
    facet_arrays,
    from_arrays,
    shapes_of,
)

WRITTEN_AT_ONCE = 2_000  # passages

ReadVectors = Callable[[int, int], tuple[Codes, Halves]]


def write_segment(
    path: Path | None,
    columns: Sequence[NDArray[np.integer]],
    facets: FacetTable,
    dimensions: int,
    *,
    read_vectors: ReadVectors,
    check: Callable[[int], None],
) -> Segment:
    """Write a segment to a file, or to memory without one: ids, chunks, spans and sets, by chunk and start.

    `check` gets the number of passages that are written, and may raise.
    """
    ids, chunks, spans, sets = columns
    about = {"keys": list(facets.keys), "chunks": count_distinct(chunks)}
    with ArrayWriter(path, shapes_of(len(ids), dimensions, facets), about) as writer:
        writer.write("ids", ids)
        writer.write("chunks", chunks)
        writer.write("spans", spans)
        writer.write("sets", sets)
        writer.write("by_id", np.argsort(ids))
        for name, values in facet_arrays(facets).items():
            writer.write(name, values)
        for start in range(0, len(ids), WRITTEN_AT_ONCE):
            stop = min(start + WRITTEN_AT_ONCE, len(ids))
            codes, halves = read_vectors(start, stop)
            writer.write("codes", codes)
            writer.write("halves", halves)
            check(stop)
        return from_arrays(*writer.finish(), path)


def merge_parts(path: Path | None, parts: Sequence[Part], dimensions: int, check: Callable[[int], None]) -> Segment:
    """Write one segment with the passages of several parts that are not deleted."""
    kept = [part.live_positions for part in parts]
    used = [np.unique(part.segment.sets[at], return_inverse=True) for part, at in zip(parts, kept, strict=True)]
    tables = [_table_of(part.segment).only(sets) for part, (sets, _) in zip(parts, used, strict=True)]
    facets, renumbered = join_tables(tables)
    owners = np.repeat(np.arange(len(parts)), [len(places) for places in kept])
    places = np.concatenate(kept)
    segments = [part.segment for part in parts]
    columns = [
        np.concatenate([segment.ids[at] for segment, at in zip(segments, kept, strict=True)]),
        np.concatenate([segment.chunks[at] for segment, at in zip(segments, kept, strict=True)]),
        np.concatenate([segment.spans[at] for segment, at in zip(segments, kept, strict=True)]),
        np.concatenate([numbers[inverse.reshape(-1)] for numbers, (_, inverse) in zip(renumbered, used, strict=True)]),
    ]
    order = np.lexsort((columns[2][:, 0], columns[1]))
    owners, places = owners[order], places[order]

    def read_vectors(start: int, stop: int) -> tuple[Codes, Halves]:
        codes = np.empty((stop - start, dimensions), np.int8)
        halves = np.empty((stop - start, dimensions), np.float16)
        for number, segment in enumerate(segments):
            mine = np.flatnonzero(owners[start:stop] == number)
            codes[mine] = segment.codes[places[start:stop][mine]]
            halves[mine] = segment.halves[places[start:stop][mine]]
        return codes, halves

    columns = [column[order] for column in columns]
    return write_segment(path, columns, facets, dimensions, read_vectors=read_vectors, check=check)


def _table_of(segment: Segment) -> FacetTable:
    facets = segment.facets
    if isinstance(facets, FacetList):
        return facets.freeze()
    assert isinstance(facets, FacetTable)
    return facets
