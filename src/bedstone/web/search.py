"""One box over everything: documentation, documents, articles; why each was found; by words, meaning or both."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlencode

import anyio
from anyio import to_thread
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.search.hits import Mode
from bedstone.search.matching import Matcher
from bedstone.search.snippets import snippet
from bedstone.toolkit import Toolset
from bedstone.toolsets.docs.toolset import DocsToolset
from bedstone.toolsets.knowledge.toolset import KnowledgeToolset
from bedstone.toolsets.salesforce_knowledge.toolset import SalesforceKnowledgeToolset
from bedstone.web.frame import Pages, message_of, whole

SOURCES = {"docs": "Documentation", "knowledge": "Documents", "salesforce_knowledge": "Articles"}
MODES: dict[Mode, str] = {"words": "Words alone", "vectors": "Meaning alone", "hybrid": "Words and meaning"}
UNMEASURED = 0.2
MOST_HITS, MOST_OF_ONE, LONGEST, LEAST = 10, 50, 500, 0.02


@dataclass(frozen=True)
class Hit:
    """One result, whatever it is of."""

    title: str
    place: str
    text: Markup
    address: str
    why: str
    score: float | None = None


@dataclass(frozen=True)
class Group:
    """The results of one source, or why there are none; facets with counts and links to narrow by them."""

    title: str
    hits: list[Hit]
    message: str | None = None
    facets: dict[str, list[tuple[str, int, str]]] = field(default_factory=dict)
    more: str | None = None  # where further ones are

    @property
    def best(self) -> float:
        """How good the best result is; articles come without a measure, and what has nothing stands last."""
        return max((UNMEASURED if hit.score is None else hit.score for hit in self.hits), default=-1.0)


@dataclass(frozen=True)
class Asked:
    """What is searched for, where, how, and by which facets."""

    query: str
    source: str = ""
    mode: Mode = "hybrid"
    filters: Mapping[str, str] = field(default_factory=dict)
    most: int = MOST_HITS  # results of a source
    facets: bool = True  # whether to say what the results can be narrowed by

    @classmethod
    def of(cls, request: Request) -> "Asked":
        given = request.query_params
        mode: Any = given.get("mode", "hybrid")
        filters = {key[2:]: value for key, value in given.items() if key.startswith("f.")}
        query = given.get("q", "").strip()[:LONGEST]
        most = min(whole(given.get("most", str(MOST_HITS)), MOST_HITS), MOST_OF_ONE)
        return cls(query, given.get("in", ""), mode if mode in MODES else "hybrid", filters, most)

    def address(self, **changes: str) -> str:
        """A link to this search with something else."""
        parts = {"q": self.query, "in": self.source, "mode": self.mode} | {f"f.{k}": v for k, v in self.filters.items()}
        return f"/search?{urlencode({key: value for key, value in (parts | changes).items() if value})}"

    def more(self, source: str, hits: Sequence[Hit]) -> str | None:
        """A link to further results of one source, if there may be any."""
        if len(hits) < self.most or self.most >= MOST_OF_ONE:
            return None
        return self.address(**{"in": source, "most": str(min(self.most + 2 * MOST_HITS, MOST_OF_ONE))})


def search_routes(pages: Pages) -> list[BaseRoute]:
    """/search; a script asks for /search/results while somebody types."""

    async def groups(asked: Asked) -> list[Group]:
        chosen = {label: toolset for label, toolset in pages.toolsets.items() if label in SOURCES}
        if asked.source in chosen:
            chosen = {asked.source: chosen[asked.source]}
        return await _search(chosen, asked) if asked.query else []

    async def shown(request: Request) -> Response:
        asked = Asked.of(request)
        sources = [(label, title) for label, title in SOURCES.items() if label in pages.toolsets]
        return pages.render(
            request, "search.html", page="search", asked=asked, groups=await groups(asked), sources=sources, modes=MODES
        )

    async def results(request: Request) -> Response:
        asked = Asked.of(request)
        return pages.part("search_results.html", asked=asked, groups=await groups(asked))

    async def beside(request: Request) -> Response:
        """The three ways side by side."""
        asked = Asked.of(request)
        columns = []
        for mode, title in MODES.items():
            found = await groups(replace(asked, mode=mode, facets=False))
            columns.append((title, found))
        return pages.render(request, "beside.html", page="search", asked=asked, columns=columns)

    return [Route("/search", shown), Route("/search/results", results), Route("/search/beside", beside)]


async def _search(toolsets: Mapping[str, Toolset], asked: Asked) -> list[Group]:
    """Every source at once, shown in their order."""
    found: dict[str, Group] = {}

    async def ask(label: str, toolset: Toolset) -> None:
        try:
            found[label] = await _of(toolset, asked)
        except Exception as error:  # noqa: BLE001 - what is broken must not hide what is not
            found[label] = Group(SOURCES[label], [], message_of(error))

    async with anyio.create_task_group() as tasks:
        for label, toolset in toolsets.items():
            tasks.start_soon(ask, label, toolset)
    groups = [found[label] for label in SOURCES if label in found]
    return sorted(groups, key=lambda group: -group.best)


async def _of(toolset: Toolset, asked: Asked) -> Group:
    match toolset:
        case DocsToolset():
            return await _docs(toolset, asked)
        case KnowledgeToolset():
            return await _documents(toolset, asked)
        case SalesforceKnowledgeToolset():
            return await _articles(toolset, asked)
    raise AssertionError(toolset.label)


async def _docs(toolset: DocsToolset, asked: Asked) -> Group:
    known = await toolset.ask(lambda library: library.facets)
    filters = {key: value for key, value in asked.filters.items() if key in known}
    counts = await toolset.ask(lambda library: library.facet_counts(asked.query, filters)) if asked.facets else {}
    found = await toolset.ask(lambda library: library.compare(asked.query, filters, asked.most, asked.mode))
    hits = [
        Hit(
            title=hit.stored.chunk.heading or hit.stored.document,
            place=" > ".join([hit.stored.document, *hit.stored.chunk.breadcrumb]),
            text=_marked_at(hit.snippet.text, hit.snippet.highlights),
            address=f"/docs/chunk?id={quote(hit.stored.chunk.id)}",
            why=hit.why,
            score=hit.score,
        )
        for hit in found
        if hit.score >= LEAST
    ]
    facets = _facets(asked, sorted(known), counts) if asked.facets else {}
    return Group(SOURCES["docs"], hits, facets=facets, more=asked.more("docs", hits))


async def _documents(toolset: KnowledgeToolset, asked: Asked) -> Group:
    chosen = asked.filters.get("format")
    counts = await toolset.ask(lambda base: base.format_counts(asked.query)) if asked.facets else {}
    filters = {"format": chosen} if chosen else {}
    found = await toolset.ask(
        lambda base: base.search(asked.query, top_k=asked.most, min_relevance=LEAST, filters=filters, mode=asked.mode)
    )
    hits = [
        Hit(
            title=hit.document.metadata["filename"],
            place=f"page {hit.stored.chunk.page}" if hit.stored.chunk.page else "",
            text=_marked(hit.stored.chunk.text, asked.query),
            address=f"/documents/{hit.document.id}?chunk={hit.stored.chunk.id}#chunk-{hit.stored.chunk.id}",
            why=hit.why,
            score=hit.score,
        )
        for hit in found
    ]
    facets = _facets(asked, ["format"], {"format": counts}) if asked.facets else {}
    return Group(SOURCES["knowledge"], hits, facets=facets, more=asked.more("knowledge", hits))


async def _articles(toolset: SalesforceKnowledgeToolset, asked: Asked) -> Group:
    """As agents get them; by words or meaning alone from the mirror, the org knows no such thing."""
    from bedstone.services.articles.article import Wanted  # noqa: PLC0415 - with the engine

    service, wanted = toolset.service, Wanted(asked.query, limit=asked.most)
    if asked.mode == "hybrid":
        found = await service.search(wanted)
    else:
        found = await to_thread.run_sync(service.mirror.search, wanted, asked.mode)
    hits = [
        Hit(
            title=article.title,
            place=" · ".join(part for part in (article.article_type, article.article_number) if part),
            text=_marked(article.snippet or article.summary or "", asked.query),
            address=f"/salesforce/articles/{article.id}",
            why=article.why or "",
        )
        for article in found.articles
    ]
    return Group(SOURCES["salesforce_knowledge"], hits, more=asked.more("salesforce_knowledge", hits))


def _facets(
    asked: Asked, known: Iterable[str], counts: Mapping[str, Mapping[str, int]]
) -> dict[str, list[tuple[str, int, str]]]:
    """Values with how many chunks they leave, and links that choose or let go of them."""
    shown: dict[str, list[tuple[str, int, str]]] = {}
    for key in known:
        chosen = {asked.filters[key]: 0} if key in asked.filters else {}  # to let go of, at least
        ordered = sorted((chosen | dict(counts.get(key, {}))).items(), key=lambda item: (-item[1], item[0]))
        if not ordered:
            continue
        shown[key] = [
            (value, count, asked.address(**{f"f.{key}": "" if asked.filters.get(key) == value else value}))
            for value, count in ordered
        ]
    return shown


def _marked(text: str, query: str) -> Markup:
    """A passage with the query's words marked; everything else escaped."""
    shown = snippet(text, Matcher(query))
    return _marked_at(shown.text, shown.highlights)


def _marked_at(text: str, highlights: tuple[tuple[int, int], ...]) -> Markup:
    made, last = Markup(""), 0
    for start, end in highlights:
        made += escape(text[last:start]) + Markup("<mark>") + escape(text[start:end]) + Markup("</mark>")
        last = end
    return made + escape(text[last:])
