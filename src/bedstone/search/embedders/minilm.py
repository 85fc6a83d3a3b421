"""all-MiniLM-L6-v2 in int8, on onnxruntime, from the wheel bedstone-minilm."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

import bedstone_minilm as model
import numpy as np
from numpy.typing import NDArray

from bedstone.search.embedder import Sketch, Sketcher, Span, Vectors
from bedstone.search.word_table import WordTable

if TYPE_CHECKING:
    from bedstone.settings import EmbeddingSettings

PASSAGE_TOKENS = 200
OVERLAP_TOKENS = 32
# A passage is a listing if too few of its tokens are words of English sentences; bars between columns count against it.
SENTENCE_WORDS = (
    "an the and or of to in on for with is are was were be been by as at from that this these those it its can will "
    "if not you your we our they their which have has had do does may more when also than then there such into only "
    "but no so what how"
)
BAR = "|"
BAR_WEIGHT = -2
MIN_SENTENCE_SHARE = 0.08
MAX_KEPT_TEXTS = 8_000  # with their word vectors, 2 KB each


class MiniLm:
    """Loads the model on first use; each call runs in one thread, so the caller decides how many cores are busy."""

    provider = "minilm"
    name = model.NAME
    dimensions = model.DIMENSIONS
    languages = frozenset({"en"})
    max_component = 0.35
    min_similarity = 0.3
    heading_share = 0.85  # see docs/benchmarks.md
    is_semantic = True
    batch_size = 16
    workers = os.cpu_count() or 1

    @cached_property
    def fingerprint(self) -> str:
        digest = sha256()
        for path in (model.MODEL, model.WEIGHTS, model.TOKENIZER):
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
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        if len(offsets) <= PASSAGE_TOKENS + OVERLAP_TOKENS:
            return [(0, len(text))]
        return [(offsets[start][0], offsets[end - 1][1]) for start, end in _windows(len(offsets))]

    @cached_property
    def sketch(self) -> Sketcher:
        """Describes passages by their word vectors."""
        return _Sketches(self._tokenizer, WordTable.open(model.WEIGHTS, model.WORDS))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed one text at a time: int8 activations share a scale within a batch, which changes vectors (cosine 0.99).

        It is also the fastest: 29.4 texts per CPU second, against 27.6 in batches of 8 (no padding, smaller tensors).
        """
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        encoding = self._tokenizer.encode(text)
        tokens = encoding.ids
        if len(tokens) > model.WINDOW:  # the last one ends every text
            tokens = [*tokens[: model.WINDOW - 1], tokens[-1]]
        ids = np.array([tokens], np.int64)
        (vectors,) = self._session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        vector: Vectors = vectors[0]
        return vector

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer  # noqa: PLC0415

        tokenizer = Tokenizer.from_file(str(model.TOKENIZER))
        tokenizer.no_padding()  # the file pads everything to 128
        tokenizer.no_truncation()
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        import onnxruntime  # noqa: PLC0415 - a build that changes nothing needs no model

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # Spinning threads on two busy cores cut the speed to a third.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return onnxruntime.InferenceSession(model.MODEL, options, providers=["CPUExecutionProvider"])


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of a text: its tokens, how many of them say that it consists of sentences, the sum of its vectors."""

    start: int
    end: int
    tokens: int
    sentence_tokens: int
    sum: Vectors


class _Sketches:
    """Describes the passages of texts."""

    def __init__(self, tokenizer: Any, table: WordTable) -> None:
        self._tokenizer = tokenizer
        self._table = table
        self._weights = np.zeros(tokenizer.get_vocab_size(), np.int64)
        self._weights[[tokenizer.token_to_id(word) for word in SENTENCE_WORDS.split()]] = 1
        self._weights[tokenizer.token_to_id(BAR)] = BAR_WEIGHT
        self._parts = lru_cache(MAX_KEPT_TEXTS)(self._read)  # references repeat themselves

    def __call__(self, context: str, text: str) -> list[Sketch]:
        (above,), parts = self._parts(context, whole=True), self._parts(text, whole=False)
        return [self._sketch(above, part) for part in parts]

    def _read(self, text: str, *, whole: bool) -> list[_Part]:
        """Return the passages of a text by their tokens."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        ids = np.array(encoding.ids, np.int64)
        if whole or len(ids) <= PASSAGE_TOKENS + OVERLAP_TOKENS:
            return [self._part(0, len(text), ids)]
        offsets = encoding.offsets
        return [self._part(offsets[start][0], offsets[end - 1][1], ids[start:end]) for start, end in _windows(len(ids))]

    def _part(self, start: int, end: int, ids: NDArray[np.int64]) -> _Part:
        return _Part(start, end, len(ids), int(self._weights[ids].sum()), self._table.sum(ids))

    def _sketch(self, above: _Part, part: _Part) -> Sketch:
        tokens = above.tokens + part.tokens
        is_listing = above.sentence_tokens + part.sentence_tokens < MIN_SENTENCE_SHARE * tokens
        return Sketch(part.start, part.end, tokens, is_listing, (above.sum + part.sum) / np.float32(max(tokens, 1)))


def _windows(count: int) -> list[Span]:
    """Return overlapping ranges that cover a number of tokens."""
    starts = range(0, count - OVERLAP_TOKENS, PASSAGE_TOKENS - OVERLAP_TOKENS)
    return [(start, min(start + PASSAGE_TOKENS, count)) for start in starts]
