"""SearchIndex: what every index does, and what its users may rely on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from bedstone.search.hits import Filter, Found

if TYPE_CHECKING:  # whoever searches by words alone never loads numpy
    from bedstone.search.embedder import Vectors

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Weights:
    """How much a signal counts; 1 is as fitted. `phrase_slop` is how many places words of a phrase may be off."""

    nearness: float = 1.0
    meaning: float = 1.0
    phrase_slop: int = 0


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked: words, a vector, or both.

    `vector_weight` is the share of meaning in the fused score where both sides take part. `depth` is how many
    candidates each side names, `limit` how many hits are wanted of them.
    """

    text: str = ""
    vector: "Vectors | None" = None
    vector_weight: float = 0.5
    condition: Filter | None = None
    limit: int = 10
    depth: int = 100
    weights: Weights = field(default_factory=Weights)


class SearchIndex(Protocol):
    """Derived from a store: follows its changes, and may be thrown away at any time.

    Methods block; searches may come from several threads while another one catches up.
    """

    @property
    def applied(self) -> int:
        """Sequence number of the last change that is in the index."""

    @property
    def has_vectors(self) -> bool:
        """Whether a query's vector can be compared with anything."""

    def catch_up(self, progress: Progress | None = None) -> None:
        """Apply what happened in the store since; `progress` is told sequence numbers."""

    def rebuild(self) -> None:
        """Start again from the store."""

    def search(self, query: Query) -> Found:
        """The best candidates of both sides in order; ties in the order of their numbers."""

    def quotes(self, text: str) -> bool:
        """Whether the query is a heading, a name or a stretch of text: words alone find it best."""

    def facet_counts(self, text: str | None, condition: Filter | None) -> Mapping[str, Mapping[str, int]]:
        """How many chunks have each value of each facet, among those that match a word and pass the filter."""

    def frequency(self, term: str) -> int:
        """How many chunks have a term."""

    def similar_words(self, word: str) -> list[str]:
        """Indexed words that are spelt almost like this one, the nearest first."""
