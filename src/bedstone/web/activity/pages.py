"""Activity: tasks that run and wait, what is kept up to date, and what finished; updated while something runs."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bedstone.errors import BedstoneError
from bedstone.services.service import SyncFacts
from bedstone.web.formatting import MINUTE
from bedstone.web.forms import local_path, parse_form
from bedstone.web.frame import Pages, error_message
from bedstone.web.paging import Pager
from bedstone.web.wording import for_people

if TYPE_CHECKING:
    from bedstone.services.knowledge.service import KnowledgeBase
    from bedstone.services.knowledge.task_history import TaskCounts
    from bedstone.web.activity.rows import ActiveRow, DoneRow

logger = logging.getLogger(__name__)

ACTIVE_ROWS = 25  # further ones are counted
DONE_PER_PAGE = 25
STOP_SECONDS = 2.0  # to wait for work that is being stopped
OPEN_SECONDS = 1.0  # to wait for a service that is being opened
LIVE_SECONDS = 1.5  # between two looks while something runs
IDLE_SECONDS = 15
ADDRESS = "/activity"


def activity_routes(pages: Pages) -> list[BaseRoute]:
    """Return /activity, the part of it that updates itself, and what its buttons do."""
    return _Activity(pages).routes()


@dataclass(frozen=True)
class _Sync:
    """What a source keeps up to date, with the icon and the page of the source."""

    label: str
    icon: str
    address: str
    facts: SyncFacts

    @property
    def place(self) -> str:
        """Return where it comes from: of a folder the last two names."""
        origin = self.facts.origin
        return "/".join(origin.rsplit("/", 2)[1:]) if origin.startswith("/") else origin

    @property
    def is_soon(self) -> bool:
        """Return whether the next run is less than a minute away."""
        at = self.facts.next_at
        return at is not None and at.timestamp() - time.time() < MINUTE


@dataclass(frozen=True)
class _Tasks:
    """The tasks to show, and how many there are of each kind."""

    counts: "TaskCounts"
    active: "Sequence[ActiveRow]"
    done: "Sequence[DoneRow]"
    pages: Pager
    failed_only: bool

    @property
    def hidden(self) -> int:
        """Return how many tasks wait that are not shown."""
        return max(0, self.counts.running + self.counts.queued - len(self.active))


class _Activity:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._reading: dict[str, asyncio.Task[Sequence[SyncFacts]]] = {}
        self._menu_reading: asyncio.Task[None] | None = None

    def routes(self) -> list[BaseRoute]:
        return [
            Route(ADDRESS, self.show, methods=["GET"]),
            Route(f"{ADDRESS}/live", self.show_live, methods=["GET"]),
            Route(f"{ADDRESS}/sync", self.sync, methods=["POST"]),
            Route(f"{ADDRESS}/sync/{{label}}", self.sync, methods=["POST"]),
            Route(f"{ADDRESS}/tasks/{{id}}/stop", self.stop, methods=["POST"]),
            Route(f"{ADDRESS}/tasks/{{id}}/retry", self.retry, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        # What the menu counts must not contradict the page.
        self._menu_reading = asyncio.create_task(self._pages.menu.read())
        await asyncio.wait([self._menu_reading], timeout=OPEN_SECONDS)
        return self._pages.render(request, "activity.html", page="activity", **await self._view(request))

    async def show_live(self, request: Request) -> Response:
        """Return the content of the page as it is now; a script puts it in place of the old one."""
        csrf = self._pages.forms.csrf_token(request)
        return self._pages.render_fragment("activity_live.html", csrf=csrf, **await self._view(request))

    async def sync(self, request: Request) -> Response:
        """Begin the syncs of a source, or one of them by its name, or all of all sources."""
        form = await self._read_change(request)
        label = request.path_params.get("label")
        if label is not None:
            await self._begin(label, form.get("name", ""))
        else:
            await self._begin_all()
        return RedirectResponse(local_path(form.get("next") or ADDRESS), 303)

    async def _begin(self, label: str, name: str) -> None:
        handle = self._pages.services.handle(label) if label in self._pages.toolsets else None
        if handle is None:
            raise HTTPException(404, "This server has nothing of that kind to sync.")
        service = await handle.open()
        known = [facts.name for facts in await to_thread.run_sync(service.syncs) if facts.name]
        for chosen in [name] if name else known:
            await service.sync_now(chosen)

    async def _begin_all(self) -> None:
        for label in self._pages.toolsets:
            try:
                if self._pages.services.handle(label) is not None:
                    await self._begin(label, "")
            except BedstoneError as error:  # the row of this source says so
                logger.warning("Cannot sync %s: %s", label, error.message, extra={"action": "sync_failed"})

    async def stop(self, request: Request) -> Response:
        """Stop a task that runs, or remove one that waits."""
        form = await self._read_change(request)
        base, task_id = await self._base(), str(request.path_params["id"])
        await to_thread.run_sync(lambda: base.cancel(base.task(task_id).id, STOP_SECONDS))
        return RedirectResponse(local_path(form.get("next") or ADDRESS), 303)

    async def retry(self, request: Request) -> Response:
        """Read a file again that could not be read."""
        form = await self._read_change(request)
        base, task_id = await self._base(), str(request.path_params["id"])
        await to_thread.run_sync(lambda: base.retry(base.task(task_id).payload["document_id"]))
        return RedirectResponse(local_path(form.get("next") or ADDRESS), 303)

    async def _read_change(self, request: Request) -> dict[str, str]:
        form = await parse_form(request)
        self._pages.forms.check_change(request, form.get("csrf"))
        return form

    async def _base(self) -> "KnowledgeBase":
        if "knowledge" not in self._pages.toolsets:
            raise HTTPException(404, "This server reads no files.")
        base: KnowledgeBase = await self._pages.services["knowledge"].open()
        return base

    async def _view(self, request: Request) -> dict[str, Any]:
        """Return what the templates show."""
        tasks, problem = None, ""
        try:
            if "knowledge" in self._pages.toolsets:
                tasks = await to_thread.run_sync(_read_tasks, await self._base(), request)
        except Exception as error:  # noqa: BLE001 - a broken source must not hide the others
            problem = error_message(error)
        syncs = await self._syncs()
        is_busy = any(sync.facts.is_running for sync in syncs) or bool(tasks and tasks.active)
        address = f"{ADDRESS}?{request.url.query}" if request.url.query else ADDRESS
        return {
            "tasks": tasks,
            "problem": problem,
            "syncs": syncs,
            "servers": peers.known if (peers := self._pages.services.context.peers) is not None else (),
            "summary": _summarize(tasks, syncs),
            "seconds": LIVE_SECONDS if is_busy else IDLE_SECONDS,
            "running": tasks.counts.running + tasks.counts.queued if tasks is not None else 0,
            "address": address,
        }

    async def _syncs(self) -> list[_Sync]:
        """Return what every source keeps up to date; one that is still being opened says so."""
        labels = [label for label in self._pages.toolsets if self._pages.services.handle(label) is not None]
        for label in labels:
            if label not in self._reading:
                self._reading[label] = asyncio.create_task(read_syncs(self._pages, label))
        reading = {label: self._reading[label] for label in labels}
        if reading:
            await asyncio.wait(reading.values(), timeout=OPEN_SECONDS)
        found: list[_Sync] = []
        for label, task in reading.items():
            opening = SyncFacts(self._pages.toolsets[label].title, is_running=True, progress="opening")
            facts = task.result() if task.done() else (opening,)
            if task.done():
                self._reading.pop(label, None)
            found += [self._describe(label, item) for item in facts]
        return found

    def _describe(self, label: str, facts: SyncFacts) -> _Sync:
        place = next((item for item in self._pages.specs[label].navigation if item.group == "sources"), None)
        icon = "folder" if facts.what == "Watched folder" else place.icon if place is not None else "refresh"
        # A folder may have a name that is not UTF-8.
        origin = facts.origin.encode("utf-8", "replace").decode()
        shown = replace(facts, origin=origin, problem=for_people(facts.problem))
        return _Sync(label, icon, place.address if place is not None else "", shown)


async def read_syncs(pages: Pages, label: str) -> Sequence[SyncFacts]:
    """Return what a source keeps up to date."""
    try:
        service = await pages.services[label].open()
        facts: Sequence[SyncFacts] = await to_thread.run_sync(service.syncs)
    except Exception as error:  # noqa: BLE001 - a broken source must not hide the others
        return [SyncFacts(pages.toolsets[label].title, problem=error_message(error))]
    return facts


def _read_tasks(base: "KnowledgeBase", request: Request) -> _Tasks:
    """Read the tasks of a page; blocks."""
    from bedstone.web.activity.rows import describe_active, describe_done  # noqa: PLC0415 - with the engine

    failed_only = request.query_params.get("show") == "failed"
    counts = base.history.counts()
    pages = Pager.of(request, counts.failed if failed_only else counts.finished, DONE_PER_PAGE)
    done = base.history.list_finished((pages.number - 1) * pages.size, pages.size, failed_only=failed_only)
    documents = base.history.documents(done)
    active = base.history.active(ACTIVE_ROWS)
    running = sum(task.status == "running" for task in active)
    return _Tasks(
        counts,
        [describe_active(task, number - running) for number, task in enumerate(active)],
        [describe_done(task, documents.get(task.id), base) for task in done],
        pages,
        failed_only,
    )


def _summarize(tasks: _Tasks | None, syncs: Sequence[_Sync]) -> str:
    """Return in one line what goes on."""
    syncing = sum(sync.facts.is_running for sync in syncs)
    parts = [f"{syncing} {'sync is' if syncing == 1 else 'syncs are'} running"] if syncing else []
    if tasks is not None:
        counts = tasks.counts
        if counts.running:
            parts.insert(0, f"{counts.running:,} {'task is' if counts.running == 1 else 'tasks are'} running")
        if counts.queued:
            parts.append(f"{counts.queued:,} {'waits' if counts.queued == 1 else 'wait'}")
        if counts.failed:
            parts.append(f"{counts.failed:,} failed")
    return ", ".join(parts) or "Nothing is running"
