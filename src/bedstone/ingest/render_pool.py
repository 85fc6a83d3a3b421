"""A few worker processes that draw pages, kept for some seconds because a reader asks for one page after another."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bedstone.ingest.extraction import ExtractionError
from bedstone.ingest.process import Limits, WorkerProcess

SECONDS = 20.0  # for one page
LIMITS = Limits(seconds=SECONDS, silence=SECONDS)
MAX_WORKERS = 2
MAX_WAITING = 24  # requests: each holds a thread of the server
MAX_WAIT_SECONDS = 30.0
IDLE_SECONDS = 10.0
HARMLESS = frozenset({"page_missing", "password_required", "damaged"})  # what a worker reports and survives
MAX_REQUESTS = 200  # of one process, so that what libraries keep in memory does not add up


class PoolBusyError(Exception):
    """Too many pages are waiting to be drawn."""


@dataclass
class _Warm:
    worker: WorkerProcess
    path: str = ""
    requests: int = 0
    idle_since: float = 0.0


class RenderPool:
    """Passes requests to workers; a worker that fails is replaced, and idle ones end."""

    def __init__(
        self,
        limits: Limits = LIMITS,
        *,
        workers: int = MAX_WORKERS,
        waiting: int = MAX_WAITING,
        idle_seconds: float = IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._max_workers = workers
        self._max_waiting = waiting
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._change = threading.Condition()
        self._idle: list[_Warm] = []
        self._busy: list[_Warm] = []
        self._waiting = 0
        self._timer: threading.Timer | None = None
        self._is_closed = False

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of a worker; raise `ExtractionError`, or `PoolBusyError` if too many others wait."""
        warm = self._take(request["path"])
        is_well = False
        try:
            seconds = self._limits.seconds
            answers = [response for response, _ in warm.worker.ask(request, seconds, seconds)]
            is_well = True
        except ExtractionError as error:
            is_well = error.reason in HARMLESS
            raise
        else:
            done: dict[str, Any] = answers[-1]["done"]
            return done
        finally:
            self._give_back(warm, is_well=is_well)

    def workers(self) -> list[WorkerProcess]:
        """Return the processes that run now."""
        with self._change:
            return [warm.worker for warm in (*self._busy, *self._idle)]

    def close(self) -> None:
        """End all processes; requests that run fail."""
        with self._change:
            self._is_closed = True
            idle, self._idle = self._idle, []
            if self._timer is not None:
                self._timer.cancel()
            for warm in self._busy:
                warm.worker.stop()
            self._change.notify_all()
        for warm in idle:
            warm.worker.close()

    def _take(self, path: str) -> _Warm:
        """Return a worker, one that has the same file open if possible."""
        deadline = self._clock() + MAX_WAIT_SECONDS
        with self._change:
            if self._waiting >= self._max_waiting:
                raise PoolBusyError
            self._waiting += 1
            try:
                while not self._is_closed and not self._idle and len(self._busy) >= self._max_workers:
                    if not self._change.wait(max(0.0, deadline - self._clock())):
                        raise PoolBusyError
            finally:
                self._waiting -= 1
            if self._is_closed:
                raise PoolBusyError
            warm = self._pick(path)
            self._busy.append(warm)
        warm.path = path
        warm.requests += 1
        return warm

    def _pick(self, path: str) -> _Warm:
        known = next((warm for warm in self._idle if warm.path == path), None)
        if known is None and len(self._idle) + len(self._busy) < self._max_workers:
            return _Warm(WorkerProcess(self._limits))
        warm = known or self._idle[0]
        self._idle.remove(warm)
        return warm

    def _give_back(self, warm: _Warm, *, is_well: bool) -> None:
        with self._change:
            self._busy.remove(warm)
            is_kept = is_well and warm.requests < MAX_REQUESTS and not self._is_closed
            if is_kept:
                warm.idle_since = self._clock()
                self._idle.append(warm)
                self._set_timer()
            self._change.notify()
        if not is_kept:
            warm.worker.close()

    def _set_timer(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(self._idle_seconds, self._end_idle)
            self._timer.daemon = True
            self._timer.start()

    def _end_idle(self) -> None:
        """End the processes that nothing was asked of for a while."""
        with self._change:
            self._timer = None
            limit = self._clock() - self._idle_seconds
            old = [warm for warm in self._idle if warm.idle_since <= limit]
            self._idle = [warm for warm in self._idle if warm not in old]
            if self._idle and not self._is_closed:
                self._set_timer()
        for warm in old:
            warm.worker.close()
