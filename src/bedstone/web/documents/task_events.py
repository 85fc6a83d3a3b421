"""Tasks of files: stream their states as they change, and cancel them."""

import json
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from bedstone.errors import UnknownTask
from bedstone.services.knowledge.next_steps import next_step
from bedstone.services.knowledge.records import AddFile
from bedstone.web.formatting import describe_length
from bedstone.web.frame import Pages

if TYPE_CHECKING:
    from bedstone.records import Task
    from bedstone.services.knowledge.service import KnowledgeBase
    from bedstone.services.service import Handle

EVENT_SECONDS = 0.3  # at least, between two looks at the tasks of a stream
EVENT_KEYS = ("status", "progress", "current_step", "position", "message")
MAX_EVENTS = 20_000  # of one stream: the browser opens another one for tasks that are still active
MAX_WATCHED = 100  # tasks of one stream: further ones have their turn in the next
MAX_STREAMS = 1_000  # threads that wait for tasks; they leave those of other requests free
MIN_REMAINING_SECONDS = 5  # less is not worth saying


def task_routes(pages: Pages) -> list[BaseRoute]:
    """Return /tasks, which streams states, and the way to cancel one."""
    base: Handle[KnowledgeBase] = pages.services["knowledge"]
    streams = anyio.CapacityLimiter(MAX_STREAMS)

    async def stream(request: Request) -> Response:
        """Stream the states of some tasks as they change, until all have finished."""
        wanted = [name for name in request.query_params.get("ids", "").split(",") if name][:MAX_WATCHED]
        events = _events(request, await base.open(), list(dict.fromkeys(wanted)), streams)
        return StreamingResponse(events, media_type="text/event-stream")

    async def cancel(request: Request) -> Response:
        pages.forms.check_change(request, None)
        task = await base.run(lambda base: base.task(str(request.path_params["id"]).lower()))
        return JSONResponse({"cancelled": await base.run(lambda base: base.cancel(task.id))})

    return [Route("/tasks", stream, methods=["GET"]), Route("/tasks/{id}/cancel", cancel, methods=["POST"])]


async def _events(
    request: Request, base: "KnowledgeBase", active: list[str], streams: anyio.CapacityLimiter
) -> AsyncIterator[str]:
    sent: dict[str, Any] = {}
    revision: int | None = None
    for _ in range(MAX_EVENTS):
        revision, states = await to_thread.run_sync(
            _next_states, base, active, revision, abandon_on_cancel=True, limiter=streams
        )
        for name, state in states.items():
            news = [state.get(key) for key in EVENT_KEYS]
            if sent.get(name) != news:
                sent[name] = news
                yield f"data: {json.dumps({'id': name, **state})}\n\n"
        active = [name for name in active if states[name].get("status") in ("queued", "running")]
        if not active or await request.is_disconnected():
            break
        await anyio.sleep(EVENT_SECONDS)
    yield "event: end\ndata: {}\n\n"


def _next_states(
    base: "KnowledgeBase", task_ids: list[str], after: int | None
) -> tuple[int, dict[str, dict[str, Any]]]:
    return base.next_revision(after), {task_id: _find_state(base, task_id) for task_id in task_ids}


def _find_state(base: "KnowledgeBase", task_id: str) -> dict[str, Any]:
    try:
        return task_state(base, base.task(task_id))
    except UnknownTask as error:
        return {"message": error.message}


def task_state(base: "KnowledgeBase", task: "Task") -> dict[str, Any]:
    """Return how far a task is, for scripts and pages."""
    state: dict[str, Any] = {
        "status": task.status,
        "progress": 1.0 if task.status == "completed" else 0.0,
        "document": AddFile.from_payload(task.payload).document_id,
    }
    if task.status == "queued":
        state["position"] = base.position(task)
        if task.retry is not None:
            state["message"] = f"{task.retry.reason}. The next attempt follows by itself."
    elif task.status == "running" and task.progress is not None:
        state |= {"progress": round(task.progress.share, 4), "current_step": task.progress.step or "Extracting text"}
        if task.progress.ends_at is not None and (rest := _describe_rest(task.progress.ends_at)):
            state["remaining"] = rest
    if task.error is not None:
        state |= {"message": task.error.message, "next_step": next_step(task.error)}
    if task.result is not None:
        state["result"] = dict(task.result)
    return state


def _describe_rest(ends_at: float) -> str:
    seconds = ends_at - time.time()
    return f"about {describe_length(seconds)} left" if seconds >= MIN_REMAINING_SECONDS else ""
