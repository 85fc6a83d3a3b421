"""Search over everything: one ranked list, the chosen result in its source beside it, the three modes compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.search.hits import MODES_BY_NAME, Mode, Snippet
from bedstone.server.call_log import log_call
from bedstone.services.catalog import STEP
from bedstone.web.formatting import highlight
from bedstone.web.frame import Pages
from bedstone.web.paging import parse_page_number
from bedstone.web.search.comparison import compare
from bedstone.web.search.preview import render_preview

if TYPE_CHECKING:
    from bedstone.services.everything.folding import Hit
    from bedstone.services.everything.service import Everything, SearchOutcome

MODES: Mapping[Mode, str] = {"keyword": "Keyword", "semantic": "Semantic", "hybrid": "Hybrid"}
DEFAULT_HITS = 10
MAX_HITS = 50
MAX_QUERY_CHARACTERS = 500
COMPARED_HITS = 6
MAX_NAMED_WORDS = 4
# What people read for the reasons that the schema gives.
SCHEMA_REASONS = {
    "name": "its name",
    "label": "its label",
    "plural label": "its label",
    "object": "the object",
    "help text": "its help text",
    "picklist value": "a value of the field",
}

Choice = tuple[str, int, str]


@dataclass(frozen=True)
class SearchParams:
    """What the address asks for; `at` is the number of the chosen result, from 1."""

    query: str
    source: str = ""
    mode: Mode = "hybrid"
    filters: Mapping[str, str] = field(default_factory=dict)
    limit: int = DEFAULT_HITS
    at: int = 1

    @classmethod
    def of(cls, request: Request) -> "SearchParams":
        given = request.query_params
        mode = MODES_BY_NAME.get(given.get("mode", ""), "hybrid")
        filters = {key[2:]: value for key, value in given.items() if key.startswith("f.")}
        query = given.get("q", "").strip()[:MAX_QUERY_CHARACTERS]
        limit = min(parse_page_number(given.get("most", str(DEFAULT_HITS)), DEFAULT_HITS), MAX_HITS)
        return cls(query, given.get("in", ""), mode, filters, limit, parse_page_number(given.get("at", "1")))

    def address(self, path: str = "/search", **changes: str) -> str:
        """Return the address of this search with changes."""
        mode = "" if self.mode == "hybrid" else self.mode
        most = "" if self.limit == DEFAULT_HITS else str(self.limit)
        parts = {"q": self.query, "in": self.source, "mode": mode, "most": most}
        parts |= {f"f.{key}": value for key, value in self.filters.items()}
        chosen = {key: value for key, value in (parts | changes).items() if value}
        return f"{path}?{urlencode(chosen)}" if chosen else path


@dataclass(frozen=True)
class Result:
    """One hit as the page shows it."""

    hit: "Hit"
    icon: str
    title: Markup
    text: Markup
    why: str

    @property
    def steps(self) -> Sequence[str]:
        """Return where the hit stands, from the source down."""
        return self.hit.item.location.split(STEP)


@dataclass(frozen=True)
class ResultPage:
    """The results of a search, and how to narrow or widen it."""

    results: Sequence[Result]
    chips: Sequence[Choice]
    icons: Mapping[str, str]
    facets: Mapping[str, Sequence[Choice]]
    problems: Mapping[str, str]
    notices: Sequence[str]
    total: int
    milliseconds: float

    @property
    def first_weak(self) -> int:
        """Return the number of results before the first weak one."""
        return next((at for at, item in enumerate(self.results) if item.hit.band == "weak"), len(self.results))

    @property
    def weak_count(self) -> int:
        return len(self.results) - self.first_weak


def search_routes(pages: Pages) -> list[BaseRoute]:
    """Return /search and its parts."""
    return _SearchPages(pages).routes()


class _SearchPages:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._icons = {
            label: spec.navigation[0].icon
            for label, spec in pages.specs.items()
            if spec.navigation and spec.source_title
        }

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/search", self.show_search),
            Route("/search/results", self.show_results),
            Route("/search/preview", self.show_preview),
            Route("/search/beside", self.compare_modes),
        ]

    async def show_search(self, request: Request) -> Response:
        params = SearchParams.of(request)
        return self._pages.render(request, "search.html", page="search", **await self._context(params))

    async def show_results(self, request: Request) -> Response:
        """Return the results alone, for the script that searches while the user types."""
        return self._pages.render_fragment("search_results.html", **await self._context(SearchParams.of(request)))

    async def show_preview(self, request: Request) -> Response:
        """Return one result in its source, for the script that follows the arrow keys."""
        params = SearchParams.of(request)
        found = await self._find(params)
        chosen = self._choose(found.results, params)
        preview = await render_preview(self._pages, chosen.hit, params.query) if chosen is not None else None
        return self._pages.render_fragment("search_preview.html", params=params, chosen=chosen, preview=preview)

    async def compare_modes(self, request: Request) -> Response:
        params = replace(SearchParams.of(request), limit=COMPARED_HITS)
        everything: Everything = await self._pages.services["everything"].open()
        outcomes = {mode: await self._ask(everything, replace(params, mode=mode)) for mode in MODES}
        comparison = compare(outcomes, self._icons)
        return self._pages.render(request, "compare.html", page="search", params=params, comparison=comparison)

    async def _context(self, params: SearchParams) -> dict[str, Any]:
        found = await self._find(params)
        chosen = self._choose(found.results, params)
        preview = await render_preview(self._pages, chosen.hit, params.query) if chosen is not None else None
        summaries = self._pages.menu.summaries.values()
        is_empty = bool(summaries) and all(summary.is_empty for summary in summaries)
        return {
            "params": params,
            "found": found,
            "modes": MODES,
            "chosen": chosen,
            "preview": preview,
            "is_empty": is_empty,
        }

    @staticmethod
    def _choose(results: Sequence[Result], params: SearchParams) -> Result | None:
        return results[min(params.at, len(results)) - 1] if results else None

    async def _find(self, params: SearchParams) -> ResultPage:
        everything: Everything = await self._pages.services["everything"].open()
        outcome = await self._ask(everything, params)
        known = params.source if params.source in everything.sources else ""
        counts = dict(outcome.counts)
        if others := [label for label in everything.sources if known and label != known]:  # their chips have counts
            counts |= (await self._ask(everything, replace(params, filters={}), others)).counts
        return ResultPage(
            results=self._results(outcome.hits, params.query),
            chips=_chips(params, everything.sources, counts),
            icons=self._icons,
            facets=_facets(params, outcome.facets.get(known, {})),
            problems={everything.sources[label]: text for label, text in outcome.problems.items()},
            notices=outcome.notices,
            total=sum(outcome.counts.values()),
            milliseconds=outcome.milliseconds,
        )

    def _results(self, hits: Sequence["Hit"], query: str) -> list[Result]:
        from bedstone.search.matching import Matcher  # noqa: PLC0415 - with the engine

        matcher = Matcher(query)
        return [
            Result(
                hit,
                self._icons.get(hit.source, "file"),
                highlight(
                    Snippet(hit.item.title, tuple((start, end) for start, end, _ in matcher.find(hit.item.title)))
                ),
                highlight(without_title(hit.item.snippet, hit.item.title)),
                why(hit),
            )
            for hit in hits
        ]

    async def _ask(self, everything: "Everything", params: SearchParams, others: Sequence[str] = ()) -> "SearchOutcome":
        """Search the source that the address names, or all; or others than that."""
        from bedstone.services.everything.service import SearchQuery  # noqa: PLC0415 - loads the engine

        chosen = (params.source,) if params.source in everything.sources else ()
        has_facets = bool(chosen) and not others
        query = SearchQuery(
            params.query, others or chosen, params.mode, params.limit, params.filters, with_facets=has_facets
        )
        outcome = await everything.search(query)
        log_call("page", "search", {"outcome": "ok", "results": len(outcome.hits)}, outcome.milliseconds)
        return outcome


def _chips(params: SearchParams, sources: Mapping[str, str], counts: Mapping[str, int]) -> list[Choice]:
    """Return the sources with their counts, and links that choose one; the first chooses all."""
    every = ("All", sum(counts.values()), params.address(**{"in": ""}))
    return [
        every,
        *((title, counts.get(label, 0), params.address(**{"in": label})) for label, title in sources.items()),
    ]


def _facets(params: SearchParams, counts: Mapping[str, Mapping[str, int]]) -> dict[str, list[Choice]]:
    """Return the values of each facet with their counts, and links that choose a value or clear it."""
    facets: dict[str, list[Choice]] = {}
    for key, values in counts.items():
        chosen = {params.filters[key]: 0} if key in params.filters else {}  # so that it can be cleared
        ordered = sorted((chosen | dict(values)).items(), key=lambda item: (-item[1], item[0]))
        if ordered:
            facets[key] = [
                (value, count, params.address(**{f"f.{key}": "" if params.filters.get(key) == value else value}))
                for value, count in ordered
            ]
    return facets


def without_title(snippet: Snippet, title: str) -> Snippet:
    """Return a snippet without the heading that it begins with, which stands above it as the title.

    A text that only goes on from the same words is kept: what follows a heading begins a sentence or a list.
    """
    rest = snippet.text.removeprefix(title).lstrip()
    cut = len(snippet.text) - len(rest)
    is_heading = cut > len(title) > 0 and (rest[:1].isupper() or rest[:1].isdigit())
    if not is_heading:
        return snippet
    kept = tuple((start - cut, end - cut) for start, end in snippet.highlights if start >= cut)
    return Snippet(rest, kept)


def why(hit: "Hit") -> str:
    """Return why something was found, in words for people."""
    item = hit.item
    reasons = []
    if "keyword" in item.matched_by:
        reasons.append(_schema_reason(item.why) if item.why else _named_words(item.snippet))
    if "semantic" in item.matched_by:
        reasons.append("meaning")
    return " and ".join(reasons)


def _schema_reason(text: str) -> str:
    return ", ".join(dict.fromkeys(SCHEMA_REASONS.get(reason, reason) for reason in text.split(", ")))


def _named_words(snippet: Snippet) -> str:
    words = dict.fromkeys(snippet.text[start:end].lower() for start, end in snippet.highlights)
    if not words:
        return "words"
    named = ", ".join(f"“{word}”" for word in list(words)[:MAX_NAMED_WORDS])
    return f"the word {named}" if len(words) == 1 else f"the words {named}"
