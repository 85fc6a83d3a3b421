"""Vectors from hashed words: deterministic, without meaning, for tests of the machinery only."""

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bedstone.search.embedder import Vectors

if TYPE_CHECKING:
    from bedstone.settings import EmbeddingSettings

WORD = re.compile(r"\w+")
PASSAGE_CHARACTERS = 800


class HashingEmbedder:
    """Texts with the same words are near each other, and that is all."""

    provider = name = "hash"
    fingerprint = "hash-1"
    dimensions = 256
    languages = frozenset({"*"})
    reach = 1.0
    floor = 0.0
    has_meaning = False
    batch, workers = 16, 1

    @classmethod
    def from_settings(cls, settings: "EmbeddingSettings", origin: Mapping[str, Any] | None) -> Self:
        return cls()

    @property
    def origin(self) -> dict[str, Any]:
        return {}

    def passages(self, context: str, text: str) -> list[tuple[int, int]]:
        step = PASSAGE_CHARACTERS
        return [(start, min(start + step, len(text))) for start in range(0, max(len(text), 1), step)]

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            for word in WORD.findall(text.lower()):
                number = int.from_bytes(blake2b(word.encode(), digest_size=4).digest(), "big")
                vectors[row, number % self.dimensions] += 1.0 if number & 0x10000 else -1.0
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed([text])[0]
        return vector
