"""Messages on their way in: parsing, what is said of those that are none, and the stream the SDK reads them from."""

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


class Malformed(Exception):
    """A message that is no JSON-RPC request or notification: the error to answer with, and its id if it has one."""

    def __init__(self, code: int, message: str, request_id: wire.RequestId | None = None) -> None:
        super().__init__(message)
        self.error = wire.ErrorData(code=code, message=message)
        self.request_id = request_id

    @classmethod
    def because(cls, error: ValidationError) -> "Malformed":
        """Tell text that is no JSON from JSON that is no request, by what the SDK's parser found wrong."""
        problems = error.errors(include_url=False, include_context=False)
        if problems[0]["type"] == "json_invalid":
            return cls(
                wire.PARSE_ERROR, "Parse error: the message is not valid JSON", _id_in_text(problems[0]["input"])
            )
        # The parser tries every kind of message; for some kind a whole field is missing, and there it shows all of it.
        message = next((item["input"] for item in problems if item["type"] in ("missing", "model_type")), None)
        return cls.of(message)

    @classmethod
    def of(cls, message: Any) -> "Malformed":
        """What is wrong with JSON that is no request."""
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
    """One JSON-RPC message, or `Malformed`."""
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as error:
        raise Malformed.because(error) from None
    if isinstance(message, wire.JSONRPCNotification) and "id" in from_json(text):
        raise Malformed.of(from_json(text))  # the SDK takes a request with an odd id for a notification
    return SessionMessage(message)


def _id_in_text(text: Any) -> wire.RequestId | None:
    """The id of a message that is nearly JSON: lone surrogates, for instance."""
    try:
        request_id = json.loads(text)["id"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return request_id if _is_id(request_id) else None


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def failure(request_id: wire.RequestId | None, error: wire.ErrorData) -> dict[str, Any]:
    """An error response as plain JSON; the id is null when the request's could not be read."""
    body = error.model_dump(mode="json", exclude_none=True)
    return {"jsonrpc": "2.0", "id": request_id, "error": body}


class Messages(ABC):
    """A stream of messages in the shape the SDK expects; a transport says how the next one arrives."""

    @abstractmethod
    async def receive(self) -> SessionMessage:
        """The next message; `anyio.EndOfStream` when there will be none."""

    async def aclose(self) -> None:
        """Close what a transport has to close, if anything."""
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
