"""The search over everything: every source is asked at once, and calibrated scores make one ranking of the answers."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from bedstone.errors import BedstoneError, InvalidInput, NotFound
from bedstone.search.hits import Mode
from bedstone.services.catalog import FetchedText, FindRequest, Found, FoundItem, Part, Searchable
from bedstone.services.everything.folding import Hit, rank
from bedstone.services.service import Service, ServiceContext, Services

if TYPE_CHECKING:
    from bedstone.search.quotes import QuoteMatch

logger = logging.getLogger(__name__)

MIN_SCORE = 0.05  # one of a thousand right first hits scores less, and two of five that answer nothing
SOURCE_SECONDS = 10.0  # that a source may take; the others answer without it
SPARE_HITS = 5  # asked of each source beyond the limit, because some are merged
MAX_HITS = 50
INTERNAL_ERROR = "Internal error; see the server log."


class UnknownId(NotFound):
    """No source has what an id names."""

    code = "unknown_id"


@dataclass(frozen=True)
class SearchQuery:
    """What to search for; in every source, or in some of them by their labels."""

    query: str
    sources: Sequence[str] = ()
    mode: Mode = "hybrid"
    limit: int = 10
    filters: Mapping[str, str] = field(default_factory=dict)
    with_facets: bool = False


@dataclass(frozen=True)
class SearchOutcome:
    """The best hits of all sources; `counts` says how many each source has, `problems` why one did not answer."""

    hits: Sequence[Hit]
    counts: Mapping[str, int]
    problems: Mapping[str, str]
    notices: Sequence[str]
    facets: Mapping[str, Mapping[str, Mapping[str, int]]]
    milliseconds: float


@dataclass(frozen=True)
class QuoteCheck:
    """Where a source has a quote, or the passage nearest to it; `part` is the page or section it is in."""

    fetched: FetchedText
    match: "QuoteMatch"
    part: Part | None


class Everything(Service):
    """Searches and reads every source that the product serves."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @property
    def sources(self) -> Mapping[str, str]:
        """Return what can be searched: titles by labels."""
        return self._services.sources

    async def search(self, query: SearchQuery) -> SearchOutcome:
        """Return the best hits of every source in one order; a source that fails is named, and hides no other."""
        started = time.perf_counter()
        limit = min(query.limit, MAX_HITS) + SPARE_HITS
        request = FindRequest(query.query, query.mode, query.filters, limit, query.with_facets)
        found: dict[str, Found] = {}
        problems: dict[str, str] = {}

        async def find(label: str) -> None:
            try:
                with anyio.fail_after(SOURCE_SECONDS):
                    found[label] = await (await self._open(label)).find(request)
            except Exception as error:  # noqa: BLE001 - a broken source must not hide the others
                problems[label] = _explain(error)

        labels = [label for label in self.sources if not query.sources or label in query.sources]
        if query.query.strip():
            async with anyio.create_task_group() as tasks:
                for label in labels:
                    tasks.start_soon(find, label)
        hits = rank((label, item) for label in labels if label in found for item in _worth_showing(found[label]))
        return SearchOutcome(
            hits=hits[: query.limit],
            counts={label: sum(hit.source == label for hit in hits) for label in labels if label in found},
            problems=problems,
            notices=list(dict.fromkeys(notice for answer in found.values() if (notice := answer.notice))),
            facets={label: answer.facets for label, answer in found.items() if answer.facets},
            milliseconds=(time.perf_counter() - started) * 1000,
        )

    async def fetch(self, item_id: str) -> FetchedText:
        """Return the text of an id, as a hit or a page of it names it."""
        scheme, separator, name = item_id.strip().partition(":")
        if separator and name:
            for label in self.sources:
                service = await self._open(label)
                if scheme in getattr(service, "schemes", ()):
                    return await service.fetch(scheme, name)
        raise UnknownId(
            f"Unknown id {item_id[:200]!r}. Use an id that search returned, such as {await self._example()}."
        )

    async def check_quote(self, item_id: str, quote: str) -> QuoteCheck:
        """Look for a quote in what an id names; if that is a part of a text, then in the whole text."""
        from bedstone.search.quotes import find_quote  # noqa: PLC0415 - searches do not need it

        if not quote.strip():
            raise InvalidInput("The quote is empty. Pass the words to look for.", parameter="quote")
        fetched = await self.fetch(item_id)
        match = await to_thread.run_sync(find_quote, fetched.text, quote)
        whole_id = fetched.whole_id or item_id.partition("#")[0]  # a path may contain # too
        if not match.is_confirmed and whole_id != item_id:
            whole = await self.fetch(whole_id)
            elsewhere = await to_thread.run_sync(find_quote, whole.text, quote)
            if elsewhere.is_confirmed or elsewhere.distance < match.distance:
                fetched, match = whole, elsewhere
        part = fetched.part_at(match.start) if match.kind != "absent" else None
        shift = fetched.start
        return QuoteCheck(fetched, replace(match, start=match.start + shift, end=match.end + shift), part)

    async def _open(self, label: str) -> Searchable:
        service: Searchable = await self._services[label].open()
        return service

    async def _example(self) -> str:
        for label in self.sources:
            if schemes := getattr(await self._open(label), "schemes", ()):
                return f"{schemes[0]}:…"
        return "docs:…"


def open_everything(context: ServiceContext) -> Everything:
    """Return the search over the sources that are served."""
    assert context.services is not None
    return Everything(context.services)


def _worth_showing(found: Found) -> list[FoundItem]:
    return [item for item in found.items if item.score is None or item.score >= MIN_SCORE]


def _explain(error: Exception) -> str:
    if isinstance(error, BedstoneError):
        return error.message
    if isinstance(error, TimeoutError):
        return f"It did not answer within {SOURCE_SECONDS:.0f} seconds."
    logger.error("A source cannot be searched", exc_info=error, extra={"action": "search_failed"})
    return INTERNAL_ERROR
