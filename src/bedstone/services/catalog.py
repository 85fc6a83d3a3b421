"""The shape in which every searchable service answers: one search over everything is built on it."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bedstone.search.hits import Mode, Snippet

Span = tuple[int, int]
STEP = " \u203a "  # between the steps of a location: file, section, page


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
    """One hit, from any source. `address` is the product's own page that shows it, with the passage highlighted.

    `id` names the hit for `fetch`: a scheme of the source, what it is called there, and perhaps a part of it, as
    in `docs:guides/retries.md#backoff`. `origin` is where it comes from: a path, a URL or the name of an org. `span` is
    the range of the passage in the text that `fetch` returns for the id without its part. Hits with the same `section`
    stand together; `text` is the whole passage; `why` names what matched where that is not its text; `picture` is the
    address of a picture of its page, `marks` of what to draw over it.
    """

    id: str
    title: str
    location: str
    address: str
    snippet: Snippet
    matched_by: str
    score: float | None = None
    origin: str = ""
    page: int | None = None
    anchor: str | None = None
    span: Span | None = None
    section: str = ""
    text: str = ""
    why: str = ""
    picture: str = ""
    marks: str = ""
    changed_at: datetime | None = None


@dataclass(frozen=True)
class Found:
    """The hits of one source, best first; for each facet how many chunks have each value."""

    items: Sequence[FoundItem]
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    notice: str | None = None  # why hits may be missing


@dataclass(frozen=True)
class Part:
    """A page or section of a text: where it begins, its id, and the page that shows it."""

    start: int
    id: str
    address: str
    page: int | None = None


@dataclass(frozen=True)
class FetchedText:
    """The text that an id names, whole; `next_id` names what comes after it, if the source has an order.

    `start` is where it begins in the text of the id without its part; `parts` are the pages or sections in it. `facts`
    are short and for agents. `is_markdown` says whether marks in the text are markup. `whole_id` is the id without its
    part, if the text is a part.
    """

    id: str
    title: str
    text: str
    address: str
    origin: str = ""
    start: int = 0
    next_id: str | None = None
    parts: Sequence[Part] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    is_markdown: bool = True
    whole_id: str = ""

    def part_at(self, position: int) -> Part | None:
        """Return the part with the character at a position."""
        before = bisect_right([part.start for part in self.parts], position)
        return self.parts[before - 1] if before else None


class Searchable(Protocol):
    """A service that can be searched; its toolset declares what people call the source.

    `schemes` are the beginnings of its ids: `docs` for `docs:guides/retries.md#backoff`.
    """

    schemes: tuple[str, ...]

    async def find(self, request: FindRequest) -> Found:
        """Return the best hits."""

    async def fetch(self, scheme: str, name: str) -> FetchedText:
        """Return the text of an id of one of the schemes, or raise `NotFound`."""
