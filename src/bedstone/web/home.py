"""The home page: what is connected, how it is, and the addresses to give to agents."""

from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from bedstone.toolkit import Toolset
from bedstone.web.pages import Pages

# A tool that tells how a toolset is, and the figures of its answer that people want to see first.
FIGURES: dict[str, tuple[str, dict[str, Any], tuple[tuple[str, str], ...]]] = {
    "knowledge": (
        "knowledge-status",
        {},
        (
            ("knowledge_base.document_count", "documents"),
            ("knowledge_base.total_chunks", "passages"),
            ("health.status", "health"),
        ),
    ),
    "kb": ("get_kb_info", {}, (("status", "state"), ("info.contentLength", "characters"))),
}


def home_routes(pages: Pages) -> list[BaseRoute]:
    """The page at /."""

    async def home(request: Request) -> Response:
        base = str(request.base_url).rstrip("/")
        cards = [await _card(label, toolset) for label, toolset in pages.toolsets.items()]
        return pages.render(
            request, "home.html", page="home", base=base, cards=cards, snippet=pages.options.client_configuration(base)
        )

    return [Route("/", home)]


def missing_routes(pages: Pages) -> list[BaseRoute]:
    """Whatever is nowhere: a page for people, a word for programs."""

    async def missing(request: Request) -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            return PlainTextResponse("Not Found", 404)
        message = f"There is no page at {request.url.path}."
        return pages.render(request, "problem.html", page="", status=404, message=message)

    return [Route("/{rest:path}", missing, methods=["GET"])]


async def _card(label: str, toolset: Toolset) -> dict[str, Any]:
    """A toolset, what it says of itself, and what keeps it from working."""
    figures: list[tuple[str, str]] = []
    known = FIGURES.get(label)
    if known is not None:
        name, arguments, wanted = known
        reply = await toolset.call(name, arguments)
        if not reply.is_error and isinstance(reply.payload, dict):
            for path, shown in wanted:
                value: Any = reply.payload
                for part in path.split("."):
                    value = value.get(part) if isinstance(value, dict) else None
                if value is not None:
                    figures.append((shown, f"{value:,}" if isinstance(value, int) else str(value)))
    return {
        "label": label,
        "address": label.replace("_", "-"),
        "title": toolset.title,
        "tools": list(toolset.tools.values()),
        "figures": [*figures, ("tools", str(len(toolset.tools)))],
        "problems": list(toolset.problems()),
    }
