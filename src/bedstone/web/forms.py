"""Forms: parse them, and accept them only from pages of this server."""

import hmac
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Protocol
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

MAX_FORM_BYTES = 1_000_000
MAX_FIELDS = 100
DEFAULT_PORTS = {"http": 80, "https": 443}


class Sessions(Protocol):
    """Login sessions of browsers."""

    cookie: str
    max_age: int

    def begin(self) -> str:
        """Return the cookie of a new session."""

    def is_valid(self, cookie: str) -> bool:
        """Return whether a cookie belongs to an open session."""

    def end(self, cookie: str) -> None:
        """Close the session of a cookie."""


class Attempts(Protocol):
    """Wrong tokens, and how long the address that sent them must wait."""

    def wait_seconds(self, address: str) -> float:
        """Return how long an address must wait before its next attempt."""

    def record_failure(self, address: str, token: str) -> None:
        """Count a wrong token, once."""

    def record_success(self, address: str) -> None:
        """Remember an address that knows the token."""


class FormGuard:
    """Rejects forms of other sites, and changes on a read-only server."""

    def __init__(
        self, sessions: Sessions | None, *, read_only: bool, get_secret: Callable[[], str | None] = lambda: None
    ) -> None:
        """Sign with the secret that other servers with the same pages have too, or with one of this process."""
        self._sessions = sessions
        self._read_only = read_only
        self._get_secret = get_secret
        self._own_secret = secrets.token_hex(32)

    def csrf_token(self, request: Request) -> str:
        """Return the token that a form must carry; it is bound to the session of the browser."""
        session = request.cookies.get(self._sessions.cookie, "") if self._sessions else ""
        secret = self._get_secret() or self._own_secret
        return hmac.new(secret.encode(), f"bedstone form {session}".encode(), sha256).hexdigest()

    def check_csrf(self, request: Request, token: str | None = None) -> None:
        """Reject a form without the right token; scripts send it in the header `x-csrf`."""
        if _is_from_other_port(request.headers.get("origin", ""), request.headers.get("host", "")):
            raise HTTPException(403, "This form belongs to another site.")
        given = token or request.headers.get("x-csrf", "")
        if not hmac.compare_digest(given.encode(), self.csrf_token(request).encode()):
            raise HTTPException(403, "This form has expired. Reload the page.")

    def check_change(self, request: Request, token: str | None = None) -> None:
        """Reject a change on a read-only server, and a form without the right token."""
        self.check_csrf(request, token)
        if self._read_only:
            raise HTTPException(403, "This server is read-only.")


async def parse_form(request: Request) -> dict[str, str]:
    """Return the fields of a form; reject a large one, or one with files, before it is read."""
    size = request.headers.get("content-length", "0")
    if not size.isdigit() or int(size) > MAX_FORM_BYTES or "chunked" in request.headers.get("transfer-encoding", ""):
        raise HTTPException(413, "The form is too large: the limit is 1 MB.")
    try:
        form = await request.form(max_files=0, max_fields=MAX_FIELDS, max_part_size=MAX_FORM_BYTES)
        fields = {key: value for key, value in form.items() if isinstance(value, str)}
        "".join(fields.values()).encode()  # fails for half of a surrogate pair
    except (UnicodeError, MultiPartException, LookupError):
        raise HTTPException(400, "The form is not valid. Reload the page and send it again.") from None
    return fields


def local_path(path: str) -> str:
    """Return a path of this server, where a form may lead to; the home page for anything else."""
    return path if path.startswith("/") and not path.startswith("//") and "\\" not in path else "/"


def _is_from_other_port(origin: str, host: str) -> bool:
    """Return whether another server on this host sends the form; cookies ignore ports. The guard checks hosts."""
    theirs, ours = urlsplit(origin.lower()), urlsplit(f"//{host.lower()}")
    default = DEFAULT_PORTS.get(theirs.scheme)
    try:
        return theirs.hostname == ours.hostname and (theirs.port or default) != (ours.port or default)
    except ValueError:  # the port is not a number
        return True
