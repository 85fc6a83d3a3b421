"""The menu beside every page: where one can go, how much is there, and whether all is well."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import anyio
from anyio import to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from bedstone.errors import BedstoneError
from bedstone.services.service import Services, State, Summary
from bedstone.toolkit import NavigationItem, Toolset, ToolsetSpec
from bedstone.web.wording import for_people

logger = logging.getLogger(__name__)

PLACES = (NavigationItem("home", "/", "Home", "home"), NavigationItem("search", "/search", "Search", "search"))
WORK = (
    NavigationItem("tools", "/tools", "Tools", "tools", "work"),
    NavigationItem("activity", "/activity", "Activity", "activity", "work"),
    NavigationItem("quality", "/quality", "Quality", "quality", "work"),
)
SHORTCUTS = ("home", "search", "documents", "salesforce")  # of phones, where there is room for four
ALWAYS_FRESH = ("/", "/activity")  # these pages read the summaries themselves, however new they are
FRESH_SECONDS = 2.0
MAX_WAIT_SECONDS = 1.0  # that a page waits for the first summaries
SHORT_WAIT_SECONDS = 0.1  # and for later ones


@dataclass(frozen=True)
class Group:
    """Entries of the menu under one title."""

    title: str
    items: Sequence[NavigationItem]


class Menu:
    """The entries, and summaries of the sources that are at most a few seconds old."""

    def __init__(self, services: Services, toolsets: Mapping[str, Toolset], specs: Mapping[str, ToolsetSpec]) -> None:
        items = [item for spec in specs.values() for item in spec.navigation]
        self.groups = [
            Group("", PLACES),
            Group("Sources", [item for item in items if item.group == "sources"]),
            Group("Work", [*(item for item in items if item.group == "work"), *WORK]),
        ]
        self.shortcuts = [item for group in self.groups for item in group.items if item.key in SHORTCUTS]
        self.summaries: Mapping[str, Summary] = {}
        self._services = services
        self._toolsets = toolsets
        self._sources = {
            item.key: label for label, spec in specs.items() for item in spec.navigation if item.group == "sources"
        }
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    def count(self, item: NavigationItem) -> str:
        """Return the number beside an entry."""
        if item.key == "tools":
            return f"{sum(len(toolset.tools) for toolset in self._toolsets.values()):,}"
        if item.key == "activity":
            running = sum(summary.running for summary in self.summaries.values())
            return f"{running:,} running" if running else ""
        summary = self.summaries.get(self._sources.get(item.key, ""))
        return f"{summary.count:,}" if summary is not None and summary.count else ""

    @property
    def state(self) -> State:
        """Return whether all is well, in a word."""
        kinds = {state.kind for summary in self.summaries.values() for state in summary.states}
        if "bad" in kinds:
            return State("bad", "Needs attention", "/")
        if self.summaries and all(summary.is_empty for summary in self.summaries.values()):
            return State("warn", "Empty", "/")
        return State("warn", "Check sources", "/") if "warn" in kinds else State("good", "Healthy", "/")

    async def refresh(self) -> None:
        """Read the summaries again if they are old; a page does not wait for a source that takes long."""
        if self._reading is None and time.monotonic() - self._read_at > FRESH_SECONDS:
            self._reading = asyncio.create_task(self.read())
        if (reading := self._reading) is not None:
            with anyio.move_on_after(SHORT_WAIT_SECONDS if self.summaries else MAX_WAIT_SECONDS):
                await asyncio.wait([reading])

    async def read(self) -> None:
        """Read the summaries now."""
        found: dict[str, Summary] = {}

        async def read_one(label: str) -> None:
            found[label] = await self._summarize(label)

        try:
            async with anyio.create_task_group() as tasks:
                for label in self._sources.values():
                    if self._services.handle(label) is not None:
                        tasks.start_soon(read_one, label)
            self.summaries = {label: found[label] for label in self._sources.values() if label in found}
        finally:
            self._read_at, self._reading = time.monotonic(), None

    async def _summarize(self, label: str) -> Summary:
        try:
            service = await self._services[label].open()
            summary: Summary = await service.summary()
            problems = await to_thread.run_sync(service.problems)
        except BedstoneError as error:
            return Summary(states=(State("bad", for_people(error.message)),))
        except Exception:  # a broken source must not hide the others
            logger.exception("A source cannot be summarized", extra={"action": "summary_failed"})
            return Summary(states=(State("bad", "Internal error; see the server log."),))
        return replace(summary, states=tuple(State("bad", text) for text in problems)) if problems else summary


class WithMenu:
    """Keeps the summaries of the menu fresh while pages are read."""

    def __init__(self, app: ASGIApp, menu: Menu) -> None:
        self._app = app
        self._menu = menu

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "http" and path not in ALWAYS_FRESH and not path.startswith("/static/"):
            await self._menu.refresh()
        await self._app(scope, receive, send)
