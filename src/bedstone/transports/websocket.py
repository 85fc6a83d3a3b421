"""WebSocket: one JSON-RPC message per text frame, both eras."""

import json
from contextlib import suppress
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from starlette.websockets import WebSocket, WebSocketDisconnect

from bedstone.transports.jsonrpc import Malformed, MessageStream, failure, parse

SUBPROTOCOL = "mcp"
UNSUPPORTED_DATA = 1003  # a close code of RFC 6455


async def serve_websocket(server: Server[Any], socket: WebSocket) -> None:
    """Serve one client until it disconnects."""
    await socket.accept(SUBPROTOCOL if SUBPROTOCOL in socket.scope["subprotocols"] else None)
    stream = WebSocketStream(socket)
    await server.run(stream, stream, server.create_initialization_options())


class WebSocketStream(MessageStream):
    """A socket as the stream that the SDK reads from and writes to."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._write_lock = anyio.Lock()
        self._has_ended = False

    async def receive(self) -> SessionMessage:
        """Return the next message; answer malformed frames with an error."""
        while not self._has_ended:
            frame = await self._socket.receive()
            text = frame.get("text")
            if frame["type"] == "websocket.disconnect":
                self._has_ended = True
            elif text is None:
                self._has_ended = True
                await self._socket.close(UNSUPPORTED_DATA, "Send JSON-RPC messages as text frames")
            else:
                try:
                    return parse(text)
                except Malformed as malformed:
                    with suppress(anyio.BrokenResourceError):
                        await self._write(json.dumps(failure(malformed.request_id, malformed.error)))
        raise anyio.EndOfStream

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message as one frame."""
        await self._write(item.message.model_dump_json(by_alias=True, exclude_unset=True))

    async def _write(self, text: str) -> None:
        try:
            async with self._write_lock:
                await self._socket.send_text(text)
        except (WebSocketDisconnect, RuntimeError):  # Starlette raises either when the client has disconnected
            raise anyio.BrokenResourceError from None
