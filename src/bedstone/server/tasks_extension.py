"""The Tasks extension of 2026-07-28: a long call is answered with a task, which the client polls."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import mcp_types as wire
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from pydantic import Field

from bedstone.errors import UnknownTask
from bedstone.server.context import Context, is_modern
from bedstone.server.wire import call_result
from bedstone.toolkit import TaskView, Toolset

EXTENSION = "io.modelcontextprotocol/tasks"
TASK_TTL_MILLISECONDS = 7 * 24 * 3600 * 1000
POLL_MILLISECONDS = 500


class TaskParams(wire.RequestParams):
    task_id: str = Field(alias="taskId")


class TaskUpdateParams(TaskParams):
    input_responses: dict[str, Any] = Field(alias="inputResponses")


def supports_tasks(context: Context) -> bool:
    """Return whether the client declared the extension, in an era that has it."""
    if not is_modern(context.protocol_version):
        return False
    capabilities = context.session.client_capabilities
    return EXTENSION in ((capabilities.extensions if capabilities else None) or {})


def task_created(view: TaskView) -> dict[str, Any]:
    """Return the answer to the call that started a task."""
    return {"resultType": "task", **_task(view)}


def add_tasks(server: Server[Any], toolsets: Sequence[Toolset]) -> None:
    """Announce the extension and serve its methods; tasks never request input from the client."""
    if not any(tool.background for toolset in toolsets for tool in toolset.tools.values()):
        return

    async def find(context: Context, task_id: str) -> tuple[Toolset, TaskView]:
        _check(context, task_id)
        for toolset in toolsets:
            try:
                return toolset, await toolset.task(task_id)
            except UnknownTask:
                continue
        raise MCPError(wire.INVALID_PARAMS, f"Unknown task: {task_id}")

    async def get(context: Context, params: TaskParams) -> dict[str, Any]:
        _, view = await find(context, params.task_id)
        return _task(view) | _outcome(view)

    async def cancel(context: Context, params: TaskParams) -> dict[str, Any]:
        toolset, _ = await find(context, params.task_id)
        await toolset.cancel_task(params.task_id)
        return {}

    async def update(context: Context, params: TaskUpdateParams) -> dict[str, Any]:
        await find(context, params.task_id)
        return {}

    server.extensions[EXTENSION] = {}
    server.add_request_handler("tasks/get", TaskParams, get)
    server.add_request_handler("tasks/cancel", TaskParams, cancel)
    server.add_request_handler("tasks/update", TaskUpdateParams, update)


def _task(view: TaskView) -> dict[str, Any]:
    fields = {
        "taskId": view.id,
        "status": view.status,
        "statusMessage": view.message,
        "createdAt": _iso(view.created),
        "lastUpdatedAt": _iso(view.updated),
        "ttlMs": TASK_TTL_MILLISECONDS,
        "pollIntervalMs": POLL_MILLISECONDS,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _outcome(view: TaskView) -> dict[str, Any]:
    if view.status == "completed" and view.reply is not None:
        return {"result": {"resultType": "complete"} | call_result(view.reply)}
    if view.status == "failed":
        return {"error": {"code": wire.INTERNAL_ERROR, "message": view.message or "Internal error"}}
    return {}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _check(context: Context, task_id: str) -> None:
    """Require the client to support tasks and, over HTTP, to name the task in its header."""
    if not supports_tasks(context):
        needed = wire.ClientCapabilities(extensions={EXTENSION: {}})
        data = wire.MissingRequiredClientCapabilityErrorData(required_capabilities=needed)
        raise MCPError(
            wire.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "Missing required client capability",
            data.model_dump(mode="json", by_alias=True, exclude_none=True),
        )
    headers = getattr(context.request, "headers", None)
    if headers is not None and decode_header_value(headers.get(MCP_NAME_HEADER)) != task_id:
        raise MCPError(wire.HEADER_MISMATCH, f"{MCP_NAME_HEADER} header does not match the request's taskId")
