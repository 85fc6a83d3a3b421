"""The home page: what is connected, in what state, and the addresses to give to agents."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.web.frame import Pages, message_of


def home_routes(pages: Pages) -> list[BaseRoute]:
    """Return the page at /."""

    async def home(request: Request) -> Response:
        base = str(request.base_url).rstrip("/")
        cards = [await _card(pages, label) for label in pages.toolsets]
        clients = pages.options.client_configurations(base)
        return pages.render(request, "home.html", page="home", base=base, cards=cards, clients=clients)

    return [Route("/", home)]


async def _card(pages: Pages, label: str) -> dict[str, Any]:
    """Return a toolset, the figures of its service, and what keeps it from working."""
    toolset, handle = pages.toolsets[label], pages.services.handle(label)
    figures, problems = [], []
    try:
        if handle is not None:
            service = await handle.open()
            figures, problems = list(await service.figures()), list(service.problems())
    except Exception as error:  # noqa: BLE001 - a broken source must not hide the others
        problems.append(message_of(error))
    return {
        "label": label,
        "address": label.replace("_", "-"),
        "title": toolset.title,
        "tools": list(toolset.tools.values()),
        "figures": figures,
        "problems": problems,
    }
