"""The home page: sources with their state, and how to connect an agent."""

from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.web.frame import Pages, error_message


def home_routes(pages: Pages) -> list[BaseRoute]:
    """Return the page at /."""

    async def show_home(request: Request) -> Response:
        base = str(request.base_url).rstrip("/")
        cards = [await _card(pages, label) for label in pages.toolsets]
        clients = pages.options.client_configurations(base)
        return pages.render(request, "home.html", page="home", base=base, cards=cards, clients=clients)

    return [Route("/", show_home)]


async def _card(pages: Pages, label: str) -> dict[str, Any]:
    """Return a toolset, the figures of its service, and its problems."""
    toolset, handle = pages.toolsets[label], pages.services.handle(label)
    figures, problems = [], []
    try:
        if handle is not None:
            service = await handle.open()
            figures, problems = list(await service.figures()), list(await to_thread.run_sync(service.problems))
    except Exception as error:  # noqa: BLE001 - a broken source must not hide the others
        problems.append(error_message(error))
    card = {"label": label, "address": label.replace("_", "-"), "figures": figures, "problems": problems}
    return card | {"title": toolset.title, "tools": list(toolset.tools.values())}
