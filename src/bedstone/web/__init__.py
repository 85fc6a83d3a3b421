"""Pages for people: see, search and manage what the agents know."""

from collections.abc import Mapping

from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from bedstone.toolkit import Toolset
from bedstone.web.docs import docs_routes
from bedstone.web.documents import document_routes, sweep_uploads
from bedstone.web.home import home_routes, missing_routes
from bedstone.web.login import login_routes
from bedstone.web.pages import HERE, PageOptions, Pages
from bedstone.web.quality import quality_routes
from bedstone.web.salesforce import salesforce_routes
from bedstone.web.search import search_routes
from bedstone.web.tools import tool_routes

__all__ = ["PageOptions", "page_routes"]


def page_routes(toolsets: Mapping[str, Toolset], options: PageOptions) -> list[BaseRoute]:
    """Every page, and what they load."""
    pages = Pages(toolsets, options)
    sweep_uploads(options.data_folder)
    return [
        *home_routes(pages),
        *search_routes(pages),
        *document_routes(pages),
        *docs_routes(pages),
        *salesforce_routes(pages),
        *quality_routes(pages),
        *tool_routes(pages),
        *login_routes(pages),
        Mount("/static", StaticFiles(directory=HERE / "static")),
        *missing_routes(pages),
    ]
