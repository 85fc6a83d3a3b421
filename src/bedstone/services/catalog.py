"""The shape in which every searchable service answers: one search over everything is built on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bedstone.search.hits import Mode, Snippet


@dataclass(frozen=True)
class FindRequest:
    """What to find. Filters that a source does not know are ignored there."""

    query: str
    mode: Mode = "hybrid"
    filters: Mapping[str, str] = field(default_factory=dict)
    limit: int = 10
    with_facets: bool = False


@dataclass(frozen=True)
class FoundItem:
    """One hit, from any source. `address` is the product's own page that shows it."""

    id: str
    title: str
    location: str
    address: str
    snippet: Snippet
    matched_by: str
    score: float | None = None


@dataclass(frozen=True)
class Found:
    """The hits of one source, best first; for each facet how many chunks have each value."""

    items: Sequence[FoundItem]
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


class Searchable(Protocol):
    """A service that can be searched; its toolset declares what people call the source."""

    async def find(self, request: FindRequest) -> Found:
        """Return the best hits."""
