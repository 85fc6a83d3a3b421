"""HTTP with server-sent events, for clients of 2024-11-05: GET /sse opens, POST /messages/ sends."""

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Scope, Send


def sse_routes(prefix: str, server: Server[Any]) -> list[BaseRoute]:
    """Return the pair of endpoints under a prefix."""
    transport = SseServerTransport(f"{prefix}/messages/")
    return [
        Route(f"{prefix}/sse", SseEndpoint(transport, server), methods=["GET"]),
        Mount(f"{prefix}/messages", transport.handle_post_message),
    ]


class SseEndpoint:
    """Serves one client per open stream."""

    def __init__(self, transport: SseServerTransport, server: Server[Any]) -> None:
        self._transport = transport
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._transport.connect_sse(scope, receive, send) as (incoming, outgoing):
            await self._server.run(incoming, outgoing, self._server.create_initialization_options())
