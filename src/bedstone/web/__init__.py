"""Pages for people: see, search and manage what the agents know."""

from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from bedstone.errors import BedstoneError
from bedstone.toolkit import Toolset
from bedstone.web.docs import docs_routes
from bedstone.web.documents import document_routes, sweep_uploads
from bedstone.web.frame import HERE, PageOptions, Pages, WithHeaders
from bedstone.web.home import home_routes
from bedstone.web.login import login_routes
from bedstone.web.quality import quality_routes
from bedstone.web.salesforce import salesforce_routes
from bedstone.web.search import search_routes
from bedstone.web.tools import tool_routes

__all__ = ["PageOptions", "page_routes"]


def page_routes(toolsets: Mapping[str, Toolset], options: PageOptions) -> list[BaseRoute]:
    """Every page, what they load, and what whoever comes elsewhere is told: the last of an application's routes."""
    pages = Pages(toolsets, options)
    sweep_uploads(options.data_folder)
    routes = [
        *home_routes(pages),
        *search_routes(pages),
        *document_routes(pages),
        *docs_routes(pages),
        *salesforce_routes(pages),
        *quality_routes(pages),
        *tool_routes(pages),
        *login_routes(pages),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    handlers = {HTTPException: pages.refused, BedstoneError: pages.failed, Exception: pages.broken}
    return [_Last("", WithHeaders(Starlette(routes=routes, exception_handlers=handlers)))]


class _Last(Mount):
    """Takes what nobody else wants: a route that has the path, but not the method, says so itself."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return (Match.PARTIAL if match is Match.FULL else match), child
