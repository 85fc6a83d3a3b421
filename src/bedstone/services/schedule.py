"""Work that a service repeats while a server runs, and how it went."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from bedstone.errors import BedstoneError
from bedstone.services.service import SyncFacts, format_count

logger = logging.getLogger(__name__)

FIRST_SECONDS = 1.0  # by then everything that starts with the server is listening
INTERNAL_ERROR = "Internal error; see the server log."


@dataclass
class RunRecord:
    """How the runs of some work went: when the last one succeeded or failed, and whether one is going on."""

    succeeded_at: float | None = None
    failed_at: float | None = None
    result: str = ""
    problem: str = ""
    progress: str = ""
    is_running: bool = False

    @contextmanager
    def running(self) -> Iterator[None]:
        """Record a run; `succeed` is called in it unless it fails."""
        self.is_running = True
        try:
            yield
        except Exception as error:
            self.fail(error.message if isinstance(error, BedstoneError) else INTERNAL_ERROR)
            raise
        finally:
            self.is_running, self.progress = False, ""

    def succeed(self, result: str) -> None:
        """Record what a run did, in words."""
        self.succeeded_at, self.failed_at, self.result, self.problem = time.time(), None, result, ""

    def fail(self, problem: str) -> None:
        """Record why a run failed."""
        self.failed_at, self.problem = time.time(), problem

    def tell(self, done: int, total: int) -> None:
        """Record how far the current run is."""
        self.progress = f"{done:,} of {total:,}"

    def facts(
        self,
        what: str,
        origin: str,
        *,
        name: str,
        rhythm: str,
        verb: str = "Sync now",
        last_at: datetime | None = None,
        next_at: float | None = None,
        known: str = "",
    ) -> SyncFacts:
        """Return the facts for people; `last_at` and `known` are what an earlier process left."""
        return SyncFacts(
            what,
            origin,
            parse_seconds(self.succeeded_at) or last_at,
            parse_seconds(next_at),
            self.result or known,
            self.problem,
            self.is_running,
            name,
            rhythm,
            verb,
            self.progress,
            parse_seconds(self.failed_at),
        )


class PeriodicTask:
    """Runs a coroutine soon after the start, then every few minutes and whenever it is asked for, never twice at once.

    Logs what it reports or why it failed. With 0 minutes it runs only when it is asked for.
    """

    def __init__(self, work: Callable[[], Awaitable[str]], minutes: int, name: str) -> None:
        self._work = work
        self._minutes = minutes
        self._name = name
        self._repeating: asyncio.Task[None] | None = None
        self._run: asyncio.Task[None] | None = None
        self._due = 0.0  # by a clock that is never set back
        self.record = RunRecord()
        self.next_at: float | None = None

    @property
    def rhythm(self) -> str:
        """Return in words how often it runs."""
        return f"every {format_count(self._minutes, 'minute')}" if self._minutes else "when you ask for it"

    def facts(self, what: str, origin: str, name: str, last_at: datetime | None, known: str) -> SyncFacts:
        """Return the facts for people; `last_at` and `known` are what an earlier process left."""
        return self.record.facts(
            what, origin, name=name, rhythm=self.rhythm, last_at=last_at, next_at=self.next_at, known=known
        )

    def start(self) -> None:
        """Begin to repeat; 0 minutes means never."""
        if self._minutes:
            self._plan(FIRST_SECONDS)
            self._repeating = asyncio.create_task(self._repeat())

    def run_now(self) -> "asyncio.Task[None]":
        """Begin a run in the background, unless one is going on; return it."""
        if self._run is None or self._run.done():
            self.record.is_running = True  # from now on, not only when the event loop comes to it
            self._run = asyncio.create_task(self._run_once())
        return self._run

    async def stop(self) -> None:
        """Cancel the work and wait until it has ended."""
        tasks = [task for task in (self._repeating, self._run) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _repeat(self) -> None:
        while True:
            while (seconds := self._due - time.monotonic()) > 0:  # noqa: ASYNC110 - a run between moves the next one
                await asyncio.sleep(seconds)
            await asyncio.wait([self.run_now()])

    async def _run_once(self) -> None:
        try:
            with self.record.running():
                self.record.succeed(await self._work())
            logger.info("%s: %s", self._name, self.record.result, extra={"action": "repeated"})
        except BedstoneError as error:
            logger.warning("%s failed: %s", self._name, error.message, extra={"action": "repeat_failed"})
        except Exception:  # the next run may succeed
            logger.exception("%s failed", self._name, extra={"action": "repeat_failed"})
        finally:
            if self._minutes:
                self._plan(self._minutes * 60.0)

    def _plan(self, seconds: float) -> None:
        self._due, self.next_at = time.monotonic() + seconds, time.time() + seconds


def describe_changes(**counts: int) -> str:
    """Return in words what changed: `added=3, removed=0` is `3 added`."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "nothing changed"


def parse_seconds(seconds: float | None) -> datetime | None:
    """Return seconds since 1970 as a time."""
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None else None
