"""Runs tasks a few at a time; what was running when the process ended runs again at the next start.

Several processes may share a store. One of them owns it and does the work; the others hand it their tasks through the
store, and one of them takes over when it ends.
"""

import ctypes
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from uuid import uuid4

from bedstone.errors import BedstoneError
from bedstone.store.engine import StoreEngine, TaskRecord
from bedstone.store.locks import Ownership

logger = logging.getLogger(__name__)

MOST_ATTEMPTS = 2
KEPT_SECONDS, KEPT_TASKS = 7 * 24 * 3600, 1_000
TICK_SECONDS = 0.25
NICENESS = 10
CANCEL = "cancel:"  # the store's note that somebody wants a task cancelled that runs in another process


RETRIES, RETRY_SECONDS = 10, 1.0  # a store that is locked or full for a moment costs no task


class Cancelled(BaseException):
    """Raised inside the work when somebody cancels it, or when the process is to end."""


class Postponed(Exception):
    """Raised inside the work when it has to wait for another task: it goes to the end of the queue."""


@dataclass
class Progress:
    """How far a task has come: steps done of all, and what it is doing. It never goes back."""

    step: str = ""
    done: float = 0.0
    total: float = 1.0
    on_cancel: Callable[[], None] | None = None
    is_cancelled: bool = False
    is_interrupted: bool = False  # by the end of the process, not by anybody's wish

    @property
    def share(self) -> float:
        """0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    def update(self, step: str, done: float, total: float) -> None:
        """Say where the work is; ends it here if it was cancelled."""
        if self.is_ending:
            raise Cancelled
        before = self.share
        self.step, self.total = step, total
        self.done = max(done, before * total)

    @property
    def is_ending(self) -> bool:
        """Whether the work is to end here."""
        return self.is_cancelled or self.is_interrupted

    def cancel(self) -> None:
        """End the work at its next step, or at once if it knows how."""
        self.is_cancelled = True
        self._end()

    def interrupt(self) -> None:
        """The same, but it goes on at the next start."""
        self.is_interrupted = True
        self._end()

    def _end(self) -> None:
        if self.on_cancel is not None:
            self.on_cancel()


@dataclass
class _Running:
    task: TaskRecord
    progress: Progress = field(default_factory=Progress)
    saved: float = -1.0


class Work(Protocol):
    """What a kind of task does: returns its result, raises a `BedstoneError`, or is cancelled and cleans up."""

    def __call__(self, task: TaskRecord, progress: Progress) -> Mapping[str, Any]: ...


def _nothing() -> None:
    """What an owner does besides tasks."""


@dataclass(frozen=True)
class Duties:
    """What tasks mean to whoever has them run.

    `undo` removes what a task left that failed or was cancelled. An owner is told when it begins, and then often
    enough to look after what other processes changed.
    """

    work: Work
    undo: Callable[[TaskRecord], None]
    begin: Callable[[], None] = _nothing
    look_after: Callable[[], None] = _nothing


class TaskRunner:
    """A few threads that take tasks in the order they came."""

    def __init__(self, store: StoreEngine, duties: Duties, *, workers: int, ownership: Ownership | None = None) -> None:
        self._store = store
        self._duties = duties
        self._workers = workers
        self._ownership = ownership
        self._changed = threading.Condition()
        self._running: dict[str, _Running] = {}
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()

    @property
    def is_owner(self) -> bool:
        """Whether this process does the work."""
        return self._ownership is None or self._ownership.is_held

    def start(self) -> None:
        """Begin, or wait for a turn."""
        if self._ownership is None or self._ownership.acquire():
            self._begin()
        self._spawn(self._keep, "task-keeper")

    def stop(self) -> None:
        """End; what is running is picked up at the next start."""
        self._stop.set()
        with self._changed:
            running = list(self._running.values())
            self._changed.notify_all()
        for item in running:
            item.progress.interrupt()
        for thread in self._threads:
            thread.join(10)
        if self._ownership is not None:
            self._ownership.release()

    def submit(self, kind: str, details: Mapping[str, Any]) -> TaskRecord:
        """Add a task; it is kept before this returns."""
        task = TaskRecord(str(uuid4()), kind, "queued", time.time(), details)
        self._store.put_task(task)
        with self._changed:
            self._changed.notify()
        return task

    def add_finished(self, kind: str, details: Mapping[str, Any], result: Mapping[str, Any]) -> TaskRecord:
        """A task that had nothing to do."""
        now = time.time()
        task = TaskRecord(
            str(uuid4()), kind, "completed", now, {**details, "result": dict(result)}, started=now, finished=now
        )
        self._store.put_task(task)
        return task

    def progress(self, task_id: str) -> Progress | None:
        """How far a running task has come."""
        item = self._running.get(task_id)
        if item is not None:
            return item.progress
        task = self._store.task(task_id)
        if task is None or task.status != "running":
            return None
        said = task.details.get("progress") or {}
        return Progress(said.get("step", ""), said.get("done", 0.0), said.get("total", 1.0))

    def position(self, task_id: str) -> int:
        """A queued task's place, from 1."""
        task = self._store.task(task_id)
        return self._store.queued_before(task) + 1 if task is not None and task.status == "queued" else 0

    def cancel(self, task_id: str) -> bool:
        """Cancel a task that waits or runs; False when it had already ended."""
        task = self._store.task(task_id)
        if task is None:
            return False
        cancelled = replace(task, status="cancelled", finished=time.time())
        if task.status == "queued" and self._store.change_task(cancelled, "queued"):
            self._duties.undo(task)
            with self._changed:
                self._changed.notify_all()
            return True
        task = self._store.task(task_id)
        if task is None or task.finished is not None:
            return False
        self._store.set_setting(f"{CANCEL}{task_id}", "")  # it counts also if the process ends before the work does
        with self._changed:
            item = self._running.get(task_id)
        if item is not None:
            item.progress.cancel()
        return True

    def wait(self, task_id: str) -> TaskRecord:
        """Wait until a task has ended."""
        while True:
            with self._changed:
                task = self._store.task(task_id)
                assert task is not None, "there is no such task"
                if task.finished is not None or self._stop.is_set():
                    return task
                self._changed.wait(1.0 if self.is_owner else TICK_SECONDS)

    def _begin(self) -> None:
        """Queue again what was interrupted, and take tasks."""
        unwanted = self._store.settings(CANCEL)
        for task in self._store.tasks({"running"}, limit=10**6):
            if task.id in unwanted:
                self._duties.undo(task)
                self._finish(task, "cancelled", {})
            elif task.attempts >= MOST_ATTEMPTS:
                self._duties.undo(task)
                self._finish(task, "failed", {"error": "interrupted", "message": "The server was interrupted twice."})
            else:
                self._store.put_task(replace(task, status="queued"))
        self._store.prune_tasks(time.time() - KEPT_SECONDS, KEPT_TASKS)
        self._duties.begin()
        for number in range(self._workers):
            self._spawn(self._take, f"task-{number}")

    def _spawn(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _keep(self) -> None:
        """Look after what other processes want; and become the owner when nobody is."""
        while not self._stop.wait(TICK_SECONDS):
            try:
                if not self.is_owner and self._ownership is not None and self._ownership.acquire():
                    self._begin()
                if self.is_owner:
                    self._look_after()
            except Exception:  # whatever it was, the next look may succeed
                logger.exception("Looking after the tasks failed", extra={"action": "tasks_failed"})

    def _look_after(self) -> None:
        for task_id in self._store.settings(CANCEL):
            if item := self._running.get(task_id):
                item.progress.cancel()
            else:  # it has ended meanwhile
                self._store.delete_setting(f"{CANCEL}{task_id}")
        with self._changed:
            running = list(self._running.values())
            for task in self._store.tasks({"running"}):
                if task.id not in self._running:  # its end could not be written down
                    self._store.change_task(replace(task, status="queued"), "running")
            if self._next() is not None:
                self._changed.notify_all()
        for item in running:
            self._save_progress(item)
        self._duties.look_after()

    def _save_progress(self, item: _Running) -> None:
        progress = item.progress
        if progress.share > item.saved:
            item.saved = progress.share
            said = {"step": progress.step, "done": progress.done, "total": progress.total}
            self._store.change_task(replace(item.task, details={**item.task.details, "progress": said}), "running")

    def _take(self) -> None:
        _be_patient()
        while not self._stop.is_set():
            try:
                item = self._claimed()
                if item is not None:
                    self._run(item.task, item.progress)
                    if not self._running:
                        _give_memory_back()
            except Exception:  # of the store: the next task may find it well again
                logger.exception("Taking a task failed", extra={"action": "tasks_failed"})
                self._stop.wait(RETRY_SECONDS)

    def _claimed(self) -> _Running | None:
        with self._changed:
            while not self._stop.is_set() and (task := self._next()) is None:
                self._changed.wait()
            if self._stop.is_set():
                return None
            assert task is not None
            task = replace(task, status="running", started=time.time(), attempts=task.attempts + 1)
            if not self._store.change_task(task, "queued"):
                return None
            item = self._running[task.id] = _Running(task)
            return item

    def _next(self) -> TaskRecord | None:
        return next(iter(self._store.tasks({"queued"}, limit=1)), None)

    def _run(self, task: TaskRecord, progress: Progress) -> None:
        try:
            result = self._duties.work(task, progress)
        except Cancelled:
            if progress.is_cancelled:
                self._end(task, "cancelled", {"share": progress.share}, undo=True)
            else:  # it goes on at the next start, and was not at fault
                self._requeue(replace(task, status="queued", attempts=task.attempts - 1))
        except Postponed:
            self._requeue(replace(task, status="queued", attempts=task.attempts - 1, created=time.time()))
            self._stop.wait(TICK_SECONDS)
        except BedstoneError as error:
            self._end(task, "failed", {"error": error.code, "message": error.message}, undo=True)
        except Exception:
            logger.exception("The task %s failed", task.id, extra={"action": "task_failed"})
            message = "Something unforeseen happened; the log says what."
            self._end(task, "failed", {"error": "internal_error", "message": message}, undo=True)
        else:
            if self._next() is None:
                self._show()
            self._end(task, "completed", {"result": dict(result)})

    def _show(self) -> None:
        """Other processes shall find what is said to be done; while there is more to do, the next look is enough."""
        try:
            self._duties.look_after()
        except Exception:
            logger.exception("Looking after the tasks failed", extra={"action": "tasks_failed"})

    def _requeue(self, task: TaskRecord) -> None:
        with self._changed:
            self._running.pop(task.id, None)
            self._store.put_task(task)

    def _end(self, task: TaskRecord, status: Any, details: Mapping[str, Any], *, undo: bool = False) -> None:
        """Write down how a task ended; again and again if the store is not well."""
        for attempt in range(RETRIES):
            try:
                if undo:
                    self._duties.undo(task)
                with self._changed:
                    self._finish(task, status, details)
                    self._running.pop(task.id, None)
                    self._changed.notify_all()
            except Exception:
                logger.exception("The end of the task %s is not kept yet", task.id, extra={"action": "task_unkept"})
                if attempt == RETRIES - 1 or self._stop.wait(RETRY_SECONDS):
                    break
            else:
                self._store.delete_setting(f"{CANCEL}{task.id}")
                return
        with self._changed:  # it is taken up again, and is done at once if it was done
            self._running.pop(task.id, None)

    def _finish(self, task: TaskRecord, status: Any, details: Mapping[str, Any]) -> None:
        kept = {**task.details, **details}
        self._store.put_task(replace(task, status=status, finished=time.time(), details=kept))


def _be_patient() -> None:
    """Let other threads of the process come first, where the system knows a priority for each."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def _give_memory_back() -> None:
    """Let the system have what the work needed and freed; glibc keeps it for itself otherwise."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
