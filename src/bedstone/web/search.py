"""One box over everything: documentation, documents, articles; by the same tools that agents call."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import anyio
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.search.matching import Matcher
from bedstone.search.snippets import snippet
from bedstone.toolkit import Toolset
from bedstone.web.pages import Pages

SOURCES = {"docs": "Documentation", "knowledge": "Documents", "salesforce_knowledge": "Articles"}
MOST_HITS, LONGEST, LEAST = 10, 500, 0.02


@dataclass(frozen=True)
class Hit:
    """One result, whatever it is of."""

    title: str
    place: str
    text: Markup
    address: str | None
    score: float | None = None


@dataclass(frozen=True)
class Group:
    """The results of one source, or why there are none."""

    title: str
    hits: list[Hit]
    message: str | None = None


def search_routes(pages: Pages) -> list[BaseRoute]:
    """/search; a script asks for /search/results while somebody types."""

    async def groups(request: Request) -> tuple[str, list[Group]]:
        query = request.query_params.get("q", "").strip()[:LONGEST]
        wanted = request.query_params.get("in", "")
        chosen = {label: toolset for label, toolset in pages.toolsets.items() if label in SOURCES}
        if wanted in chosen:
            chosen = {wanted: chosen[wanted]}
        return query, await _search(chosen, query) if query else []

    async def whole(request: Request) -> Response:
        query, found = await groups(request)
        sources = [(label, title) for label, title in SOURCES.items() if label in pages.toolsets]
        wanted = request.query_params.get("in", "")
        return pages.render(
            request, "search.html", page="search", query=query, groups=found, sources=sources, wanted=wanted
        )

    async def results(request: Request) -> Response:
        query, found = await groups(request)
        return pages.part("search_results.html", query=query, groups=found)

    return [Route("/search", whole), Route("/search/results", results)]


async def _search(toolsets: Mapping[str, Toolset], query: str) -> list[Group]:
    """Every source at once, shown in their order."""
    found: dict[str, Group] = {}

    async def ask(label: str, toolset: Toolset) -> None:
        found[label] = await ASKED[label](toolset, query)

    async with anyio.create_task_group() as tasks:
        for label, toolset in toolsets.items():
            tasks.start_soon(ask, label, toolset)
    return [found[label] for label in SOURCES if label in found]


async def _docs(toolset: Toolset, query: str) -> Group:
    name = next(name for name in toolset.tools if name.endswith("search_docs"))
    answer, problem = await _answer(toolset, name, {"query": query, "limit": MOST_HITS})
    hits = [
        Hit(
            title=row["heading"] or row["filepath"],
            place=" > ".join([row["filepath"], *row.get("breadcrumb", [])])
            if row.get("breadcrumb")
            else row["filepath"],
            text=_marked(row["snippet"], query),
            address=f"/docs/chunk?id={quote(row['chunk_id'])}",
            score=row.get("score"),
        )
        for row in answer.get("hits", [])
    ]
    return Group(SOURCES["docs"], hits, problem)


async def _documents(toolset: Toolset, query: str) -> Group:
    answer, problem = await _answer(
        toolset, "knowledge-search", {"query": query, "top_k": MOST_HITS, "min_relevance": LEAST}
    )
    hits = [
        Hit(
            title=row["filename"],
            place=_page(row["metadata"]),
            text=_marked(row["chunk_text"], query),
            address=f"/documents/{row['document_id']}?chunk={row['chunk_id']}#chunk-{row['chunk_id']}",
            score=row["relevance_score"],
        )
        for row in answer.get("results", [])
    ]
    return Group(SOURCES["knowledge"], hits, problem)


async def _articles(toolset: Toolset, query: str) -> Group:
    answer, problem = await _answer(toolset, "search_articles", {"query": query, "limit": MOST_HITS})
    hits = [
        Hit(
            title=row["title"],
            place=" · ".join(part for part in (row["article_type"], row.get("article_number")) if part),
            text=_marked(row.get("snippet") or row["summary"] or "", query),
            address=f"/tools/get_article_by_id?article_id={row['id']}",
        )
        for row in answer.get("articles", [])
    ]
    return Group(SOURCES["salesforce_knowledge"], hits, problem)


ASKED = {"docs": _docs, "knowledge": _documents, "salesforce_knowledge": _articles}


async def _answer(toolset: Toolset, name: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """What a tool says; or why it says nothing."""
    reply = await toolset.call(name, arguments)
    payload: dict[str, Any] = reply.structured or (reply.payload if isinstance(reply.payload, dict) else {})
    if reply.is_error:
        error = payload.get("error")
        message = error.get("message") if isinstance(error, dict) else payload.get("message") or reply.text
        return {}, str(message)
    return payload, None


def _marked(text: str, query: str) -> Markup:
    """A passage with the query's words marked; everything else escaped."""
    matcher = Matcher(query)
    shown = snippet(text, matcher)
    made, last = Markup(""), 0
    for start, end in shown.highlights:
        made += escape(shown.text[last:start]) + Markup("<mark>") + escape(shown.text[start:end]) + Markup("</mark>")
        last = end
    return made + escape(shown.text[last:])


def _page(metadata: Mapping[str, Any]) -> str:
    page = metadata.get("page_number") or metadata.get("page")
    return f"page {page}" if page else ""
