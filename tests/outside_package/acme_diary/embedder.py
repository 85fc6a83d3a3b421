"""Vectors from the letter trigrams of words: texts with similar spellings are near each other."""

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Self

import numpy as np

from bedstone.search.embedder import Span, Vectors
from bedstone.settings import EmbeddingSettings

WORD = re.compile(r"\w+")
MAX_PASSAGE = 400  # characters


class TrigramEmbedder:
    """Finds misspelt words without a model, in every language."""

    provider = "trigrams"  # the name of the entry point
    name = "trigrams"
    fingerprint = "trigrams-1"  # change it whenever the vectors change
    dimensions = 512
    languages = frozenset({"*"})
    max_component = 1.0
    min_similarity = 0.1
    is_semantic = True
    batch_size = 64
    workers = 1

    @classmethod
    def from_settings(cls, settings: EmbeddingSettings, origin: Mapping[str, Any] | None) -> Self:
        """Return the embedder; it has nothing to set."""
        return cls()

    @property
    def origin(self) -> dict[str, Any]:
        """Return what an index records to find the same model again: here the name suffices."""
        return {}

    def split(self, context: str, text: str) -> list[Span]:
        """Return the spans of a text that get a vector each."""
        starts = range(0, max(len(text), 1), MAX_PASSAGE)
        return [(start, min(start + MAX_PASSAGE, len(text))) for start in starts]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            for trigram in _trigrams(text):
                vectors[row, _hash(trigram) % self.dimensions] += 1
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector of a query."""
        vector: Vectors = self.embed([text])[0]
        return vector


def _trigrams(text: str) -> list[str]:
    words = [f" {word} " for word in WORD.findall(text.lower())]
    return [word[start : start + 3] for word in words for start in range(len(word) - 2)]


def _hash(text: str) -> int:
    # Python's own hash differs from process to process.
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big")
