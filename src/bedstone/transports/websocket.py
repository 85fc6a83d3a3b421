"""WebSocket: one JSON-RPC message per text frame, both eras."""

import json
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from starlette.websockets import WebSocket, WebSocketDisconnect

from bedstone.transports.jsonrpc import Malformed, Messages, failure, parse

SUBPROTOCOL = "mcp"
UNSUPPORTED_DATA = 1003  # a close code of RFC 6455


async def serve_websocket(server: Server[Any], socket: WebSocket) -> None:
    """Serve one client until it hangs up."""
    await socket.accept(SUBPROTOCOL if SUBPROTOCOL in socket.scope["subprotocols"] else None)
    frames = Frames(socket)
    await server.run(frames, frames, server.create_initialization_options())


class Frames(Messages):
    """A socket as the streams the SDK reads from and writes to."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._writing = anyio.Lock()

    async def receive(self) -> SessionMessage:
        """The next message, after complaining about frames that are none."""
        while True:
            frame = await self._socket.receive()
            if frame["type"] == "websocket.disconnect":
                raise anyio.EndOfStream
            text = frame.get("text")
            if text is None:
                await self._socket.close(UNSUPPORTED_DATA, "Send JSON-RPC messages as text frames")
                raise anyio.EndOfStream
            try:
                return parse(text)
            except Malformed as malformed:
                await self._write(json.dumps(failure(None, malformed.error)))

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message as one frame."""
        await self._write(item.message.model_dump_json(by_alias=True, exclude_unset=True))

    async def _write(self, text: str) -> None:
        try:
            async with self._writing:
                await self._socket.send_text(text)
        except (WebSocketDisconnect, RuntimeError):  # Starlette's two ways of saying that the client is gone
            raise anyio.BrokenResourceError from None
