"""all-MiniLM-L6-v2 in int8, on onnxruntime, from the wheel bedstone-minilm."""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

import bedstone_minilm as model
import numpy as np

from bedstone.search.embedder import Span, Vectors

if TYPE_CHECKING:
    from bedstone.settings import EmbeddingSettings

PASSAGE_TOKENS = 200
OVERLAP_TOKENS = 32


class MiniLm:
    """Loads the model on first use; each call runs in one thread, so the caller decides how many cores are busy."""

    provider = "minilm"
    name = model.NAME
    dimensions = model.DIMENSIONS
    languages = frozenset({"en"})
    max_component = 0.35
    min_similarity = 0.3
    is_semantic = True
    batch_size = 16
    workers = os.cpu_count() or 1

    @cached_property
    def fingerprint(self) -> str:
        digest = sha256()
        for path in (model.MODEL, model.TOKENIZER):
            with path.open("rb") as file:
                while part := file.read(2**20):  # 24 MB at once would raise the peak memory of the server
                    digest.update(part)
        digest.update(f"{model.WINDOW} mean single".encode())
        return digest.hexdigest()[:16]

    @classmethod
    def from_settings(cls, settings: "EmbeddingSettings", origin: Mapping[str, Any] | None) -> Self:
        return cls()

    @property
    def origin(self) -> dict[str, Any]:
        return {}

    def split(self, context: str, text: str) -> list[Span]:
        offsets = self._splitter.encode(text, add_special_tokens=False).offsets
        if len(offsets) <= PASSAGE_TOKENS + OVERLAP_TOKENS:
            return [(0, len(text))]
        step = PASSAGE_TOKENS - OVERLAP_TOKENS
        starts = range(0, len(offsets) - OVERLAP_TOKENS, step)
        return [(offsets[start][0], offsets[min(start + PASSAGE_TOKENS, len(offsets)) - 1][1]) for start in starts]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed one text at a time: int8 activations share a scale within a batch, which changes vectors (cosine 0.99).

        It is also the fastest: 29.4 texts per CPU second, against 27.6 in batches of 8 (no padding, smaller tensors).
        """
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        ids = np.array([self._tokenizer.encode(text).ids], np.int64)
        (vectors,) = self._session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        vector: Vectors = vectors[0]
        return vector

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = _tokenizer()
        tokenizer.enable_truncation(model.WINDOW)
        return tokenizer

    @cached_property
    def _splitter(self) -> Any:
        splitter = _tokenizer()
        splitter.no_truncation()
        return splitter

    @cached_property
    def _session(self) -> Any:
        import onnxruntime  # noqa: PLC0415 - a build that changes nothing needs no model

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # Spinning threads on two busy cores cut the speed to a third.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return onnxruntime.InferenceSession(model.MODEL, options, providers=["CPUExecutionProvider"])


def _tokenizer() -> Any:
    from tokenizers import Tokenizer  # noqa: PLC0415

    tokenizer = Tokenizer.from_file(str(model.TOKENIZER))
    tokenizer.no_padding()  # the file pads everything to 128
    return tokenizer
