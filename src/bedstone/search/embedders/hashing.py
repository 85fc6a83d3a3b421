"""Vectors from hashed words: deterministic, not semantic, for tests of the machinery only."""

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bedstone.search.embedder import Span, Vectors

if TYPE_CHECKING:
    from bedstone.settings import EmbeddingSettings

WORD = re.compile(r"\w+")
PASSAGE_CHARACTERS = 800


class HashingEmbedder:
    """Places texts with the same words near each other."""

    provider = name = "hash"
    fingerprint = "hash-1"
    dimensions = 256
    languages = frozenset({"*"})
    max_component = 1.0
    min_similarity = 0.0
    is_semantic = False
    batch_size = 16
    workers = 1

    @classmethod
    def from_settings(cls, settings: "EmbeddingSettings", origin: Mapping[str, Any] | None) -> Self:
        return cls()

    @property
    def origin(self) -> dict[str, Any]:
        return {}

    def split(self, context: str, text: str) -> list[Span]:
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
