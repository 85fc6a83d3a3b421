"""Embedder: what every embedding model does, and what callers can rely on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bedstone.settings import EmbeddingSettings

Vectors = NDArray[np.float32]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Sketch:
    """What is known of a passage without the model: its span, its tokens, and the mean of its word vectors.

    A listing consists of names rather than sentences: code, a table of parameters, an index.
    """

    start: int
    end: int
    tokens: int
    is_listing: bool
    words: Vectors


class Sketcher(Protocol):
    """What an embedder may offer as `sketch`: then a part of a corpus is enough to estimate the rest."""

    def __call__(self, context: str, text: str) -> list[Sketch]:
        """Return the passages of a text, with the spans that `split` returns."""


class Embedder(Protocol):
    """Turns text into unit vectors. Methods block; several threads may call them.

    `provider` is the name in the settings; `origin` is what an index records to find the same model again.
    `fingerprint` changes whenever the vectors would: vectors of different fingerprints are never compared.
    `languages` are those the model was trained on ("*" for all); other text is left to keyword search.
    `max_component` is the largest component of its vectors, by which they are scaled to int8. A text whose cosine is
    below `min_similarity` is unrelated. Vectors of an embedder that is not semantic are stored and counted, but never
    rank a hit. `embed` is fastest with `batch_size` texts in each of `workers` threads.
    """

    @property
    def provider(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def dimensions(self) -> int: ...
    @property
    def languages(self) -> frozenset[str]: ...
    @property
    def max_component(self) -> float: ...
    @property
    def min_similarity(self) -> float: ...
    @property
    def is_semantic(self) -> bool: ...
    @property
    def origin(self) -> dict[str, Any]: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def workers(self) -> int: ...

    def split(self, context: str, text: str) -> list[Span]:
        """Return overlapping spans of a text, each of which fits the model together with its context line."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text."""

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector of a query."""


class EmbedderFactory(Protocol):
    """What an embedder registers under its name: usually its class."""

    def from_settings(self, settings: "EmbeddingSettings", origin: Mapping[str, Any] | None) -> Embedder:
        """Return an embedder for the settings; `origin`, what an index records of its embedder, wins over them.

        Building it is cheap: the model is loaded, or the service called, on first use.
        """
