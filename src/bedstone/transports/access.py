"""One guard in front of every route: Host, Origin, bearer token, size of the body."""

import hmac
import logging
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from socket import gethostname
from urllib.parse import quote

import mcp_types as wire
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from bedstone.errors import InvalidSetting
from bedstone.transports.jsonrpc import failure

logger = logging.getLogger(__name__)

LOOPBACK = ("localhost", "127.0.0.1", "::1")
OPEN_PATHS = re.compile(
    r"/healthz|/readyz|/\.well-known/oauth-protected-resource(/.*)?|/login|/static/(style\.css|icon\.svg)"
)
MCP_PATHS = re.compile(r"(/[\w-]+)?/(mcp|sse|messages)(/.*)?")  # for agents: page sessions do not count here
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
UNAUTHORIZED = 401
ANY_HOST = "*"
AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?")


class PageSessions:
    """Cookies of browsers that logged in with the token, signed with it and without revealing it.

    Sessions survive a restart because they are not stored; logged-out ones are remembered while the server runs.
    """

    cookie = "bedstone_page"

    def __init__(self, token: str) -> None:
        self._key = token.encode()
        self._ended: set[str] = set()

    def begin(self) -> str:
        """Return the cookie of a new session."""
        name = secrets.token_hex(16)
        return f"{name}.{self._signature(name)}"

    def end(self, cookie: str) -> None:
        """Invalidate a cookie."""
        if self.is_valid(cookie):
            self._ended.add(cookie)

    def is_valid(self, cookie: str) -> bool:
        """Return whether a cookie belongs to a session that is logged in."""
        name, _, signature = cookie.partition(".")
        return hmac.compare_digest(signature.encode(), self._signature(name).encode()) and cookie not in self._ended

    def _signature(self, name: str) -> str:
        return hmac.new(self._key, f"bedstone page {name}".encode(), sha256).hexdigest()


@dataclass(frozen=True)
class Access:
    """Who has access: the allowed host names, and the token that every request must present."""

    hosts: Collection[str]
    token: str | None = None
    sessions: PageSessions | None = field(default=None)

    @classmethod
    def for_address(cls, host: str, *, allowed_hosts: Sequence[str] = (), token: str | None = None) -> "Access":
        """Return the rules for a server bound to `host`; one that other machines can reach must have a token."""
        if not is_loopback(host) and not token:
            raise InvalidSetting(
                f"Refusing to listen on {host} without a token: everyone who can reach it could read its content. "
                "Give one with --token-file or BEDSTONE_MCP__TOKEN, or listen on 127.0.0.1."
            )
        names = {*LOOPBACK, host.lower(), *(name.lower() for name in allowed_hosts)}
        hosts = frozenset(names if is_loopback(host) else {*names, gethostname().lower()})
        return cls(hosts, token, PageSessions(token) if token else None)


@dataclass(frozen=True)
class Refusal:
    status: int
    message: str


class Guard:
    """ASGI middleware around the whole application, WebSocket included."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None if scope["type"] == "lifespan" else self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        logger.warning("Refused %r: %s", scope["path"], refusal.message, extra={"action": "request_refused"})
        if refusal.status == UNAUTHORIZED and _is_page(scope):
            path = scope.get("raw_path") or scope["path"].encode()
            query = b"?" + scope["query_string"] if scope.get("query_string") else b""
            target = quote(path.partition(b"?")[0] + query, safe="/")
            await RedirectResponse(f"/login?next={target}", 303)(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": refusal.message})  # becomes HTTP 403
        else:
            await _respond(refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Refusal | None:
        if CONTROL.search(scope["path"]):  # route patterns ignore a trailing line feed, OPEN_PATHS does not
            return Refusal(400, "The path contains control characters.")
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_allowed_host(host):
            return Refusal(421, f"Host not allowed: {host!r}. Add it to the setting mcp.allowed_hosts.")
        if origin is not None and not self._is_allowed_origin(origin, host):
            return Refusal(403, f"Origin not allowed: {origin!r}. Add its host to the setting mcp.allowed_hosts.")
        if self._access.token and not OPEN_PATHS.fullmatch(scope["path"]):
            if not MCP_PATHS.fullmatch(scope["path"]) and self._has_session(headers):
                return None
            return self._check_token(headers.get("authorization", ""), self._access.token)
        return None

    def _has_session(self, headers: Headers) -> bool:
        sessions = self._access.sessions
        return sessions is not None and sessions.is_valid(
            cookie_parser(headers.get("cookie", "")).get(sessions.cookie, "")
        )

    def _is_allowed_host(self, authority: str) -> bool:
        return ANY_HOST in self._access.hosts or _host_name(authority) in self._access.hosts

    def _is_allowed_origin(self, origin: str, host: str) -> bool:
        """Allow pages of allowed hosts and of the requested host itself: `*` allows any host, not any origin."""
        scheme, separator, authority = origin.partition("://")
        name = _host_name(authority)
        known = name is not None and (name in self._access.hosts or name == _host_name(host))
        return bool(separator) and scheme in ("http", "https") and known

    @staticmethod
    def _check_token(authorization: str, token: str) -> Refusal | None:
        scheme, _, given = authorization.partition(" ")
        is_correct = hmac.compare_digest(given.strip().encode("latin-1"), token.encode())  # the header's bytes
        if is_correct and scheme.lower() == "bearer":
            return None
        return Refusal(401, "A valid token is needed: send Authorization: Bearer <token>.")


def _is_page(scope: Scope) -> bool:
    """Return whether a browser requests a page."""
    accept = Headers(scope=scope).get("accept", "")
    is_get = scope["type"] == "http" and scope["method"] == "GET"
    return is_get and "text/html" in accept and not MCP_PATHS.fullmatch(scope["path"])


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _host_name(authority: str) -> str | None:
    """Return the host of `host:port` in lower case and without brackets, or None if it is invalid."""
    match = AUTHORITY.fullmatch(authority.lower())
    return (match[1] or match[2]) if match else None


def _respond(refusal: Refusal) -> JSONResponse:
    error = wire.ErrorData(code=wire.INVALID_REQUEST, message=refusal.message)
    headers = {"WWW-Authenticate": 'Bearer realm="bedstone"'} if refusal.status == UNAUTHORIZED else None
    return JSONResponse(failure(None, error), refusal.status, headers)
