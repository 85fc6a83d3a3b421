"""The home page: what agents get here, and the addresses to give them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from bedstone import __version__
from bedstone.toolkit import Toolset

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def page_routes(toolsets: Mapping[str, Toolset], client_configuration: Callable[[str], str]) -> list[BaseRoute]:
    """The page at / and what it loads; `client_configuration` gives what to paste, for an address of ours."""
    templates = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True)

    async def home(request: Request) -> Response:
        base = str(request.base_url).rstrip("/")
        page = templates.get_template("home.html").render(
            base=base, toolsets=toolsets.values(), snippet=client_configuration(base), version=__version__
        )
        return HTMLResponse(page, headers={"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"})

    return [Route("/", home), Mount("/static", StaticFiles(directory=HERE / "static"))]
