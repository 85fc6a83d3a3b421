"""Incoming JSON-RPC messages: parsing, errors for malformed ones, and the stream the SDK reads them from."""

import json
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

import anyio
import mcp_types as wire
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import from_json

from bedstone.server.errors import error_data


class Malformed(Exception):
    """An invalid JSON-RPC message: the error to answer with, and the id of the message if it has one."""

    def __init__(self, code: int, message: str, request_id: wire.RequestId | None = None) -> None:
        super().__init__(message)
        self.error = wire.ErrorData(code=code, message=message)
        self.request_id = request_id

    @classmethod
    def because(cls, error: ValidationError) -> "Malformed":
        """Tell invalid JSON from JSON that is not a request, by the findings of the SDK's parser."""
        problems = error.errors(include_url=False, include_context=False)
        if problems[0]["type"] == "json_invalid":
            return cls(
                wire.PARSE_ERROR, "Parse error: the message is not valid JSON", _id_in_text(problems[0]["input"])
            )
        # The parser tries every kind of message; its finding about a missing field carries the whole message.
        message = next((item["input"] for item in problems if item["type"] in ("missing", "model_type")), None)
        return cls.of(message)

    @classmethod
    def of(cls, message: Any) -> "Malformed":
        """Explain why JSON is not a request."""
        if isinstance(message, list):
            return cls(wire.INVALID_REQUEST, "Invalid Request: batches are not supported; send one message at a time")
        if not isinstance(message, dict):
            return cls(wire.INVALID_REQUEST, "Invalid Request: the message is not an object")
        request_id = message.get("id")
        if "id" in message and not _is_id(request_id):
            return cls(wire.INVALID_REQUEST, "Invalid Request: id must be a string or an integer")
        return cls(
            wire.INVALID_REQUEST,
            'Invalid Request: "jsonrpc" must be "2.0", "method" a string, and "params", if any, an object',
            request_id,
        )


def parse(text: str | bytes) -> SessionMessage:
    """Parse one JSON-RPC message, or raise `Malformed`."""
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as error:
        raise Malformed.because(error) from None
    if isinstance(message, wire.JSONRPCNotification) and "id" in from_json(text):
        raise Malformed.of(from_json(text))  # the SDK reads a request with an invalid id as a notification
    return SessionMessage(message)


def request_method(text: bytes) -> str | None:
    """Return the method of a request, None for other messages, or raise `Malformed`."""
    try:
        request = from_json(text)
    except ValueError:
        request = None
    # The SDK validates requests again: a check of the envelope costs a third of `parse`.
    if isinstance(request, dict) and request.get("jsonrpc") == "2.0" and _is_id(request.get("id")):
        method = request.get("method")
        if isinstance(method, str) and isinstance(request.get("params"), dict | None):
            return method
    message = parse(text).message
    return message.method if isinstance(message, wire.JSONRPCRequest) else None


def _id_in_text(text: Any) -> wire.RequestId | None:
    """Return the id of a message that is almost JSON, for instance with lone surrogates."""
    try:
        request_id = json.loads(text)["id"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return request_id if _is_id(request_id) else None


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def failure(request_id: wire.RequestId | None, error: wire.ErrorData) -> dict[str, Any]:
    """Return an error response as JSON; the id is null if the request's could not be read."""
    body = error.model_dump(mode="json", exclude_none=True)
    body.setdefault("data", error_data(error.code))
    return {"jsonrpc": "2.0", "id": request_id, "error": body}


class MessageStream(ABC):
    """A stream of messages as the SDK expects it; a transport implements how they arrive."""

    @abstractmethod
    async def receive(self) -> SessionMessage:
        """Return the next message, or raise `anyio.EndOfStream`."""

    async def aclose(self) -> None:
        """Close the transport, if it needs that."""
        return

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()
