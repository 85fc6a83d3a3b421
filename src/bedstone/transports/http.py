"""The ASGI application: the hub at /mcp, each toolset alone at /<label>/mcp, health, and the page."""

import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import RequestBodyLimitMiddleware
from pydantic_core import from_json
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
    managers = [StreamableHTTPSessionManager(server, json_response=json_response) for server in servers.values()]
    routes: list[BaseRoute] = [Route("/healthz", _health), Route("/readyz", _ready)]
    for (prefix, server), manager in zip(servers.items(), managers, strict=True):
        routes += _server_routes(prefix, server, manager, transports)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            for manager in managers:
                await running.enter_async_context(manager.run())
            yield
            for server in servers.values():
                server.stop_listening()

    app = Starlette(routes=[*routes, *pages], lifespan=lifespan)
    app.state.servers = [server.name for server in servers.values()]
    return Guard(app, access)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, or a sentence about why not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only for sockets that say they are TCP; left on, every answer waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise InvalidSetting(
            f"Cannot listen on {host}:{port}: {error.strerror}. Choose another port with --port."
        ) from error
    return listener


def _server_routes(
    prefix: str, server: BedstoneServer, manager: StreamableHTTPSessionManager, transports: Sequence[str]
) -> list[BaseRoute]:
    routes: list[BaseRoute] = []
    if "http" in transports:
        plain = RequestBodyLimitMiddleware(PlainEndpoint(server), MAX_BODY_BYTES)
        routes += [
            Route(f"{prefix}/mcp", StreamableEndpoint(manager, plain)),
            Route(f"{prefix}/mcp/{{method:path}}", plain, methods=["POST"]),
        ]
    if "ws" in transports:

        async def websocket(socket: WebSocket) -> None:
            await serve_websocket(server, socket)

        routes.append(WebSocketRoute(f"{prefix}/mcp", websocket))
    if "sse" in transports:
        routes += sse_routes(prefix, server)
    return routes


class StreamableEndpoint:
    """Streamable HTTP by the SDK; requests that never shook hands go to the plain door."""

    def __init__(self, manager: StreamableHTTPSessionManager, plain: ASGIApp) -> None:
        self._plain = plain
        self._streamable = RequestBodyLimitMiddleware(self._route, MAX_BODY_BYTES)
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if scope["method"] != "POST" or any(header in headers for header in SESSION_HEADERS):
            await self._manager.handle_request(scope, receive, send)
        elif "text/event-stream" not in headers.get("accept", ""):
            await self._plain(scope, receive, send)
        else:
            await self._streamable(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Only `initialize` may open a session; the limit middleware has the body ready to be replayed."""
        body = await receive()
        replayed = False

        async def replay() -> Any:
            nonlocal replayed
            if replayed:
                return await receive()
            replayed = True
            return body

        opens_session = _method(body.get("body", b"")) == "initialize"
        await (self._manager.handle_request if opens_session else self._plain)(scope, replay, send)


def _method(body: bytes) -> Any:
    try:
        message = from_json(body)
    except ValueError:
        return None
    return message.get("method") if isinstance(message, dict) else None


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok", "name": "bedstone", "version": __version__})


async def _ready(request: Request) -> Response:
    return JSONResponse({"status": "ready", "servers": request.app.state.servers})
