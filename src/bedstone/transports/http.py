"""The ASGI application: the hub at /mcp, each toolset at /<label>/mcp, health checks and pages."""

import errno
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import mcp_types as wire
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from bedstone import __version__
from bedstone.errors import InvalidSetting
from bedstone.server import BedstoneServer
from bedstone.settings import LimitSettings
from bedstone.transports.access import Access, Guard
from bedstone.transports.jsonrpc import Malformed, failure, request_method
from bedstone.transports.plain import PlainEndpoint
from bedstone.transports.sessions import SessionLimits
from bedstone.transports.sse import sse_routes
from bedstone.transports.websocket import serve_websocket

NETWORK_TRANSPORTS = ("http", "sse", "ws")
MAX_BODY_BYTES = 4 * 1024 * 1024
SESSION_HEADERS = (b"mcp-session-id", b"mcp-protocol-version")


def build_http_app(
    servers: Mapping[str, BedstoneServer],
    access: Access,
    *,
    transports: Sequence[str] = NETWORK_TRANSPORTS,
    json_response: bool = False,
    stateless: bool = False,
    pages: Sequence[BaseRoute] = (),
    limits: LimitSettings | None = None,
) -> ASGIApp:
    """Serve each server under its prefix ("" is the hub) over the chosen transports."""
    distinct = list(dict.fromkeys(servers.values()))  # one toolset can have two addresses
    limits = limits or LimitSettings()
    managers = {
        server: StreamableHTTPSessionManager(
            server,
            json_response=json_response,
            stateless=stateless,
            session_idle_timeout=limits.session_idle_seconds,
            max_sessions=None,
        )
        for server in distinct
    }
    sessions = SessionLimits(limits)
    routes: list[BaseRoute] = []
    for prefix, server in servers.items():
        routes += _server_routes(prefix, server, managers[server], transports, sessions)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            for manager in managers.values():
                await running.enter_async_context(manager.run())
            yield
            for server in distinct:
                server.stop_listening()

    routes += [Route("/healthz", _health), Route("/readyz", _ready), *pages]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.servers = distinct
    guarded = Guard(app, access)
    if not access.origins.configured:
        return guarded
    return CORSMiddleware(
        guarded,
        allow_origins=list(access.origins.configured),
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["Mcp-Session-Id"],
    )


def listen(host: str, port: int, option: str = "--port (make run PORT=...)") -> socket.socket:
    """Return a listening socket, or raise an error that names the option to change."""
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only on sockets created with IPPROTO_TCP; enabled, it delays answers by 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        advice = f"Choose another with {option}" if error.errno == errno.EADDRINUSE else f"Check --host and {option}"
        raise InvalidSetting(f"Cannot listen on {host}, port {port}: {error.strerror}. {advice}.") from error
    return listener


def _server_routes(
    prefix: str,
    server: BedstoneServer,
    manager: StreamableHTTPSessionManager,
    transports: Sequence[str],
    sessions: SessionLimits,
) -> list[BaseRoute]:
    routes: list[BaseRoute] = []
    if "http" in transports:
        plain = RequestBodyLimitMiddleware(PlainEndpoint(server), MAX_BODY_BYTES)
        routes += [
            *(Route(f"{prefix}/mcp{slash}", StreamableEndpoint(manager, plain, sessions)) for slash in ("", "/")),
            Route(f"{prefix}/mcp/{{method:path}}", plain, methods=["POST"]),
        ]
    if "ws" in transports:

        async def websocket(socket: WebSocket) -> None:
            await serve_websocket(server, socket)

        routes += [WebSocketRoute(f"{prefix}/mcp{slash}", websocket) for slash in ("", "/")]
    if "sse" in transports:
        routes += sse_routes(prefix, server)
    return routes


class StreamableEndpoint:
    """Streamable HTTP by the SDK; requests without a handshake go to the plain endpoint."""

    def __init__(self, manager: StreamableHTTPSessionManager, plain: ASGIApp, sessions: SessionLimits) -> None:
        self._plain = plain
        self._sessions = sessions
        self._streamable = manager.asgi_app
        self._is_stateless = manager.stateless  # no stream to open, and no session to end
        self._checked = RequestBodyLimitMiddleware(self._check, MAX_BODY_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        accept = _accepted_types(scope)
        scope = _with_accept(scope, accept)
        if scope["method"] != "POST" and self._is_stateless:
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
        elif scope["method"] != "POST":
            await self._sessions.serve(self._streamable, scope, receive, send)
        elif _is_in_session(scope) or b"text/event-stream" in accept:
            await self._checked(scope, receive, send)
        else:
            await self._plain(scope, receive, send)

    async def _check(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer malformed messages, for which the SDK would print its parser's findings.

        Only `initialize` may open a session. The limit middleware has joined the body into one event.
        """
        body = await receive()
        try:
            method = request_method(body.get("body", b""))
        except Malformed as malformed:
            await JSONResponse(failure(malformed.request_id, malformed.error), 400)(scope, receive, send)
            return
        is_replayed = False

        async def replay() -> Any:
            nonlocal is_replayed
            if is_replayed:
                return await receive()
            is_replayed = True
            return body

        app = self._streamable.app  # the size of the body is checked already
        if _is_in_session(scope):
            await self._sessions.serve(app, scope, replay, send)
        elif method != "initialize":
            await self._plain(scope, replay, send)
        elif not await self._sessions.open(app, scope, replay, send):
            error = wire.ErrorData(code=wire.INTERNAL_ERROR, message="All sessions are busy: try again soon.")
            await JSONResponse(failure(None, error), 503, {"Retry-After": "1"})(scope, receive, send)


def _is_in_session(scope: Scope) -> bool:
    return any(name in SESSION_HEADERS for name, _ in scope["headers"])


def _accepted_types(scope: Scope) -> bytes:
    return b",".join(value for name, value in scope["headers"] if name == b"accept").lower()


def _with_accept(scope: Scope, accept: bytes) -> Scope:
    """Return the scope with one lower-case Accept header, which is all that the SDK reads."""
    if not accept or (b"accept", accept) in scope["headers"]:
        return scope
    others = [pair for pair in scope["headers"] if pair[0] != b"accept"]
    return {**scope, "headers": [*others, (b"accept", accept)]}


async def _health(_: Request) -> Response:
    build = {"name": "bedstone", "version": __version__}
    return JSONResponse({"status": "ok", **build, "build": build})


async def _ready(request: Request) -> Response:
    toolsets = dict.fromkeys(toolset for server in request.app.state.servers for toolset in server.toolsets)
    problems = sorted({f"{toolset.label}: {problem}" for toolset in toolsets for problem in await toolset.check()})
    names = [server.name for server in request.app.state.servers]
    state = {"status": "not ready" if problems else "ready", "servers": names, "problems": problems}
    return JSONResponse(state, 503 if problems else 200)
