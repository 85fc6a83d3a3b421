"""One search over everything: documentation, documents, articles; keyword, semantic or hybrid."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

import anyio
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.search.hits import MODES_BY_NAME, Mode, Snippet
from bedstone.server.call_log import log_call
from bedstone.services.catalog import FindRequest, Found, FoundItem, Searchable
from bedstone.web.frame import Pages, error_message
from bedstone.web.paging import parse_page_number

MODES: dict[Mode, str] = {"keyword": "Keyword", "semantic": "Semantic", "hybrid": "Hybrid"}
UNSCORED = 0.5  # a source without scores ranks behind probable answers, before improbable ones
DEFAULT_HITS = 10
MAX_HITS = 50
MAX_QUERY_CHARACTERS = 500
MIN_SCORE = 0.05  # one of a thousand right first hits scores less, and two of five that answer nothing

Facets = dict[str, list[tuple[str, int, str]]]


@dataclass(frozen=True)
class Hit:
    """One hit as the page shows it."""

    item: FoundItem
    text: Markup


@dataclass(frozen=True)
class Group:
    """The hits of one source, or its error; facets with counts, and links that filter by them."""

    title: str
    hits: Sequence[Hit]
    message: str | None = None
    facets: Facets = field(default_factory=dict)
    more: str | None = None  # the address of further hits

    @property
    def best(self) -> float:
        """Return the score of the best hit; sources without any come last."""
        scores = (UNSCORED if hit.item.score is None else hit.item.score for hit in self.hits)
        return max(scores, default=-1.0)


@dataclass(frozen=True)
class SearchParams:
    """What the address asks for."""

    query: str
    source: str = ""
    mode: Mode = "hybrid"
    filters: Mapping[str, str] = field(default_factory=dict)
    limit: int = DEFAULT_HITS
    with_facets: bool = True

    @classmethod
    def of(cls, request: Request) -> "SearchParams":
        given = request.query_params
        mode = MODES_BY_NAME.get(given.get("mode", ""), "hybrid")
        filters = {key[2:]: value for key, value in given.items() if key.startswith("f.")}
        query = given.get("q", "").strip()[:MAX_QUERY_CHARACTERS]
        limit = min(parse_page_number(given.get("most", str(DEFAULT_HITS)), DEFAULT_HITS), MAX_HITS)
        return cls(query, given.get("in", ""), mode, filters, limit)

    @property
    def request(self) -> FindRequest:
        return FindRequest(self.query, self.mode, self.filters, self.limit, self.with_facets)

    def address(self, **changes: str) -> str:
        """Return the address of this search with changes."""
        parts = {"q": self.query, "in": self.source, "mode": self.mode} | {f"f.{k}": v for k, v in self.filters.items()}
        return f"/search?{urlencode({key: value for key, value in (parts | changes).items() if value})}"

    def more(self, source: str, count: int) -> str | None:
        """Return the address of further hits of one source, if there may be any."""
        if count < self.limit or self.limit >= MAX_HITS:
            return None
        return self.address(**{"in": source, "most": str(min(self.limit + 2 * DEFAULT_HITS, MAX_HITS))})


def search_routes(pages: Pages) -> list[BaseRoute]:
    """Return /search, the results a script asks for while the user types, and the modes side by side."""

    async def show_search(request: Request) -> Response:
        params = SearchParams.of(request)
        groups = await find_everywhere(pages, params)
        return pages.render(
            request, "search.html", page="search", params=params, groups=groups, sources=pages.sources, modes=MODES
        )

    async def show_results(request: Request) -> Response:
        params = SearchParams.of(request)
        return pages.render_fragment("search_results.html", params=params, groups=await find_everywhere(pages, params))

    async def compare_modes(request: Request) -> Response:
        params = SearchParams.of(request)
        columns = [
            (title, await find_everywhere(pages, replace(params, mode=mode, with_facets=False)))
            for mode, title in MODES.items()
        ]
        return pages.render(request, "compare.html", page="search", params=params, columns=columns)

    routes = {"/search": show_search, "/search/results": show_results, "/search/beside": compare_modes}
    return [Route(path, endpoint) for path, endpoint in routes.items()]


async def find_everywhere(pages: Pages, params: SearchParams) -> list[Group]:
    """Search every source at once; the source with the best hit comes first."""
    if not params.query:
        return []
    chosen = {params.source: pages.sources[params.source]} if params.source in pages.sources else pages.sources
    groups: dict[str, Group] = {}
    started = time.perf_counter()

    async def find(label: str, title: str) -> None:
        try:
            service: Searchable = await pages.services[label].open()
            groups[label] = _group(label, title, params, await service.find(params.request))
        except Exception as error:  # noqa: BLE001 - a broken source must not hide the others
            groups[label] = Group(title, [], error_message(error))

    async with anyio.create_task_group() as tasks:
        for label, title in chosen.items():
            tasks.start_soon(find, label, title)
    outcome = {"outcome": "ok", "results": sum(len(group.hits) for group in groups.values())}
    log_call("page", "search", outcome, (time.perf_counter() - started) * 1000)
    return sorted((groups[label] for label in chosen), key=lambda group: -group.best)


def _group(label: str, title: str, params: SearchParams, found: Found) -> Group:
    items = [item for item in found.items if item.score is None or item.score >= MIN_SCORE]
    hits = [Hit(item, _highlight(item.snippet)) for item in items]
    return Group(title, hits, facets=_facets(params, found.facets), more=params.more(label, len(hits)))


def _facets(params: SearchParams, counts: Mapping[str, Mapping[str, int]]) -> Facets:
    """Return the values of each facet with their counts, and links that choose a value or clear it."""
    facets: Facets = {}
    for key, values in counts.items():
        chosen = {params.filters[key]: 0} if key in params.filters else {}  # so that it can be cleared
        ordered = sorted((chosen | dict(values)).items(), key=lambda item: (-item[1], item[0]))
        if ordered:
            facets[key] = [
                (value, count, params.address(**{f"f.{key}": "" if params.filters.get(key) == value else value}))
                for value, count in ordered
            ]
    return facets


def _highlight(snippet: Snippet) -> Markup:
    """Return a snippet with the words of the query marked and everything else escaped."""
    marked, last = Markup(""), 0
    for start, end in snippet.highlights:
        marked += escape(snippet.text[last:start]) + Markup("<mark>{}</mark>").format(snippet.text[start:end])
        last = end
    return marked + escape(snippet.text[last:])
