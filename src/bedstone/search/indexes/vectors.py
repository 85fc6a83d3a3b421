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
class Near:
    """How near a chunk is in meaning, and the stretch of its plain text that is nearest."""

    cosine: float
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Passages:
    """All passages in the order of their chunks: `rowids` are the chunks, `firsts` where each begins."""

    matrix: Vectors
    spans: Numbers
    rowids: Numbers
    firsts: Numbers


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
    ) -> dict[int, Near]:
        """The nearest chunks among the allowed, and how near some others are."""
        passages = self._passages
        if not len(passages.matrix):
            return {}
        scores = passages.matrix @ query
        best = np.maximum.reduceat(scores, passages.firsts)
        eligible = best if allowed is None else np.where(np.isin(passages.rowids, list(allowed)), best, -2.0)
        nearest = np.argpartition(-eligible, min(limit, len(best)) - 1)[:limit]
        chosen = {int(index) for index in nearest if eligible[index] >= -1.0}
        chosen |= {int(index) for index in _positions(passages.rowids, also)}
        return {int(passages.rowids[index]): _near(passages, scores, index) for index in chosen}

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


def _near(passages: _Passages, scores: Vectors, index: int) -> Near:
    first = int(passages.firsts[index])
    last = int(passages.firsts[index + 1]) if index + 1 < len(passages.firsts) else len(scores)
    best = first + int(np.argmax(scores[first:last]))
    start, end = passages.spans[best]
    return Near(float(scores[best]), (int(start), int(end)))
