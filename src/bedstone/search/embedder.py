"""Embedder: the protocol, and what the engine may rely on."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bedstone.settings import EmbeddingSettings

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns text into unit vectors. Methods block; they may be called from several threads.

    `fingerprint` changes whenever the vectors would: vectors of different fingerprints are never compared.
    `languages` are those it understands ("*" for all); other text is left to words. `reach` is the largest component
    its vectors have, by which they are scaled to int8. Where the nearest text is farther than `floor`, nothing is
    related. Vectors without meaning are stored and counted, but never decide an answer. It likes to be given `batch`
    chunks at a time by `workers` threads. `provider` is the name it is chosen by, `origin` what an index must remember
    to ask the same model again.
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
    def reach(self) -> float: ...
    @property
    def floor(self) -> float: ...
    @property
    def has_meaning(self) -> bool: ...
    @property
    def origin(self) -> dict[str, Any]: ...
    @property
    def batch(self) -> int: ...
    @property
    def workers(self) -> int: ...

    def passages(self, context: str, text: str) -> list[tuple[int, int]]:
        """Stretches of a text, overlapping a little, each of which fits the model together with its context line."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector per text."""

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a question."""


class EmbedderFactory(Protocol):
    """What an embedder registers under its name: usually its class."""

    def from_settings(self, settings: "EmbeddingSettings", origin: Mapping[str, Any] | None) -> Embedder:
        """Return an embedder for the settings; `origin`, what an index remembers of its embedder, wins over them.

        Building it is cheap: a model loads, and a service is called, on first use.
        """
