"""Protocol errors: what no reply can carry, with `error_type` and `details` in the data of each."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

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
RESOURCE_NOT_FOUND = -32002  # before 2026-07-28, which uses invalid params instead
ERROR_TYPES = {
    wire.PARSE_ERROR: "parse_error",
    wire.INVALID_REQUEST: "invalid_request",
    wire.METHOD_NOT_FOUND: "method_not_found",
    wire.INVALID_PARAMS: "validation_error",
    wire.INTERNAL_ERROR: "internal_error",
    RESOURCE_NOT_FOUND: "resource_not_found",
}
MAX_PROBLEMS = 10  # that one error lists


def error_data(code: int, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the data of an error as the knowledge contract prints it."""
    return {"error_type": ERROR_TYPES.get(code, "protocol_error"), "details": dict(details or {})}


def translate_errors(
    handler: Callable[[Context, Params], Awaitable[Answer]],
) -> Callable[[Context, Params], Awaitable[Answer]]:
    """Wrap a handler: a caller's error keeps its message, and a result that does not fit its model is a defect."""

    async def run(ctx: Context, params: Params) -> Answer:
        try:
            return await handler(ctx, params)
        except BedstoneError as error:
            code = wire.INVALID_PARAMS if isinstance(error, InvalidInput | NotFound) else SERVER_ERROR
            raise MCPError(code, error.message, {"error_type": error.code, "details": error.details}) from None
        except ValidationError:
            logger.exception("%s failed", ctx.method, extra={"action": "request_failed"})
            raise MCPError(wire.INTERNAL_ERROR, "Internal error") from None

    return run


async def describe_errors(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Middleware: say what is wrong with a request; log unexpected exceptions and keep their text from the client."""
    try:
        return await call_next(ctx)
    except MCPError as error:
        code, found = error.error.code, error.error.data
        fields = found if isinstance(found, dict) else {}  # what the protocol defines for a code stays where it is
        details = fields or {"method": ctx.method}
        raise MCPError(code, error.error.message, error_data(code, details) | fields) from None
    except ValidationError as error:
        raise _invalid_params(ctx.method, error) from None
    except Exception:
        logger.exception("%s failed", ctx.method, extra={"action": "request_failed"})
        raise MCPError(wire.INTERNAL_ERROR, "Internal error", error_data(wire.INTERNAL_ERROR)) from None


def _invalid_params(method: str, error: ValidationError) -> MCPError:
    """Name the parameters that do not fit the method, without repeating their values."""
    found = error.errors(include_url=False, include_context=False, include_input=False)[:MAX_PROBLEMS]
    places = (".".join(map(str, item["loc"])).removeprefix("params.") for item in found)
    problems = [{"parameter": place, "problem": item["msg"]} for place, item in zip(places, found, strict=True)]
    listed = "; ".join(f"{item['parameter']}: {item['problem']}" for item in problems)
    return MCPError(
        wire.INVALID_PARAMS,
        f"Invalid params for {method}: {listed}",
        error_data(wire.INVALID_PARAMS, {"problems": problems}),
    )
