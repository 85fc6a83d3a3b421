"""Standard input and output: one JSON-RPC message per line."""

from contextvars import Context
from typing import Any

import mcp_types as wire
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared._context_streams import ContextReceiveStream, ContextSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from bedstone.transports.jsonrpc import Malformed, Messages


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until it closes our input."""
    async with stdio_server() as (incoming, outgoing):
        lines = Lines(incoming, outgoing)
        await server.run(lines, outgoing, server.create_initialization_options())


class Lines(Messages):
    """The SDK's stream of lines, with an answer for those that are no messages; the SDK drops them in silence."""

    def __init__(
        self, incoming: ContextReceiveStream[SessionMessage | Exception], outgoing: ContextSendStream[SessionMessage]
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    @property
    def last_context(self) -> Context | None:
        """The sender's context variables, which the SDK looks for on its own streams."""
        return self._incoming.last_context

    async def receive(self) -> SessionMessage:
        """The next message, after complaining about what came before it."""
        while isinstance(item := await self._incoming.receive(), Exception):
            if not isinstance(item, ValidationError):
                raise item
            malformed = Malformed.because(item)
            answer = wire.JSONRPCError(jsonrpc="2.0", id=malformed.request_id, error=malformed.error)
            await self._outgoing.send(SessionMessage(answer))
        return item

    async def aclose(self) -> None:
        """Close the input."""
        await self._incoming.aclose()
