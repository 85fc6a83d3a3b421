"""A segment: passages by chunk and start that never change, and what search asks of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bedstone.search.filters import Filter
from bedstone.search.indexes.segments.arrays import Array, Arrays, ArraysDamaged, map_arrays
from bedstone.search.indexes.segments.facets import FacetList, FacetSets, FacetTable, Mask, Vocabulary

if TYPE_CHECKING:
    from usearch.index import Index

Codes = NDArray[np.int8]
Halves = NDArray[np.float16]
Numbers = NDArray[np.int64]
Range = tuple[int, int]

COLUMNS = ("ids", "chunks", "spans", "sets", "by_id")


@dataclass(frozen=True, eq=False)
class Graph:
    """Finds the nearest of a large segment; the keys are the ids of its passages.

    `removed` counts the passages that were taken out of it since it was built, and make it worse.
    """

    index: "Index"
    file: Path | None = None
    checksum: int = 0
    removed: int = 0


@dataclass(frozen=True, eq=False)
class Segment:
    """Passages by chunk and start. `file` is where they are kept; the tail, and one in memory, has none."""

    ids: Numbers
    chunks: Numbers
    spans: NDArray[np.int32]
    sets: NDArray[np.int32]  # which set of facets each passage has
    codes: Codes
    halves: Halves
    facets: FacetSets
    by_id: NDArray[np.int32] | None = None  # positions in the order of the ids
    chunk_count: int = 0
    file: Path | None = None
    graph: Graph | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def _order(self) -> NDArray[np.int32]:
        return self.by_id if self.by_id is not None else np.argsort(self.ids).astype(np.int32)

    @cached_property
    def _ids_in_order(self) -> Numbers:
        return self.ids[self._order]

    def positions(self, ids: Numbers) -> Numbers:
        """Return the positions of those passages that are here."""
        if not len(self):
            return np.empty(0, np.int64)
        order = self._order
        found = order[np.minimum(np.searchsorted(self._ids_in_order, ids), len(order) - 1)]
        positions: Numbers = found[self.ids[found] == ids].astype(np.int64)
        return positions

    def passages_of(self, chunks: Numbers) -> Numbers:
        """Return the positions of the passages of chunks, whose numbers are in order."""
        if not len(self):
            return np.empty(0, np.int64)
        starts = self.chunks.searchsorted(chunks)
        if len(self) == self.chunk_count:  # one each
            found: Numbers = starts[self.chunks[np.minimum(starts, len(self) - 1)] == chunks]
            return found
        counts = self.chunks.searchsorted(chunks, "right") - starts
        ends = counts.cumsum()
        return np.repeat(starts + counts - ends, counts) + np.arange(ends[-1] if len(ends) else 0)

    def passing(self, filter: Filter) -> Mask:
        """Return which passages pass a filter."""
        passes: Mask = self.facets.passing(filter)[self.sets]
        return passes


@dataclass(frozen=True, eq=False)
class Part:
    """A segment, and which of its passages are deleted."""

    segment: Segment
    deleted: Mask | None = None
    deleted_count: int = 0

    @property
    def live(self) -> int:
        """Number of passages that are not deleted."""
        return len(self.segment) - self.deleted_count

    def without(self, positions: Iterable[NDArray[Any] | slice]) -> "Part":
        """Return the part with more passages deleted."""
        deleted = np.zeros(len(self.segment), np.bool_) if self.deleted is None else self.deleted.copy()
        for places in positions:
            deleted[places] = True
        return Part(self.segment, deleted, int(np.count_nonzero(deleted)))

    def without_chunks(self, ranges: Sequence[Range]) -> "Part":
        """Return the part without the passages of chunks in ranges."""
        chunks = self.segment.chunks
        places = [slice(*np.searchsorted(chunks, [first, last + 1]).tolist()) for first, last in ranges]
        places = [place for place in places if place.start < place.stop]
        return self.without(places) if places else self

    def live_between(self, first: int, last: int) -> Numbers:
        """Return the positions of the passages of chunks in a range."""
        start, stop = np.searchsorted(self.segment.chunks, [first, last + 1]).tolist()
        places = np.arange(start, stop)
        return places if self.deleted is None else places[~self.deleted[start:stop]]

    @cached_property
    def live_positions(self) -> Numbers:
        """The positions of the passages that are not deleted."""
        return np.arange(len(self.segment)) if self.deleted is None else np.flatnonzero(~self.deleted)


def shapes_of(count: int, dimensions: int, facets: FacetTable) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the types and shapes of the arrays of a segment."""
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "ids": ("<i8", (count,)),
        "chunks": ("<i8", (count,)),
        "spans": ("<i4", (count, 2)),
        "sets": ("<i4", (count,)),
        "by_id": ("<i4", (count,)),
        "numbers": ("<i4", tuple(facets.numbers.shape)),
    }
    for row, vocabulary in enumerate(facets.vocabularies):
        shapes[f"offsets-{row}"] = ("<i8", (len(vocabulary.offsets),))
        shapes[f"letters-{row}"] = ("|u1", (len(vocabulary.letters),))
    return shapes | {"codes": ("|i1", (count, dimensions)), "halves": ("<f2", (count, dimensions))}


