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
MCP_PATHS = re.compile(r"(/[\w-]+)?/(mcp|sse|messages)(/.*)?")  # what agents use: only the token itself opens it
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
UNAUTHORIZED = 401
ANY_HOST = "*"
AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?")


class PageSessions:
    """Browsers whose people have shown the token: their cookies say so, and do not give it away.

    Nothing is kept of them, so that they outlive a restart; only of those that logged out, while the server runs.
    """

    cookie = "bedstone_page"

    def __init__(self, token: str) -> None:
        self._key = token.encode()
        self._ended: set[str] = set()

    def begin(self) -> str:
        """The cookie of another browser."""
        name = secrets.token_hex(16)
        return f"{name}.{self._signature(name)}"

    def end(self, cookie: str) -> None:
        """A cookie is worth nothing from now on."""
        if self.is_valid(cookie):
            self._ended.add(cookie)

    def is_valid(self, cookie: str) -> bool:
        """Whether a cookie is one of ours."""
        name, _, signature = cookie.partition(".")
        return hmac.compare_digest(signature.encode(), self._signature(name).encode()) and cookie not in self._ended

    def _signature(self, name: str) -> str:
        return hmac.new(self._key, f"bedstone page {name}".encode(), sha256).hexdigest()


@dataclass(frozen=True)
class Access:
    """Who may come in: the host names we answer to, and the token everybody must show, agents at each call."""

    hosts: Collection[str]
    token: str | None = None
    sessions: PageSessions | None = field(default=None)

    @classmethod
    def for_address(cls, host: str, *, allowed_hosts: Sequence[str] = (), token: str | None = None) -> "Access":
        """The rules for a server bound to `host`; a server that others can reach must have a token."""
        if not is_loopback(host) and not token:
            raise InvalidSetting(
                f"Refusing to listen on {host} without a token: everybody who reaches it could read what it knows. "
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
            asked = b"?" + scope["query_string"] if scope.get("query_string") else b""
            following = quote(path.partition(b"?")[0] + asked, safe="/")
            await RedirectResponse(f"/login?next={following}", 303)(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": refusal.message})  # becomes HTTP 403
        else:
            await _respond(refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Refusal | None:
        if CONTROL.search(scope["path"]):  # patterns of routes end before a last line feed, and ours do not
            return Refusal(400, "The path holds characters that no address of ours has.")
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_ours(host):
            return Refusal(421, f"Host not allowed: {host!r}. Add it to the setting mcp.allowed_hosts.")
        if origin is not None and not self._is_our_origin(origin, host):
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

    def _is_ours(self, authority: str) -> bool:
        return ANY_HOST in self._access.hosts or _host_name(authority) in self._access.hosts

    def _is_our_origin(self, origin: str, host: str) -> bool:
        """A page of a host we know, or of the very host that is asked: any host is not any origin."""
        scheme, separator, authority = origin.partition("://")
        name = _host_name(authority)
        known = name is not None and (name in self._access.hosts or name == _host_name(host))
        return bool(separator) and scheme in ("http", "https") and known

    @staticmethod
    def _check_token(authorization: str, token: str) -> Refusal | None:
        scheme, _, given = authorization.partition(" ")
        right = hmac.compare_digest(given.strip().encode("latin-1"), token.encode())  # as the header came in
        if right and scheme.lower() == "bearer":
            return None
        return Refusal(401, "A valid token is needed: send Authorization: Bearer <token>.")


def _is_page(scope: Scope) -> bool:
    """Whether a browser asks for a page, for a person to see."""
    wants = Headers(scope=scope).get("accept", "")
    is_read = scope["type"] == "http" and scope["method"] == "GET"
    return is_read and "text/html" in wants and not MCP_PATHS.fullmatch(scope["path"])


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _host_name(authority: str) -> str | None:
    """The host of `host:port`, in lower case and without brackets; anything odd is nobody's host."""
    match = AUTHORITY.fullmatch(authority.lower())
    return (match[1] or match[2]) if match else None


def _respond(refusal: Refusal) -> JSONResponse:
    error = wire.ErrorData(code=wire.INVALID_REQUEST, message=refusal.message)
    headers = {"WWW-Authenticate": 'Bearer realm="bedstone"'} if refusal.status == UNAUTHORIZED else None
    return JSONResponse(failure(None, error), refusal.status, headers)
