"""What every page shares: the frame around it, its headers, who may change something, and what went wrong in words."""

import hmac
import json
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode, urlsplit

from jinja2 import Environment, FileSystemLoader
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bedstone import __version__
from bedstone.errors import BedstoneError, InvalidInput, NotFound
from bedstone.services.service import Services
from bedstone.toolkit import NavigationItem, Reply, Toolset
from bedstone.toolsets import toolset_spec

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
HERE = Path(__file__).parent
# Nothing is loaded from elsewhere, nothing inline runs, nobody frames us, forms come back to us.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
FIRST_ITEMS = (NavigationItem("home", "/", "Home"), NavigationItem("search", "/search", "Search"))
LAST_ITEMS = (NavigationItem("tools", "/tools", "Tools"), NavigationItem("quality", "/quality", "Quality"))
CHARACTERS_A_TOKEN, LARGEST_FORM = 4, 1_000_000
PORTS = {"http": 80, "https": 443}
BROKEN = "This cannot be read just now; the server's log says why."


class Sessions(Protocol):
    """Browsers whose people have shown the token."""

    cookie: str

    def begin(self) -> str:
        """What the cookie of another one says."""

    def holds(self, cookie: str) -> bool:
        """Whether a cookie is one of theirs."""

    def end(self, cookie: str) -> None:
        """Whoever has this cookie is asked again."""


@dataclass(frozen=True)
class PageOptions:
    """What pages know of the server."""

    # For an address of ours and each client: its name, what to do, what to paste.
    client_configurations: Callable[[str], list[tuple[str, str, str]]]
    data_folder: Path
    evaluation_command: str = "bedstone eval run --cases CASES.json -- bedstone serve"
    read_only: bool = False
    token: str | None = None
    sessions: Sessions | None = None  # where there is a token


