"""The word vectors among the weights of the model, read in place: no model has to be loaded."""

import json
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bedstone.search.embedder import Vectors

MAX_TOKENS = 256  # 257 bytes fit into 16 bits


class WordTable:
    """Sums of word vectors: bytes that are scaled afterwards."""

    def __init__(self, codes: NDArray[np.uint8], scale: float, zero: int) -> None:
        self._codes = codes
        self._scale = scale
        self._zero = zero

    @classmethod
    def open(cls, weights: Path, place: Path) -> Self:
        """Return the table in a file of weights; `place` says where it is and how it is scaled."""
        words = json.loads(place.read_text(encoding="utf-8"))
        codes = np.memmap(weights, np.uint8, "r", words["offset"], tuple(words["shape"]))
        return cls(codes, words["scale"], words["zero"])

    def sum(self, tokens: NDArray[np.int64]) -> Vectors:
        """Return the sum of the vectors of some tokens, the first ones of a long text."""
        ids = tokens[:MAX_TOKENS]
        sums = np.take(self._codes, ids, 0).sum(0, dtype=np.uint16)
        vector: Vectors = (sums.astype(np.float32) - self._zero * len(ids)) * np.float32(self._scale)
        return vector
