"""Messages on their way in: parsing, what is said of those that are none, and the stream the SDK reads them from."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

import anyio
import mcp_types as wire
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import ValidationError


class Malformed(Exception):
    """A message that is not JSON-RPC; carries the error to answer with."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.error = wire.ErrorData(code=code, message=message)

    @classmethod
    def because(cls, error: ValidationError) -> "Malformed":
        """Tell text that is no JSON from JSON that is no request."""
        problem = error.errors(include_url=False, include_context=False)[0]
        if problem["type"] == "json_invalid":
            return cls(wire.PARSE_ERROR, "Parse error: the message is not valid JSON")
        if isinstance(problem["input"], list):
            return cls(wire.INVALID_REQUEST, "Invalid Request: batches are not supported; send one message at a time")
        return cls(wire.INVALID_REQUEST, "Invalid Request: the message is not a JSON-RPC 2.0 request or notification")


def parse(text: str | bytes) -> SessionMessage:
    """One JSON-RPC message, or `Malformed`."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValidationError as error:
        raise Malformed.because(error) from None


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
