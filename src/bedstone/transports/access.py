"""One guard in front of every route: Host, Origin, bearer token, size of the body."""

import hmac
import logging
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from socket import gethostname
from urllib.parse import quote

import mcp_types as wire
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from bedstone.errors import InvalidSetting
from bedstone.transports.attempts import Attempts
from bedstone.transports.jsonrpc import failure
from bedstone.transports.origins import FOREIGN_SITES, LOOPBACK, Origins, host_name
from bedstone.transports.page_sessions import PageSessions, SessionRecords

logger = logging.getLogger(__name__)

OPEN_PATHS = re.compile(
    r"/healthz|/readyz|/\.well-known/oauth-protected-resource(/.*)?|/login|"
    r"/static/(tokens\.css|components\.css|icon\.svg|icons\.svg|theme\.js|app\.js)"  # what the login page needs
)
MCP_PATHS = re.compile(r"(/[\w-]+)?/(mcp|sse|messages)(/.*)?")  # for agents: page sessions do not count here
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
UNAUTHORIZED = 401
TOO_MANY_REQUESTS = 429
RATE_LIMITED = -32000  # a JSON-RPC code for servers
ANY_HOST = "*"
NAVIGATE = "navigate"


@dataclass(frozen=True)
class Access:
    """Who has access: the allowed host names and origins, and the token that every request must present."""

    hosts: Collection[str]
    token: str | None = None
    sessions: PageSessions | None = field(default=None)
    origins: Origins = field(default_factory=Origins)
    attempts: Attempts = field(default_factory=Attempts)

    @classmethod
    def for_address(
        cls,
        host: str,
        *,
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
        token: str | None = None,
        attempts: Attempts | None = None,
        session_records: SessionRecords | None = None,
    ) -> "Access":
        """Return the rules for a server bound to `host`; one that other machines can reach must have a token."""
        if not is_loopback(host) and not token:
            raise InvalidSetting(
                f"Refusing to listen on {host} without a token: everyone who can reach it could read its content. "
                "Give one with --token-file or BEDSTONE_MCP__TOKEN, or listen on 127.0.0.1."
            )
        origins = Origins.of(allowed_hosts, allowed_origins)
        names = {*LOOPBACK, host.lower(), *(name.lower() for name in allowed_hosts)}
        hosts = frozenset(names if is_loopback(host) else {*names, gethostname().lower()})
        sessions = PageSessions(token, session_records) if token else None
        return cls(hosts, token, sessions, origins, attempts or Attempts())


@dataclass(frozen=True)
class Refusal:
    status: int
    message: str
    retry_seconds: int | None = None


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
        is_mcp = MCP_PATHS.fullmatch(scope["path"]) is not None
        if refusal := self._check_page(headers, is_mcp=is_mcp):
            return refusal
        if self._access.token is None or OPEN_PATHS.fullmatch(scope["path"]):
            return None
        if not is_mcp and self._has_session(headers):
            return None
        address = scope["client"][0] if scope.get("client") else ""
        return self._check_token(headers.get("authorization", ""), self._access.token, address)

    def _check_page(self, headers: Headers, *, is_mcp: bool) -> Refusal | None:
        """Refuse other host names (DNS rebinding), and pages of other origins."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_allowed_host(host):
            return Refusal(421, f"Host not allowed: {host!r}. Add it to the setting mcp.allowed_hosts.")
        if origin is not None and not self._access.origins.allow(origin, host):
            return Refusal(
                403,
                f"Origin not allowed: {origin!r}. Add it to the setting mcp.allowed_origins, "
                "or the host name of a reverse proxy to mcp.allowed_hosts.",
            )
        is_link = not is_mcp and headers.get("sec-fetch-mode", NAVIGATE) == NAVIGATE  # no picture, no script
        if origin is None and not is_link and headers.get("sec-fetch-site") in FOREIGN_SITES:
            return Refusal(403, "A page of another origin sent this request.")
        return None

    def _has_session(self, headers: Headers) -> bool:
        sessions = self._access.sessions
        return sessions is not None and sessions.is_valid(
            cookie_parser(headers.get("cookie", "")).get(sessions.cookie, "")
        )

    def _is_allowed_host(self, authority: str) -> bool:
        return ANY_HOST in self._access.hosts or host_name(authority) in self._access.hosts

    def _check_token(self, authorization: str, token: str, address: str) -> Refusal | None:
        """Compare the token, unless the address has sent too many wrong ones. A request without one does not count."""
        attempts = self._access.attempts
        scheme, _, given = authorization.partition(" ")
        if given and (seconds := math.ceil(attempts.wait_seconds(address))):
            return Refusal(429, f"Too many wrong tokens: try again in {seconds} s.", seconds)
        is_correct = hmac.compare_digest(given.strip().encode("latin-1"), token.encode())  # the header's bytes
        if is_correct and scheme.lower() == "bearer":
            attempts.record_success(address)
            return None
        if given and not is_correct:
            attempts.record_failure(address, given)
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


def _respond(refusal: Refusal) -> JSONResponse:
    is_wait = refusal.status == TOO_MANY_REQUESTS
    error = wire.ErrorData(code=RATE_LIMITED if is_wait else wire.INVALID_REQUEST, message=refusal.message)
    headers = {"WWW-Authenticate": 'Bearer realm="bedstone"'} if refusal.status == UNAUTHORIZED else {}
    if is_wait:
        headers["Retry-After"] = str(refusal.retry_seconds)
    return JSONResponse(failure(None, error), refusal.status, headers)
