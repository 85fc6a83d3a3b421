"""Runs tasks a few at a time; what was running when the process ended runs again at the next start."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol
from uuid import uuid4

from bedstone.errors import BedstoneError
from bedstone.store.engine import StoreEngine, TaskRecord

logger = logging.getLogger(__name__)

MOST_ATTEMPTS = 2
KEPT_SECONDS, KEPT_TASKS = 7 * 24 * 3600, 1_000


class Cancelled(BaseException):
    """Raised inside the work when somebody cancels it."""


@dataclass
class Progress:
    """How far a task has come: steps done of all, and what it is doing. It never goes back."""

    step: str = ""
    done: float = 0.0
    total: float = 1.0
    on_cancel: Callable[[], None] | None = None
    is_cancelled: bool = False

    @property
    def share(self) -> float:
        """0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    def update(self, step: str, done: float, total: float) -> None:
        """Say where the work is; ends it here if it was cancelled."""
        if self.is_cancelled:
            raise Cancelled
        before = self.share
        self.step, self.total = step, total
        self.done = max(done, before * total)

    def cancel(self) -> None:
        """End the work at its next step, or at once if it knows how."""
        self.is_cancelled = True
        if self.on_cancel is not None:
            self.on_cancel()


class Work(Protocol):
    """What a kind of task does: returns its result, raises a `BedstoneError`, or is cancelled and cleans up."""

    def __call__(self, task: TaskRecord, progress: Progress) -> Mapping[str, Any]: ...


class TaskRunner:
    """A few threads that take tasks in the order they came."""

    def __init__(self, store: StoreEngine, work: Work, *, workers: int, undo: Callable[[TaskRecord], None]) -> None:
        self._store = store
        self._work = work
        self._undo = undo
        self._workers = workers
        self._changed = threading.Condition()
        self._running: dict[str, Progress] = {}
        self._threads: list[threading.Thread] = []
        self._is_stopping = False

    def start(self) -> None:
        """Queue again what was interrupted, and begin."""
        for task in self._store.tasks({"running"}):
            if task.attempts >= MOST_ATTEMPTS:
                self._undo(task)
                self._finish(task, "failed", {"error": "interrupted", "message": "The server was interrupted twice."})
            else:
                self._store.put_task(replace(task, status="queued"))
        self._store.prune_tasks(time.time() - KEPT_SECONDS, KEPT_TASKS)
        for number in range(self._workers):
            thread = threading.Thread(target=self._take, name=f"task-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """End; what is running is picked up at the next start."""
        with self._changed:
            self._is_stopping = True
            running = list(self._running.values())
            self._changed.notify_all()
        for progress in running:
            progress.cancel()
        for thread in self._threads:
            thread.join(10)

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
        return self._running.get(task_id)

    def position(self, task_id: str) -> int:
        """A queued task's place, from 1."""
        waiting = [task.id for task in self._store.tasks({"queued"})]
        return waiting.index(task_id) + 1 if task_id in waiting else 0

    def cancel(self, task_id: str) -> bool:
        """Cancel a task that waits or runs; False when it had already ended."""
        with self._changed:
            progress = self._running.get(task_id)
            task = self._store.task(task_id)
            if progress is None and task is not None and task.status == "queued":
                self._undo(task)
                self._finish(task, "cancelled", {})
                return True
        if progress is None:
            return False
        progress.cancel()
        return True

    def wait(self, task_id: str) -> TaskRecord:
        """Wait until a task has ended."""
        with self._changed:
            while True:
                task = self._store.task(task_id)
                if task is None or task.finished is not None or self._is_stopping:
                    assert task is not None
                    return task
                self._changed.wait(1.0)

    def _take(self) -> None:
        while True:
            with self._changed:
                while not self._is_stopping and (task := self._next()) is None:
                    self._changed.wait()
                if self._is_stopping:
                    return
                assert task is not None
                progress = self._running[task.id] = Progress()
                task = replace(task, status="running", started=time.time(), attempts=task.attempts + 1)
                self._store.put_task(task)
            self._run(task, progress)

    def _next(self) -> TaskRecord | None:
        return next(iter(self._store.tasks({"queued"}, limit=1)), None)

    def _run(self, task: TaskRecord, progress: Progress) -> None:
        try:
            result = self._work(task, progress)
        except Cancelled:
            if self._is_stopping:  # it goes on at the next start, and was not at fault
                self._store.put_task(replace(task, status="queued", attempts=task.attempts - 1))
                return
            self._undo(task)
            self._end(task, "cancelled", {"progress": progress.share})
        except BedstoneError as error:
            self._undo(task)
            self._end(task, "failed", {"error": error.code, "message": error.message})
        except Exception:
            logger.exception("The task %s failed", task.id, extra={"action": "task_failed"})
            self._undo(task)
            message = "Something unforeseen happened; the log says what."
            self._end(task, "failed", {"error": "internal_error", "message": message})
        else:
            self._end(task, "completed", {"result": dict(result)})

    def _end(self, task: TaskRecord, status: Any, details: Mapping[str, Any]) -> None:
        with self._changed:
            self._running.pop(task.id, None)
            self._finish(task, status, details)
            self._changed.notify_all()

    def _finish(self, task: TaskRecord, status: Any, details: Mapping[str, Any]) -> None:
        kept = {**task.details, **details}
        self._store.put_task(replace(task, status=status, finished=time.time(), details=kept))
