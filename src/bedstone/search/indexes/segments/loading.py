"""Read passages and their vectors from a store."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bedstone.records import Change, StoredPassage
from bedstone.search.embedder import Vectors
from bedstone.search.indexes.segments.facets import FacetList
from bedstone.search.indexes.segments.segment import Codes, Halves, Numbers, Range
from bedstone.store.engine import Store

ALL_CHUNKS = (0, 2**62)


@dataclass(frozen=True, slots=True)
class Changed:
    """Chunks whose passages are gone, and chunks whose passages must be read."""

    gone: Sequence[Range]
    read: Sequence[Range]


@dataclass(frozen=True, slots=True)
class VectorReader:
    """Reads vectors of one model, and scales them to int8 by the largest component that they are expected to have."""

    store: Store
    dimensions: int
    scale: float

    def read(self, ids: Numbers) -> tuple[Codes, Halves]:
        """Return the vectors of passages."""
        found = self.store.vectors(ids.tolist())
        # One of a passage deleted in the meantime, or another model's, is far away from everything; a change follows.
        length = 2 * self.dimensions
        missing = bytes(length)
        parts = [found.get(number, missing) for number in ids.tolist()]
        parts = [part if len(part) == length else missing for part in parts]
        halves = np.frombuffer(b"".join(parts), np.float16).reshape(-1, self.dimensions)
        return self.quantize(halves.astype(np.float32)), halves

    def quantize(self, vectors: Vectors) -> Codes:
        """Return the codes of vectors."""
        codes: Codes = np.clip(np.rint(vectors * self.scale), -127, 127).astype(np.int8)
        return codes


def changes_since(store: Store, seq: int, last: int) -> list[Change] | None:
    """Return the changes since one; None if the list of changes no longer reaches back far enough."""
    changes: list[Change] = []
    while seq < last:
        batch = store.changes(seq)
        if not batch or batch[0].seq != seq + 1:
            return None
        changes += batch
        seq = batch[-1].seq
    return changes


def summarize(changes: Iterable[Change]) -> Changed:
    """Return what changes come to; every range once."""
    changes = list(changes)
    gone = [(change.gone_first, change.gone_last) for change in changes]
    read = [(change.first, change.last) for change in changes if change.kind == "vectors"]
    return Changed(_join(gone), _join(read))


def _join(ranges: Iterable[Range]) -> list[Range]:
    joined: list[Range] = []
    for first, last in sorted(item for item in ranges if item[0] <= item[1]):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


@dataclass(frozen=True, eq=False)
class Found:
    """Passages without their vectors, by chunk and start; `sets` are numbers of sets of facets."""

    ids: Numbers
    chunks: Numbers
    spans: NDArray[np.int32]
    sets: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.ids)

    def only(self, keep: NDArray[np.bool_]) -> "Found":
        """Return some of the passages."""
        return Found(self.ids[keep], self.chunks[keep], self.spans[keep], self.sets[keep])

    @property
    def columns(self) -> tuple[NDArray[np.integer], ...]:
        return self.ids, self.chunks, self.spans, self.sets


def collect(passages: Iterable[StoredPassage], facets: FacetList) -> Found:
    """Collect passages of a store, of which many are never held as objects."""
    columns = array("q")
    for item in passages:
        passage = item.passage
        columns.extend((item.id, passage.chunk_rowid, passage.start, passage.end, facets.number(item.facets)))
    rows = np.array(columns, np.int64).reshape(-1, 5)
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1]))]
    return Found(
        np.ascontiguousarray(rows[:, 0]),
        np.ascontiguousarray(rows[:, 1]),
        rows[:, 2:4].astype(np.int32),
        rows[:, 4].astype(np.int32),
    )
