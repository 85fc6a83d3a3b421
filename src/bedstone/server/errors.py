"""Errors of toolsets that no reply can carry, as protocol errors."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import mcp_types as wire
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from bedstone.errors import BedstoneError, InvalidInput, NotFound
from bedstone.server.context import Context

logger = logging.getLogger(__name__)

Params = TypeVar("Params")
Answer = TypeVar("Answer")
SERVER_ERROR = -32000  # the first code that JSON-RPC leaves to servers


def translate_errors(
    handler: Callable[[Context, Params], Awaitable[Answer]],
) -> Callable[[Context, Params], Awaitable[Answer]]:
    """Wrap a handler: a caller's error keeps its message, and a result that does not fit its model is a defect."""

    async def run(ctx: Context, params: Params) -> Answer:
        try:
            return await handler(ctx, params)
        except BedstoneError as error:
            code = wire.INVALID_PARAMS if isinstance(error, InvalidInput | NotFound) else SERVER_ERROR
            raise MCPError(code, error.message, {"error_type": error.code}) from None
        except ValidationError:
            logger.exception("%s failed", ctx.method, extra={"action": "request_failed"})
            raise MCPError(wire.INTERNAL_ERROR, "Internal error") from None

    return run


async def hide_internals(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Middleware: log unexpected exceptions and keep their text from the client."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except Exception:
        logger.exception("%s failed", ctx.method, extra={"action": "request_failed"})
        raise MCPError(wire.INTERNAL_ERROR, "Internal error") from None
