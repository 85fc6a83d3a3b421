"""One log line for each call: what was called, how it ended, how long it took; arguments only at debug."""

import json
import logging
import re
import time
from collections.abc import Mapping
from typing import Any

from anyio import get_cancelled_exc_class
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError

from bedstone.server.context import Context

logger = logging.getLogger(__name__)

# The requests that people look for, with the parameter that names what was called; others are logged at debug.
NAMES = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}
# Fields of structured content that hold the results of a search.
RESULTS = ("results", "hits", "articles", "records", "documents")
ERROR_NAME = re.compile(r"[a-z][a-z_]+")
MAX_NAME_CHARACTERS = 200
MAX_ARGUMENT_CHARACTERS = 2_000


async def log_calls(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Middleware: log every request with its outcome."""
    started = time.perf_counter()
    outcome: dict[str, Any] = {"outcome": "cancelled"}
    try:
        result = await call_next(ctx)
        outcome = _outcome(result)
    except get_cancelled_exc_class():
        raise
    except MCPError as error:
        outcome = {"outcome": "failed", "code": error.error.code}
        raise
    finally:
        _log_request(ctx, outcome, (time.perf_counter() - started) * 1000)
    return result


def log_call(
    method: str, name: str, outcome: Mapping[str, Any], milliseconds: float, level: int = logging.INFO
) -> None:
    """Log a call of an agent or of the page with its outcome and its figures."""
    facts = {"method": method, "name": name or None, **outcome, "milliseconds": round(milliseconds, 1)}
    details = ", ".join(f"{key} {facts[key]}" for key in ("error", "code", "results", "characters") if key in facts)
    logger.log(
        level,
        "%s: %s in %.1f ms%s",
        " ".join(filter(None, (method, name))),
        outcome["outcome"],
        milliseconds,
        f" ({details})" if details else "",
        extra={"action": "call", "facts": facts},
    )


def _log_request(ctx: Context, outcome: Mapping[str, Any], milliseconds: float) -> None:
    is_call = ctx.method in NAMES or outcome["outcome"] == "failed"
    level = logging.INFO if is_call and ctx.request_id is not None else logging.DEBUG
    if not logger.isEnabledFor(level):
        return
    params = ctx.params or {}
    name = str(params.get(NAMES.get(ctx.method, ""), ""))[:MAX_NAME_CHARACTERS]
    log_call(ctx.method, name, outcome, milliseconds, level)
    if params and logger.isEnabledFor(logging.DEBUG):
        arguments = json.dumps(params, ensure_ascii=False, default=str)[:MAX_ARGUMENT_CHARACTERS]
        logger.debug("%s with %s", ctx.method, arguments, extra={"action": "call_arguments"})


def _outcome(result: HandlerResult) -> dict[str, Any]:
    """Return how a call ended, by its result: the name of its error, or how much it returned."""
    if not isinstance(result, dict) or not isinstance(result.get("content"), list):
        return {"outcome": "ok"}
    text = "".join(block.get("text", "") for block in result["content"])
    if result.get("isError"):
        name = _error_name(text)
        return {"outcome": "error", "error": name} if name else {"outcome": "error"}
    structured = result.get("structuredContent") or {}
    counts = [len(structured[key]) for key in RESULTS if isinstance(structured.get(key), list)]
    return {"outcome": "ok", **({"results": counts[0]} if counts else {}), "characters": len(text)}


def _error_name(text: str) -> str | None:
    """Return the name of an error; a sentence may quote arguments, so it stays out of the log."""
    try:
        name = json.loads(text).get("error")
    except (ValueError, AttributeError):
        return None
    return name if isinstance(name, str) and ERROR_NAME.fullmatch(name) else None
