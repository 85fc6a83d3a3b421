"""Estimate the vectors of passages from their words: a regression on passages that the model embedded."""

import base64
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bedstone.search.embedder import Vectors

# Of the mean squared length of the word vectors; between 0.005 and 0.1 the estimates hardly change.
RIDGE = 0.024
# Share of the document's own vector in an estimate: a passage is about what its document is about. Without it, nDCG@10
# falls by 0.004 to 0.02; between 0.5 and 1.0 it hardly changes.
DOCUMENT_SHARE = 0.5
BATCH = 2_000  # passages; adding up a few at a time takes hundreds of times as long


class Estimator:
    """Learns how vectors follow from word vectors, in one corpus.

    In an index, estimates stand beside vectors of the model: both are in the same space.
    """

    def __init__(self, dimensions: int) -> None:
        self.count = 0  # passages that it learned from
        self.learned_before = 0  # passages that a kept map was computed from
        self._learned: list[tuple[Vectors, Vectors]] = []
        self._squares = np.zeros((dimensions + 1, dimensions + 1))
        self._products = np.zeros((dimensions + 1, dimensions))
        self._map: Vectors | None = None

    def learn(self, words: Sequence[Vectors], vectors: Sequence[Vectors]) -> None:
        """Take in passages by their mean word vectors and the vectors of the model."""
        self._learned += zip(words, vectors, strict=True)
        self.count += len(words)
        if len(self._learned) >= BATCH:
            self._add_up()

    def _add_up(self) -> None:
        if self._learned:
            words, vectors = (np.stack(column) for column in zip(*self._learned, strict=True))
            rows = _with_constant(words)
            self._squares += _times(rows.T, rows)
            self._products += _times(rows.T, vectors)
            self._learned = []

    def fit(self) -> None:
        """Compute the map from all that was learned."""
        self._add_up()
        size = len(self._squares) - 1
        weight = RIDGE * np.trace(self._squares[:size, :size]) / size
        solved = np.linalg.solve(self._squares + weight * np.eye(size + 1), self._products)
        self._map = solved.astype(np.float32)

    @property
    def is_fitted(self) -> bool:
        """Whether it can estimate."""
        return self._map is not None

    def estimate(self, words: Vectors, documents: Vectors) -> Vectors:
        """Return unit vectors for passages, given the mean vector of each one's document (or zeros)."""
        assert self._map is not None
        return to_units(to_units(_times(_with_constant(words), self._map)) + DOCUMENT_SHARE * to_units(documents))

    def to_text(self) -> str:
        """Return the map as text, to keep it in a store."""
        assert self._map is not None
        return f"{self.count} {base64.b64encode(self._map.astype(np.float16).tobytes()).decode()}"

    @classmethod
    def from_text(cls, text: str, dimensions: int) -> "Self | None":
        """Return an estimator with a kept map; None if it is for other vectors."""
        if not text:
            return None
        count, _, code = text.partition(" ")
        values = np.frombuffer(base64.b64decode(code), np.float16)
        if len(values) != (dimensions + 1) * dimensions:
            return None
        found = cls(dimensions)
        found._map = values.reshape(dimensions + 1, dimensions).astype(np.float32)
        found.learned_before = int(count)
        return found


def to_units(vectors: Vectors) -> Vectors:
    """Return vectors of length 1; zeros stay zeros."""
    units: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return units


def _with_constant(words: Vectors) -> Vectors:
    return np.concatenate([words, np.ones((len(words), 1), np.float32)], axis=1)


def _times(left: Vectors, right: Vectors) -> NDArray[np.float32]:
    product: NDArray[np.float32] = left @ right
    return product