def facet_arrays(facets: FacetTable) -> dict[str, Array]:
    """Return the arrays that hold the facets of a segment."""
    arrays: dict[str, Array] = {"numbers": facets.numbers}
    for row, vocabulary in enumerate(facets.vocabularies):
        arrays |= {f"offsets-{row}": vocabulary.offsets, f"letters-{row}": vocabulary.letters}
    return arrays


def from_arrays(arrays: Arrays, about: Mapping[str, Any], file: Path | None) -> Segment:
    """Return the segment that arrays hold."""
    keys = about["keys"]
    vocabularies = [Vocabulary(arrays[f"offsets-{row}"], arrays[f"letters-{row}"]) for row in range(len(keys))]
    return Segment(
        ids=arrays["ids"],
        chunks=arrays["chunks"],
        spans=arrays["spans"],
        sets=arrays["sets"],
        codes=arrays["codes"],
        halves=arrays["halves"],
        facets=FacetTable(keys, vocabularies, arrays["numbers"]),
        by_id=arrays["by_id"],
        chunk_count=about["chunks"],
        file=file,
    )


def open_segment(path: Path) -> Segment:
    """Map the file of a segment; raise `ArraysDamaged` if it is cut off, or its columns are garbled."""
    arrays, about = map_arrays(path, COLUMNS)
    try:
        return from_arrays(arrays, about, path)
    except (LookupError, TypeError) as error:
        raise ArraysDamaged(f"{path.name}: {error}") from error


@dataclass(frozen=True, eq=False)
class Rows:
    """Passages with their vectors, to append to a tail: by chunk and start."""

    ids: Numbers
    chunks: Numbers
    spans: NDArray[np.int32]
    sets: NDArray[np.int32]
    codes: Codes
    halves: Halves

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def columns(self) -> tuple[Array, ...]:
        """All arrays."""
        return self.ids, self.chunks, self.spans, self.sets, self.codes, self.halves


@dataclass(frozen=True, eq=False)
class Tail:
    """Passages that are in no segment yet. What was appended once stays where it is, so that searches may go on."""

    rows: Rows  # by chunk and start
    facets: FacetList = field(default_factory=FacetList)
    chunk_count: int = 0
    _room: Rows | None = None  # begins with the rows

    @classmethod
    def empty(cls, dimensions: int) -> "Tail":
        return cls(no_rows(dimensions))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def segment(self) -> Segment:
        """The passages as a segment, which later ones do not change."""
        return Segment(**vars(self.rows), facets=self.facets, chunk_count=self.chunk_count)

    def append(self, rows: Rows) -> "Tail":
        """Return the tail with more passages."""
        if len(self) and rows.chunks[0] <= self.rows.chunks[-1]:
            return self._sort([np.concatenate(pair) for pair in zip(self.rows.columns, rows.columns, strict=True)])
        room, count = self._room or self.rows, len(self) + len(rows)
        if count > len(room):
            room = Rows(*(_grown(values, len(self), 2 * count) for values in self.rows.columns))
        for values, added in zip(room.columns, rows.columns, strict=True):
            values[len(self) : count] = added
        every = Rows(*(values[:count] for values in room.columns))
        return Tail(every, self.facets, self.chunk_count + count_distinct(rows.chunks), room)

    def only(self, keep: Mask) -> "Tail":
        """Return the tail with some of its passages."""
        return self._sort([values[keep] for values in self.rows.columns])

    def _sort(self, columns: Sequence[Array]) -> "Tail":
        order = np.lexsort((columns[2][:, 0], columns[1]))
        rows = Rows(*(values[order] for values in columns))
        return Tail(rows, self.facets, count_distinct(rows.chunks))


def no_rows(dimensions: int) -> Rows:
    """Return no passages."""
    return Rows(
        np.empty(0, np.int64),
        np.empty(0, np.int64),
        np.empty((0, 2), np.int32),
        np.empty(0, np.int32),
        np.empty((0, dimensions), np.int8),
        np.empty((0, dimensions), np.float16),
    )


def count_distinct(in_order: NDArray[Any]) -> int:
    """Return how many different numbers there are."""
    return int(np.count_nonzero(in_order[1:] != in_order[:-1])) + bool(len(in_order))


def _grown(buffer: Array, count: int, capacity: int) -> Array:
    grown = np.empty((capacity, *buffer.shape[1:]), buffer.dtype)
    grown[:count] = buffer[:count]
    return grown


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All passages at one moment: the parts, and where each begins when their passages are numbered on."""

    parts: Sequence[Part]
    starts: Sequence[int] = field(init=False)
    live: int = field(init=False)
    chunk_count: int = field(init=False)

    def __post_init__(self) -> None:
        lengths = [len(part.segment) for part in self.parts]
        starts = [sum(lengths[:at]) for at in range(len(lengths) + 1)]
        object.__setattr__(self, "starts", starts)
        object.__setattr__(self, "live", sum(part.live for part in self.parts))
        object.__setattr__(self, "chunk_count", sum(part.segment.chunk_count for part in self.parts))
