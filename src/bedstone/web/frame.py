"""Render pages: the layout around each, its headers, and its errors."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, PrefixLoader
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bedstone import __version__
from bedstone.errors import BedstoneError, InvalidInput, NotFound
from bedstone.services.service import Services
from bedstone.toolkit import NavigationItem, Reply, Toolset
from bedstone.toolsets import toolset_spec
from bedstone.web.formatting import FILTERS
from bedstone.web.forms import Attempts, FormGuard, Sessions
from bedstone.web.menu import Menu
from bedstone.web.problems import describe_problem
from bedstone.web.wording import for_people

logger = logging.getLogger(__name__)

HERE = Path(__file__).parent
# Load nothing from other sites, run nothing inline, allow no frames around a page, send forms to this server only.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",  # other sites cannot tell whether a picture exists
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
CHARACTERS_PER_TOKEN = 4
INTERNAL_ERROR = "Internal error; see the server log."


@dataclass(frozen=True)
class ClientSetup:
    """How to connect a client: what to do with a text, or a link that the client opens by itself."""

    key: str
    title: str
    advice: str
    text: str
    link: str = ""


@dataclass(frozen=True)
class PageOptions:
    """What pages know about the server."""

    client_setups: Callable[[str], Sequence[ClientSetup]]  # from the address of this server
    data_folder: Path
    evaluation_command: str = "bedstone eval run --cases CASES.json -- bedstone serve"
    read_only: bool = False
    token: str | None = None
    sessions: Sessions | None = None  # with a token only
    attempts: Attempts | None = None
    get_secret: Callable[[], str | None] = lambda: None  # that signs forms, if several servers have the same pages


class Pages:
    """The services and toolsets of the server, and how to render a page about them."""

    def __init__(self, services: Services, toolsets: Mapping[str, Toolset], options: PageOptions) -> None:
        self.services = services
        self.toolsets = toolsets
        self.options = options
        self.forms = FormGuard(options.sessions, read_only=options.read_only, get_secret=options.get_secret)
        self.specs = {label: toolset_spec(label) for label in toolsets}
        self.menu = Menu(services, toolsets, self.specs)
        own = {label: PackageLoader(spec.templates) for label, spec in self.specs.items() if spec.templates}
        loader = ChoiceLoader([FileSystemLoader(HERE / "templates"), PrefixLoader(own)])
        self._templates = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
        self._templates.filters |= {"pretty": pretty_json, **FILTERS}
        self._templates.globals["version"] = __version__

    def render(self, request: Request, template: str, *, page: str, status: int = 200, **context: Any) -> Response:
        """Render a page; `page` is the key of its navigation item."""
        text = self._templates.get_template(template).render(
            page=page,
            menu=self.menu,
            csrf=self.forms.csrf_token(request) if page != "login" else "",
            read_only=self.options.read_only,
            has_token=self.options.token is not None,
            **context,
        )
        return HTMLResponse(text, status)

    def render_fragment(self, template: str, **context: Any) -> Response:
        """Render a part of a page that a script inserts."""
        return HTMLResponse(self._templates.get_template(template).render(read_only=self.options.read_only, **context))

    async def render_http_error(self, request: Request, error: Exception) -> Response:
        """Render an HTTP error, with a sentence where it has none."""
        assert isinstance(error, HTTPException)
        status, message = HTTPStatus(error.status_code), error.detail
        if message == status.phrase:
            message = f"Page not found: {request.url.path}" if status == HTTPStatus.NOT_FOUND else f"{message}."
        return self._render_problem(request, status, message, error.headers)

    async def render_error(self, request: Request, error: Exception) -> Response:
        """Render an error of a service or a toolset."""
        assert isinstance(error, BedstoneError)
        status = 404 if isinstance(error, NotFound) else 400 if isinstance(error, InvalidInput) else 503
        return self._render_problem(request, status, error.message)

    async def render_internal_error(self, request: Request, error: Exception) -> Response:
        """Render an unexpected error without its details; the server logs them."""
        return self._render_problem(request, 500, INTERNAL_ERROR)

    def _render_problem(
        self, request: Request, status: int, message: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Render a page for a browser that is logged in, and plain text for scripts and others."""
        sessions = self.options.sessions
        is_known = sessions is None or sessions.is_valid(request.cookies.get(sessions.cookie, ""))
        path = request.url.path
        tools = [] if path.startswith("/tools") else [name for item in self.toolsets.values() for name in item.tools]
        if "text/html" not in request.headers.get("accept", "") or "x-part" in request.headers or not is_known:
            return PlainTextResponse(for_people(message, tools), status, dict(headers or {}))
        problem = describe_problem(status, for_people(message, tools), path, request.method)
        section = self._section(path)
        facts = {"title": problem.title, "message": problem.text, "problem": problem, "section": section}
        response = self.render(request, "problem.html", page=section.key if section else "", status=status, **facts)
        response.headers.update(headers or {})
        return response

    def _section(self, path: str) -> NavigationItem | None:
        """Return the navigation item that a path belongs to."""
        items = [item for group in self.menu.groups for item in group.items]
        matches = [item for item in items if path == item.address or path.startswith(f"{item.address}/")]
        return max(matches, key=lambda item: len(item.address), default=None)


class WithHeaders:
    """Adds the security headers to each response; browsers may cache static files."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    if name != "Cache-Control" or not scope["path"].startswith("/static/"):
                        headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def tool_error(reply: Reply) -> HTTPException:
    """Return the error that a tool reports, in words of the page."""
    payload = reply.payload if isinstance(reply.payload, dict) else {}
    error = payload.get("error")
    facts = error if isinstance(error, dict) else {"code": error, "message": payload.get("message")}
    is_missing = str(facts.get("code")).lower().endswith("not_found")
    return HTTPException(404 if is_missing else 400, for_people(str(facts.get("message") or reply.text)))


def error_message(error: Exception) -> str:
    """Return what to show of an error; log an unexpected one."""
    if isinstance(error, BedstoneError):
        return for_people(error.message)
    logger.error("A page failed", exc_info=error, extra={"action": "page_failed"})
    return INTERNAL_ERROR


def pretty_json(value: Any) -> str:
    """Format JSON for people, with characters that cannot be encoded escaped."""
    return json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace").decode()


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a text costs an agent."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)
