"""What is asked of an index, and what it finds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Mode = Literal["hybrid", "words", "vectors"]


@dataclass(frozen=True, slots=True)
class Is:
    """The facet has one of these values."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Without:
    """The facet is absent."""

    key: str


@dataclass(frozen=True, slots=True)
class AllOf:
    filters: "tuple[Filter, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    filters: "tuple[Filter, ...]"


Filter = Is | Without | AllOf | AnyOf


@lru_cache(maxsize=8)
def _as_set(values: tuple[str, ...]) -> frozenset[str]:
    """A filter may name thousands of documents, and is asked for each of them."""
    return frozenset(values)


def matches(condition: Filter, facets: Mapping[str, str]) -> bool:
    """Whether a chunk with these facets passes."""
    match condition:
        case Is(key, values):
            return facets.get(key) in _as_set(values)
        case Without(key):
            return key not in facets
        case AllOf(filters):
            return all(matches(item, facets) for item in filters)
        case AnyOf(filters):
            return any(matches(item, facets) for item in filters)


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found: the score it is ordered by, and what that is made of."""

    rowid: int
    score: float
    words: float | None = None
    cosine: float | None = None

    def why(self, floor: float) -> str:
        """Which signals speak for it: words, meaning, or both; `floor` is the least that counts as near."""
        near = self.cosine is not None and self.cosine >= floor
        return (
            "words and meaning" if near and self.words is not None else "words" if self.words is not None else "meaning"
        )


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a query: hits in order, of how many candidates, and the signals that made it."""

    hits: list[Hit]
    candidates: int = 0
    signals: tuple[str, ...] = ()
    nearest_span: Callable[[int], tuple[int, int] | None] | None = None

    def passage(self, rowid: int) -> tuple[int, int] | None:
        """The stretch of a chunk's plain text that is nearest in meaning, if vectors took part."""
        return self.nearest_span(rowid) if self.nearest_span else None
