"""What every page shares: the frame around it, its headers, who may change something."""

import hmac
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from bedstone import __version__
from bedstone.errors import BedstoneError, InvalidInput, NotFound
from bedstone.toolkit import Toolset

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
NAVIGATION = (
    ("home", "/", "Home", None),
    ("search", "/search", "Search", None),
    ("documents", "/documents", "Documents", "knowledge"),
    ("docs", "/docs", "Docs", "docs"),
    ("salesforce", "/salesforce", "Salesforce", "salesforce_graph"),
    ("tools", "/tools", "Tools", None),
    ("quality", "/quality", "Quality", None),
)
CHARACTERS_A_TOKEN, LARGEST_FORM = 4, 1_000_000


@dataclass(frozen=True)
class PageOptions:
    """What pages know of the server."""

    # For an address of ours and each client: its name, what to do, what to paste.
    client_configurations: Callable[[str], list[tuple[str, str, str]]]
    data_folder: Path
    read_only: bool = False
    token: str | None = None
    cookie: tuple[str, str] = ("", "")  # name and value, for whoever has shown the token


@dataclass
class Pages:
    """The toolsets, and how a page about them is drawn."""

    toolsets: Mapping[str, Toolset]
    options: PageOptions
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def __post_init__(self) -> None:
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        self._templates.filters["pretty"] = shown_json
        self._templates.globals["version"] = __version__

    @property
    def csrf(self) -> str:
        """What a form of ours carries; nobody else can know it."""
        return hmac.new(self._secret, b"form", sha256).hexdigest()

    def render(self, request: Request, template: str, *, page: str, status: int = 200, **context: Any) -> Response:
        """A whole page."""
        items = [item for item in NAVIGATION if item[3] is None or item[3] in self.toolsets]
        text = self._templates.get_template(template).render(
            page=page,
            navigation=items,
            csrf=self.csrf,
            read_only=self.options.read_only,
            has_token=self.options.token is not None,
            path=request.url.path,
            **context,
        )
        return HTMLResponse(text, status, dict(HEADERS))

    def part(self, template: str, **context: Any) -> Response:
        """A piece of a page, for a script to put in place."""
        text = self._templates.get_template(template).render(
            csrf=self.csrf, read_only=self.options.read_only, **context
        )
        return HTMLResponse(text, headers=dict(HEADERS))

    def problem(self, request: Request, error: BedstoneError, *, page: str) -> Response:
        """An error in words."""
        status = 404 if isinstance(error, NotFound) else 400 if isinstance(error, InvalidInput) else 503
        return self.render(request, "problem.html", page=page, status=status, message=error.message)

    def check_change(self, request: Request, given: str | None) -> None:
        """Refuse a change that does not come from a form of ours, or where nothing may be changed."""
        self.check_csrf(request, given)
        if self.options.read_only:
            raise HTTPException(403, "This server is read-only.")

    def check_csrf(self, request: Request, given: str | None) -> None:
        """Refuse a form that is not ours."""
        token = given or request.headers.get("x-csrf", "")
        if not hmac.compare_digest(token.encode(), self.csrf.encode()):
            raise HTTPException(403, "This form is of an earlier start of the server: load the page again.")


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