@dataclass
class Pages:
    """The services and toolsets that are on, and how a page about them is drawn."""

    services: Services
    toolsets: Mapping[str, Toolset]
    options: PageOptions
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def __post_init__(self) -> None:
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        self._templates.filters["pretty"] = shown_json
        self._templates.globals["version"] = __version__
        self.specs = {label: toolset_spec(label) for label in self.toolsets}
        self.navigation = [
            *FIRST_ITEMS,
            *(item for spec in self.specs.values() for item in spec.navigation),
            *LAST_ITEMS,
        ]
        self.sources = {label: spec.source_title for label, spec in self.specs.items() if spec.source_title}

    def csrf(self, request: Request) -> str:
        """What a form of ours carries; nobody but the browser that was given it can know it."""
        sessions = self.options.sessions
        session = request.cookies.get(sessions.cookie, "") if sessions else ""
        return hmac.new(self._secret, f"form {session}".encode(), sha256).hexdigest()

    def render(self, request: Request, template: str, *, page: str, status: int = 200, **context: Any) -> Response:
        """A whole page."""
        text = self._templates.get_template(template).render(
            page=page,
            navigation=self.navigation,
            csrf=self.csrf(request) if page != "login" else "",
            read_only=self.options.read_only,
            has_token=self.options.token is not None,
            **context,
        )
        return HTMLResponse(text, status)

    def part(self, template: str, **context: Any) -> Response:
        """A piece of a page, for a script to put in place."""
        return HTMLResponse(self._templates.get_template(template).render(read_only=self.options.read_only, **context))

    def check_change(self, request: Request, given: str | None) -> None:
        """Refuse a change that does not come from a form of ours, or where nothing may be changed."""
        self.check_csrf(request, given)
        if self.options.read_only:
            raise HTTPException(403, "This server is read-only.")

    def check_csrf(self, request: Request, given: str | None) -> None:
        """Refuse a form that is not ours: of an earlier start, or of a page at another port of this host."""
        if _is_of_another_port(request.headers.get("origin", ""), request.headers.get("host", "")):
            raise HTTPException(403, "This form is of another page.")
        token = given or request.headers.get("x-csrf", "")
        if not hmac.compare_digest(token.encode(), self.csrf(request).encode()):
            raise HTTPException(403, "This form is of an earlier start of the server: load the page again.")

    # What went wrong

    async def refused(self, request: Request, error: Exception) -> Response:
        """An HTTP error in words."""
        assert isinstance(error, HTTPException)
        status, message = HTTPStatus(error.status_code), error.detail
        if message == status.phrase:
            message = {404: f"There is no page at {request.url.path}."}.get(status, f"{message}.")
        return self._problem(request, status, message, error.headers)

    async def failed(self, request: Request, error: Exception) -> Response:
        """An error of the product in its own words."""
        assert isinstance(error, BedstoneError)
        status = 404 if isinstance(error, NotFound) else 400 if isinstance(error, InvalidInput) else 503
        return self._problem(request, status, error.message)

    async def broken(self, request: Request, error: Exception) -> Response:
        """Whatever nobody has thought of; the server logs it."""
        return self._problem(request, 500, BROKEN)

    def _problem(
        self, request: Request, status: int, message: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        """A page for a person whom we know, a word for programs and strangers."""
        sessions = self.options.sessions
        is_known = sessions is None or sessions.holds(request.cookies.get(sessions.cookie, ""))
        if "text/html" not in request.headers.get("accept", "") or "x-part" in request.headers or not is_known:
            return PlainTextResponse(message, status, dict(headers or {}))
        shown = self.render(
            request, "problem.html", page=self._section(request.url.path), status=status, message=message
        )
        shown.headers.update(headers or {})
        return shown

    def _section(self, path: str) -> str:
        """Return the key of the navigation item that a path belongs to."""
        fitting = [
            item
            for item in self.navigation
            if path == item.address or (item.address != "/" and path.startswith(f"{item.address}/"))
        ]
        return max(fitting, key=lambda item: len(item.address)).key if fitting else ""


class WithHeaders:
    """Every answer of the pages keeps to the policy; what scripts and styles load may be kept by browsers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    if name != "Cache-Control" or not scope["path"].startswith("/static/"):
                        headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, sent)


def refusal(reply: Reply) -> HTTPException:
    """What a tool said no to, in its words."""
    payload = reply.payload if isinstance(reply.payload, dict) else {}
    error = payload.get("error")
    told = error if isinstance(error, dict) else {"code": error, "message": payload.get("message")}
    is_missing = str(told.get("code")).lower().endswith("not_found")
    return HTTPException(404 if is_missing else 400, str(told.get("message") or reply.text))


def message_of(error: Exception) -> str:
    """An error in words; one nobody has thought of goes to the log."""
    if isinstance(error, BedstoneError):
        return error.message
    logger.error("A page failed", exc_info=error, extra={"action": "page_failed"})
    return BROKEN


def _is_of_another_port(origin: str, host: str) -> bool:
    """Whether a page of this very host, but of another server there, sends something; other hosts the guard knows."""
    theirs, ours = urlsplit(origin.lower()), urlsplit(f"//{host.lower()}")
    usual = PORTS.get(theirs.scheme)
    try:
        return theirs.hostname == ours.hostname and (theirs.port or usual) != (ours.port or usual)
    except ValueError:  # no number
        return True


@dataclass(frozen=True)
class Pager:
    """Which page of a list is shown, and the addresses of the ones beside it."""

    number: int
    total: int
    size: int
    address: str  # without the page

    @classmethod
    def of(cls, request: Request, total: int, size: int, default: int = 1) -> "Pager":
        """The page an address asks for; everything else in the address stays."""
        number = whole(request.query_params.get("page", str(default)))
        rest = [(key, value) for key, value in request.query_params.multi_items() if key != "page" and value]
        return cls(number, total, size, f"?{urlencode([*rest, ('page', '')])}")

    @property
    def last(self) -> int:
        """The number of pages."""
        return max(1, -(-self.total // self.size))

    def cut(self, items: Sequence[Item]) -> Sequence[Item]:
        """What stands on this page."""
        return items[(self.number - 1) * self.size : self.number * self.size]


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a small form; whatever is larger, or holds files, is refused before it is read."""
    size = request.headers.get("content-length", "0")
    if not size.isdigit() or int(size) > LARGEST_FORM or "chunked" in request.headers.get("transfer-encoding", ""):
        raise HTTPException(413, "The form is too large.")
    try:
        form = await request.form(max_files=0, max_fields=100, max_part_size=LARGEST_FORM)
        fields = {key: value for key, value in form.items() if isinstance(value, str)}
        "".join(fields.values()).encode()
    except (UnicodeError, MultiPartException, LookupError):
        raise HTTPException(400, "The form cannot be read.") from None
    return fields


def whole(text: str, least: int = 1) -> int:
    """A number in an address; the least one for whatever is none."""
    return max(least, int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else least  # noqa: PLR2004


def shown_json(value: Any) -> str:
    """JSON for people to read; signs that cannot be written are escaped."""
    return json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace").decode()


def tokens(text: str) -> int:
    """About how many tokens a text costs an agent."""
    return -(-len(text) // CHARACTERS_A_TOKEN)
