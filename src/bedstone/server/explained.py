"""Errors of toolsets that no reply can carry, as protocol errors."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import mcp_types as wire
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from bedstone.errors import BedstoneError, InvalidInput, NotFound
from bedstone.server.context import Context

logger = logging.getLogger(__name__)

Params = TypeVar("Params")
Answer = TypeVar("Answer")
SERVER_ERROR = -32000  # the first of those that are a server's own


def explained(
    handler: Callable[[Context, Params], Awaitable[Answer]],
) -> Callable[[Context, Params], Awaitable[Answer]]:
    """Wrap a handler: what a caller can act on keeps its sentence; a result that does not fit its model is a defect."""

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
