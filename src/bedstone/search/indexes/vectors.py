"""The vector index: every passage in one matrix, scanned exactly."""

import threading
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bedstone.search.embedder import Vectors
from bedstone.store.engine import StoreEngine

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Passages:
    """All passages in the order of their chunks: `rowids` are the chunks, `firsts` where each begins."""

    matrix: Vectors
    spans: Numbers
    rowids: Numbers
    firsts: Numbers


@dataclass(frozen=True, slots=True)
class Nearest:
    """How near chunks are in meaning, and on demand the stretch of each one's plain text that is nearest."""

    cosines: dict[int, float]
    _passages: _Passages
    _scores: Vectors

    def span(self, rowid: int) -> tuple[int, int] | None:
        """The nearest stretch of a chunk."""
        if rowid not in self.cosines:
            return None
        passages = self._passages
        index = int(np.searchsorted(passages.rowids, rowid))
        first = int(passages.firsts[index])
        last = int(passages.firsts[index + 1]) if index + 1 < len(passages.firsts) else len(self._scores)
        start, end = passages.spans[first + int(np.argmax(self._scores[first:last]))]
        return int(start), int(end)


class ExactVectors:
    """Finds chunks by their best passage."""

    def __init__(self, dimensions: int) -> None:
        self._lock = threading.Lock()
        self._dimensions = dimensions
        self._applied = 0
        self._passages = self._arrange([], [], [])

    def __len__(self) -> int:
        return len(self._passages.matrix)

    def catch_up(self, store: StoreEngine) -> None:
        """Read the vectors again if anything happened in the store since."""
        with self._lock:
            last = store.last_change()
            if last is None or last.seq == self._applied:
                return
            found = list(store.passages_between(0, 2**62))
            self._passages = self._arrange(
                [item.passage.chunk for item in found],
                [(item.passage.start, item.passage.end) for item in found],
                [item.vector for item in found],
            )
            self._applied = last.seq

    def search(
        self, query: Vectors, limit: int, allowed: Collection[int] | None, also: Collection[int] = ()
    ) -> Nearest:
        """The nearest chunks among the allowed, and how near some others are."""
        passages = self._passages
        if not len(passages.matrix):
            return Nearest({}, passages, np.empty(0, np.float32))
        scores = passages.matrix @ query
        best = np.maximum.reduceat(scores, passages.firsts)
        eligible = best if allowed is None else np.where(np.isin(passages.rowids, list(allowed)), best, -2.0)
        nearest = np.argpartition(-eligible, min(limit, len(best)) - 1)[:limit]
        places = np.concatenate([nearest[eligible[nearest] >= -1.0], _positions(passages.rowids, also)])
        cosines = dict(zip(passages.rowids[places].tolist(), best[places].tolist(), strict=True))
        return Nearest(cosines, passages, scores)

    def _arrange(self, chunks: list[int], spans: list[tuple[int, int]], vectors: list[bytes]) -> _Passages:
        raw = np.frombuffer(b"".join(vectors), np.float16).reshape(-1, self._dimensions)
        rowids, firsts = np.unique(np.array(chunks, np.int64), return_index=True)
        return _Passages(
            raw.astype(np.float32), np.array(spans, np.int64).reshape(-1, 2), rowids, firsts.astype(np.int64)
        )


def _positions(rowids: Numbers, wanted: Collection[int]) -> Numbers:
    """Where the wanted chunks stand, leaving out those without vectors."""
    numbers = np.fromiter(wanted, np.int64, len(wanted))
    places = np.searchsorted(rowids, numbers)
    inside = places < len(rowids)
    places, numbers = places[inside], numbers[inside]
    found: Numbers = places[rowids[places] == numbers]
    return found
