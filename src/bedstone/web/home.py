"""The home page: what is connected, how it is, and the addresses to give to agents."""

from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.errors import NotFound
from bedstone.toolkit import Toolset
from bedstone.toolsets.docs.toolset import DocsToolset
from bedstone.toolsets.salesforce_graph.toolset import SalesforceGraphToolset
from bedstone.toolsets.salesforce_knowledge.toolset import SalesforceKnowledgeToolset
from bedstone.web.frame import Pages, message_of

Figures = list[tuple[str, str]]
DAY = len("2026-01-01")


def home_routes(pages: Pages) -> list[BaseRoute]:
    """The page at /."""

    async def home(request: Request) -> Response:
        base = str(request.base_url).rstrip("/")
        cards = [await _card(label, toolset) for label, toolset in pages.toolsets.items()]
        clients = pages.options.client_configurations(base)
        return pages.render(request, "home.html", page="home", base=base, cards=cards, clients=clients)

    return [Route("/", home)]


async def _card(label: str, toolset: Toolset) -> dict[str, Any]:
    """A toolset, what it says of itself, and what keeps it from working."""
    problems = list(toolset.problems())
    try:
        figures = await _figures(toolset)
    except Exception as error:  # noqa: BLE001 - what is broken must not hide what is not
        figures = []
        problems.append(message_of(error))
    return {
        "label": label,
        "address": label.replace("_", "-"),
        "title": toolset.title,
        "tools": list(toolset.tools.values()),
        "figures": figures,
        "problems": problems,
    }


async def _figures(toolset: Toolset) -> Figures:
    """How much there is, how it is, and when it last changed."""
    match toolset:
        case DocsToolset():
            found = await toolset.ask(lambda library: library.overview())
            files, chunks = (sum(item[key] for item in found) for key in ("files", "chunks"))
            counts = [("corpora", str(len(found))), ("files", f"{files:,}"), ("chunks", f"{chunks:,}")]
            return [*counts, ("indexed", max(item["indexed_at"] for item in found)[:DAY])] if found else counts
        case SalesforceGraphToolset():
            return await _org_figures(toolset)
        case SalesforceKnowledgeToolset():
            mirror = toolset.service.mirror
            mirrored, count = await to_thread.run_sync(lambda: (mirror.mirrored_at, mirror.count))
            return [("articles", f"{count:,}"), ("mirrored", mirrored[:DAY])] if mirrored else [("mirrored", "not yet")]
    if "knowledge-status" in toolset.tools:
        facts = await _asked(toolset, "knowledge-status")
        base, changed = facts.get("knowledge_base", {}), facts.get("last_updated")
        return [
            ("documents", f"{base.get('document_count', 0):,}"),
            ("passages", f"{base.get('total_chunks', 0):,}"),
            ("health", facts.get("health", {}).get("status", "unknown")),
            *([("changed", changed[:DAY])] if changed else []),
        ]
    if "get_kb_info" in toolset.tools:
        facts = await _asked(toolset, "get_kb_info")
        info = facts.get("info", {})
        changed = info.get("lastModified")
        return [
            ("state", facts.get("status", "unknown")),
            ("characters", f"{info.get('contentLength', 0):,}"),
            *([("changed", changed[:DAY])] if changed else []),
        ]
    return []


async def _org_figures(toolset: SalesforceGraphToolset) -> Figures:
    """Of the org that is meant where none is named, else the names of all."""
    try:
        org = await toolset.graph()
    except NotFound:
        orgs = await to_thread.run_sync(toolset.orgs)
        if len(orgs) > 1:
            return [("orgs", ", ".join(orgs))]
        raise
    sizes = [("objects", f"{len(org.graph.objects):,}"), ("fields", f"{org.graph.field_count:,}")]
    return [("org", org.name), *sizes, ("synced", org.facts.get("synced_at", "")[:DAY])]


async def _asked(toolset: Toolset, name: str) -> dict[str, Any]:
    reply = await toolset.call(name, {})
    return reply.payload if isinstance(reply.payload, dict) else {}
