"""One JSON-RPC request in, one JSON answer out: POST /mcp/<method>, and a bare POST /mcp without a handshake."""

import json
from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as wire
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp.shared.transport_context import TransportContext
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bedstone.server import BedstoneServer
from bedstone.server.errors import RESOURCE_NOT_FOUND
from bedstone.transports.jsonrpc import Malformed, failure

VERSION = "2025-06-18"  # as the contracts print it
INITIALIZE = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "plain-http", "version": "0"}}
HTTP_STATUS = {**ERROR_CODE_HTTP_STATUS, RESOURCE_NOT_FOUND: 404, wire.INTERNAL_ERROR: 500}


class PlainEndpoint:
    """Answers single requests with the server's own handlers and middleware, without a session."""

    def __init__(self, server: BedstoneServer) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        method = request.path_params.get("method")
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        try:
            _check_media_type(request, body)
            message = _parse(body, method)
        except Malformed as malformed:
            await _json(failure(malformed.request_id, malformed.error))(scope, receive, send)
            return
        response: Response | None = None

        async def cancel_on_disconnect() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_on_disconnect)
            response = await self._respond(message)
            tasks.cancel_scope.cancel()
        if response is not None:
            await response(scope, receive, send)

    async def _respond(self, message: Mapping[str, Any]) -> Response:
        method, request_id, prescribed = message["method"], message.get("id"), self._server.plain_initialize
        if method == "initialize" and "id" in message and prescribed is not None:
            return _json({"jsonrpc": "2.0", "id": request_id, "result": dict(prescribed)})
        answer = await answer_plainly(self._server, message, OneExchange(request_id))
        if answer is None:
            return Response(status_code=202)
        if method == "resources/list" and "result" in answer:
            answer["result"] = {"nextCursor": None} | answer["result"]
        return _json(answer)


async def answer_plainly(
    server: BedstoneServer, message: Mapping[str, Any], exchange: "OneExchange"
) -> dict[str, Any] | None:
    """Answer one message without a handshake; a notification has no answer."""
    method = message["method"]
    # Null means absent here: contracts print "cursor": null.
    params = {key: value for key, value in (message.get("params") or {}).items() if value is not None}
    connection = Connection.from_envelope(VERSION, None, None)
    if "id" not in message:
        await ServerRunner(server, connection, {}).on_notify(exchange, method, params)
        return None
    if method == "initialize":
        params = INITIALIZE | params
    try:
        result = await serve_one(server, exchange, method, params, connection=connection, lifespan_state={})
    except MCPError as error:
        return failure(message["id"], error.error)
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


class OneExchange:
    """A dispatch context without a channel back to the client."""

    transport = TransportContext(kind="plain-http", can_send_request=False)
    can_send_request = False
    message_metadata = None

    def __init__(self, request_id: wire.RequestId | None) -> None:
        self.request_id = request_id
        self.cancel_requested = anyio.Event()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Discard the notification."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Discard the report."""


def _check_media_type(request: Request, body: bytes) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and media_type != "application/json":
        raise Malformed(wire.INVALID_REQUEST, "Invalid Request: send Content-Type: application/json")


def _parse(body: bytes, method: str | None) -> dict[str, Any]:
    """Parse the message.

    On POST /mcp/<method> the path can replace the method and bare params the whole message. There a message without an
    id is answered too, unless the method is a notification.
    """
    try:
        message = from_json(body or b"{}")
    except ValueError:
        raise Malformed(wire.PARSE_ERROR, "Parse error: the body is not valid JSON") from None
    if method is not None and isinstance(message, dict):
        if not {"jsonrpc", "id", "method", "params"} & set(message):
            message = {"jsonrpc": "2.0", "params": message}
        if not method.startswith("notifications/") and method != "tools/cancel":
            message.setdefault("id", None)
        if message.setdefault("method", method) != method:
            problem = f"Invalid Request: the path says {method}, the body says {message['method']}"
            raise Malformed(wire.INVALID_REQUEST, problem, Malformed.of(message).request_id)
    if not _is_message(message):
        raise Malformed.of(message)
    return dict(message)


def _is_message(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
        and isinstance(message.get("params") or {}, dict)
        and isinstance(message.get("id"), str | int | None)
        and not isinstance(message.get("id"), bool)
    )


def _json(message: dict[str, Any]) -> Response:
    error = message.get("error")
    status = HTTP_STATUS.get(error["code"], 200) if error else 200
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return Response(body, status, media_type="application/json")
