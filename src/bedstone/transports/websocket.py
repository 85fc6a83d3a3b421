"""WebSocket: one JSON-RPC message per text frame, both eras, and single requests without a handshake."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anyio
import mcp_types as wire
from anyio.abc import TaskGroup
from mcp.shared.dispatcher import CallOptions
from mcp.shared.message import SessionMessage
from mcp_types import PROTOCOL_VERSION_META_KEY
from starlette.websockets import WebSocket, WebSocketDisconnect

from bedstone.server import BedstoneServer
from bedstone.transports.jsonrpc import Malformed, MessageStream, failure, parse
from bedstone.transports.plain import OneExchange, answer_plainly

SUBPROTOCOL = "mcp"
UNSUPPORTED_DATA = 1003  # a close code of RFC 6455

PlainMessage = wire.JSONRPCRequest | wire.JSONRPCNotification


async def serve_websocket(server: BedstoneServer, socket: WebSocket) -> None:
    """Serve one client until it disconnects."""
    await socket.accept(SUBPROTOCOL if SUBPROTOCOL in socket.scope["subprotocols"] else None)
    async with anyio.create_task_group() as tasks:
        stream = WebSocketStream(server, socket, tasks)
        await server.run(stream, stream, server.create_initialization_options())
        tasks.cancel_scope.cancel()


class WebSocketStream(MessageStream):
    """A socket as the stream that the SDK reads from and writes to.

    Until the client opens a session, its messages are answered one by one, as POST /mcp answers them.
    """

    def __init__(self, server: BedstoneServer, socket: WebSocket, tasks: TaskGroup) -> None:
        self._server = server
        self._socket = socket
        self._tasks = tasks
        self._write_lock = anyio.Lock()
        self._plain_requests: dict[wire.RequestId, anyio.CancelScope] = {}
        self._has_session = self._has_ended = False

    async def receive(self) -> SessionMessage:
        """Return the next message of a session; answer other messages and malformed frames."""
        while not self._has_ended:
            frame = await self._socket.receive()
            text = frame.get("text")
            if frame["type"] == "websocket.disconnect":
                self._has_ended = True
            elif text is None:
                self._has_ended = True
                await self._socket.close(UNSUPPORTED_DATA, "Send JSON-RPC messages as text frames")
            elif (message := await self._parse(text)) is not None:
                self._has_session = self._has_session or _opens_session(message.message)
                if self._has_session:
                    return message
                if isinstance(message.message, PlainMessage):
                    self._tasks.start_soon(self._answer, message.message)
        raise anyio.EndOfStream

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message as one frame."""
        await self.write(item.message.model_dump_json(by_alias=True, exclude_unset=True))

    async def write(self, text: str) -> None:
        """Send a frame, unless the client has disconnected."""
        try:
            async with self._write_lock:
                await self._socket.send_text(text)
        except (WebSocketDisconnect, RuntimeError):  # Starlette raises either when the client has disconnected
            raise anyio.BrokenResourceError from None

    async def _parse(self, text: str) -> SessionMessage | None:
        try:
            return parse(text)
        except Malformed as malformed:
            with suppress(anyio.BrokenResourceError):
                await self.write(json.dumps(failure(malformed.request_id, malformed.error)))
            return None

    async def _answer(self, message: PlainMessage) -> None:
        if message.method == "notifications/cancelled":
            if scope := self._plain_requests.get((message.params or {}).get("requestId", "")):
                scope.cancel()
            return
        request_id = message.id if isinstance(message, wire.JSONRPCRequest) else None
        fields = message.model_dump(mode="json", by_alias=True, exclude_unset=True)
        with suppress(anyio.BrokenResourceError), anyio.CancelScope() as scope:
            if request_id is not None:
                self._plain_requests[request_id] = scope
            try:
                answer = await answer_plainly(self._server, fields, _SocketExchange(self, request_id, message.params))
            finally:
                self._plain_requests.pop(request_id or "", None)
            if answer is not None:
                await self.write(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


class _SocketExchange(OneExchange):
    """A dispatch context that sends notifications to the client."""

    def __init__(
        self, stream: WebSocketStream, request_id: wire.RequestId | None, params: Mapping[str, Any] | None
    ) -> None:
        super().__init__(request_id)
        self._stream = stream
        meta = (params or {}).get("_meta")
        self._progress_token = meta.get("progressToken") if isinstance(meta, dict) else None

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification."""
        await self._stream.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress to a client that sent a token."""
        if self._progress_token is not None:
            facts = {"progressToken": self._progress_token, "progress": progress, "total": total, "message": message}
            present = {name: value for name, value in facts.items() if value is not None}
            await self.notify("notifications/progress", present)


def _opens_session(message: wire.JSONRPCMessage) -> bool:
    """Return whether a message is a handshake, or carries the envelope that replaces it since 2026-07-28."""
    if not isinstance(message, wire.JSONRPCRequest):
        return False
    meta = (message.params or {}).get("_meta")
    return message.method == "initialize" or (isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta)
