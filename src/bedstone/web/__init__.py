"""Web pages: browse, search and manage what agents know."""

from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from bedstone.errors import BedstoneError
from bedstone.services.service import Services
from bedstone.toolkit import Toolset
from bedstone.toolkit.spec import resolve
from bedstone.web.activity.pages import activity_routes
from bedstone.web.frame import HERE, PageOptions, Pages, WithHeaders
from bedstone.web.home import home_routes
from bedstone.web.login import login_routes
from bedstone.web.menu import WithMenu
from bedstone.web.palette import palette_routes
from bedstone.web.quality import quality_routes
from bedstone.web.search.pages import search_routes
from bedstone.web.tools.pages import tool_routes

__all__ = ["PageOptions", "page_routes"]


def page_routes(services: Services, toolsets: Mapping[str, Toolset], options: PageOptions) -> list[BaseRoute]:
    """Return every page, its static files and its error pages, as the last route of an application."""
    pages = Pages(services, toolsets, options)
    routes = [
        *home_routes(pages),
        *search_routes(pages),
        *palette_routes(pages),
        *(route for spec in pages.specs.values() if spec.pages for route in resolve(spec.pages)(pages)),
        *activity_routes(pages),
        *quality_routes(pages),
        *tool_routes(pages),
        *login_routes(pages),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    handlers = {
        HTTPException: pages.render_http_error,
        BedstoneError: pages.render_error,
        Exception: pages.render_internal_error,
    }
    return [_Fallback("", WithHeaders(WithMenu(Starlette(routes=routes, exception_handlers=handlers), pages.menu)))]


class _Fallback(Mount):
    """Matches only what no other route matches; a route with the path but not the method answers 405 itself."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return (Match.PARTIAL if match is Match.FULL else match), child
