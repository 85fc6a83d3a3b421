"""The ASGI application: the hub at /mcp, each toolset alone at /<label>/mcp, health, and the page."""

import errno
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import mcp_types as wire
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from bedstone import __version__
from bedstone.errors import InvalidSetting
from bedstone.server import BedstoneServer
from bedstone.transports.access import Access, Guard
from bedstone.transports.jsonrpc import Malformed, failure, parse
from bedstone.transports.plain import PlainEndpoint
from bedstone.transports.sse import sse_routes
from bedstone.transports.websocket import serve_websocket

NETWORK_TRANSPORTS = ("http", "sse", "ws")
MAX_BODY_BYTES = 4 * 1024 * 1024
SESSION_HEADERS = ("mcp-session-id", "mcp-protocol-version")


def build_http_app(
    servers: Mapping[str, BedstoneServer],
    access: Access,
    *,
    transports: Sequence[str] = NETWORK_TRANSPORTS,
    json_response: bool = False,
    pages: Sequence[BaseRoute] = (),
) -> ASGIApp:
    """Serve each server under its prefix ("" is the hub) over the chosen transports."""
    distinct = list(dict.fromkeys(servers.values()))  # a toolset may have two spellings of its address
    managers = {server: StreamableHTTPSessionManager(server, json_response=json_response) for server in distinct}
    routes: list[BaseRoute] = [Route("/healthz", _health), Route("/readyz", _ready)]
    for prefix, server in servers.items():
        routes += _server_routes(prefix, server, managers[server], transports)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            for manager in managers.values():
                await running.enter_async_context(manager.run())
            yield
            for server in distinct:
                server.stop_listening()

    app = Starlette(routes=[*routes, *pages], lifespan=lifespan)
    app.state.servers = distinct
    return Guard(app, access)


def listen(host: str, port: int, option: str = "--port") -> socket.socket:
    """A listening socket, or a sentence about why not, and which option to change."""
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only for sockets that say they are TCP; left on, every answer waits 40 ms.
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
    prefix: str, server: BedstoneServer, manager: StreamableHTTPSessionManager, transports: Sequence[str]
) -> list[BaseRoute]:
    routes: list[BaseRoute] = []
    if "http" in transports:
        plain = RequestBodyLimitMiddleware(PlainEndpoint(server), MAX_BODY_BYTES)
        routes += [
            *(Route(f"{prefix}/mcp{slash}", StreamableEndpoint(manager, plain)) for slash in ("", "/")),
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
    """Streamable HTTP by the SDK; requests that never shook hands go to the plain door."""

    def __init__(self, manager: StreamableHTTPSessionManager, plain: ASGIApp) -> None:
        self._plain = plain
        self._manager = manager
        self._checked = RequestBodyLimitMiddleware(self._check, MAX_BODY_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        accept = ",".join(headers.getlist("accept")).lower()
        # The SDK reads one line of the header, in lower case.
        others = [pair for pair in scope["headers"] if pair[0] != b"accept"]
        scope = {**scope, "headers": [*others, (b"accept", accept.encode("latin-1"))] if accept else others}
        in_session = any(header in headers for header in SESSION_HEADERS)
        if scope["method"] != "POST":
            await self._manager.handle_request(scope, receive, send)
        elif in_session or "text/event-stream" in accept:
            await self._checked(scope, receive, send)
        else:
            await self._plain(scope, receive, send)

    async def _check(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is no message ourselves: the SDK would print its parser's findings.

        Only `initialize` may open a session. The limit middleware has gathered the body into one event.
        """
        body = await receive()
        try:
            message = parse(body.get("body", b"")).message
        except Malformed as malformed:
            await JSONResponse(failure(malformed.request_id, malformed.error), 400)(scope, receive, send)
            return
        replayed = False

        async def replay() -> Any:
            nonlocal replayed
            if replayed:
                return await receive()
            replayed = True
            return body

        in_session = any(header in Headers(scope=scope) for header in SESSION_HEADERS)
        opens = isinstance(message, wire.JSONRPCRequest) and message.method == "initialize"
        await (self._manager.handle_request if in_session or opens else self._plain)(scope, replay, send)


async def _health(_: Request) -> Response:
    build = {"name": "bedstone", "version": __version__}
    return JSONResponse({"status": "ok", **build, "build": build})


async def _ready(request: Request) -> Response:
    problems = sorted({problem for server in request.app.state.servers for problem in server.problems()})
    names = [server.name for server in request.app.state.servers]
    state = {"status": "not ready" if problems else "ready", "servers": names, "problems": problems}
    return JSONResponse(state, 503 if problems else 200)
