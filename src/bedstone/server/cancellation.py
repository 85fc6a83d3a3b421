"""The contract's tools/cancel for background tasks, as request and as notification."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import mcp_types as wire
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import Field

from bedstone.errors import UnknownTask
from bedstone.server.context import Context
from bedstone.toolkit import Toolset


class CancelRequestParams(wire.RequestParams):
    task_id: str = Field(alias="taskId")


class CancelNotificationParams(wire.NotificationParams):
    task_id: str = Field(alias="taskId")


def add_cancellation(server: Server[Any], toolsets: Sequence[Toolset]) -> None:
    """Serve tools/cancel; the SDK itself cancels requests on notifications/cancelled."""

    async def cancel(task_id: str) -> dict[str, Any]:
        for toolset in toolsets:
            try:
                is_cancelled = await toolset.cancel_task(task_id)
                return {"taskId": task_id, "cancelled": is_cancelled, **await _state(toolset, task_id)}
            except UnknownTask:
                continue
        raise MCPError(wire.INVALID_PARAMS, f"Unknown task: {task_id}")

    async def on_request(_: Context, params: CancelRequestParams) -> dict[str, Any]:
        return await cancel(params.task_id)

    async def on_notification(_: Context, params: CancelNotificationParams) -> None:
        with suppress(MCPError):  # a notification has no response to carry the error
            await cancel(params.task_id)

    server.add_request_handler("tools/cancel", CancelRequestParams, on_request)
    server.add_notification_handler("tools/cancel", CancelNotificationParams, on_notification)


async def _state(toolset: Toolset, task_id: str) -> dict[str, Any]:
    """Return what became of a task: it may have ended before, or still be stopping."""
    try:
        view = await toolset.task(task_id)
    except UnknownTask:
        return {}
    stopping = {"message": "The task is being cancelled; its work has not stopped yet."}
    return {"status": view.status, **(stopping if view.status == "working" else {})}
