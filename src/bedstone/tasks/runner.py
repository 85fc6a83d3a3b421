"""Runs tasks, a few at a time. A task that was running when its process ended runs again at the next start.

Several processes can share a store. One of them owns the tasks and does the work; the others pass tasks to it through
the store, and one of them takes over when it ends.
"""

import ctypes
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from bedstone.errors import BedstoneError
from bedstone.records import Task, TaskError
from bedstone.store.engine import ALL, Store
from bedstone.store.locks import Lock
from bedstone.tasks.handler import TaskHandler
from bedstone.tasks.progress import Cancelled, Progress, TaskDeferred

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 2
KEEP_SECONDS = 7 * 24 * 3600
KEEP_TASKS = 1_000
TICK_SECONDS = 0.25
WATCH_SECONDS = 1.0  # between looks at a task whose update went unnoticed
NICENESS = 10
MAX_RETRIES = 10  # to record an outcome: a store that is locked or full for a moment must not lose a task
RETRY_SECONDS = 1.0
INTERRUPTED = TaskError("interrupted", "The server was interrupted twice.")
INTERNAL_ERROR = TaskError("internal_error", "Internal error; see the server log.")


@dataclass
class _Running:
    task: Task
    progress: Progress
    saved_share: float = -1.0


class TaskRunner:
    """A few threads that take tasks in the order of their creation."""

    def __init__(
        self,
        store: Store,
        handler: TaskHandler,
        *,
        workers: int,
        lock: Lock | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._handler = handler
        self._workers = workers
        self._lock = lock
        self._clock = clock
        self._changed = threading.Condition()  # the queue, for the threads that take tasks
        self._updated = threading.Condition()  # any task, for those who watch them
        self._revision = 0
        self._seen_version: int | None = None
        self._running: dict[str, _Running] = {}
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()

    @property
    def is_owner(self) -> bool:
        """Return whether this process does the work."""
        return self._lock is None or self._lock.is_held

    def start(self) -> None:
        """Start to work, or wait for the process that does."""
        if self._lock is None or self._lock.acquire():
            self._begin()
        self._spawn(self._supervise, "task-supervisor")

    def stop(self) -> None:
        """Stop; running tasks run again at the next start."""
        self._stop.set()
        with self._changed:
            running = list(self._running.values())
            self._changed.notify_all()
        self._announce()
        for item in running:
            item.progress.interrupt()
        for thread in self._threads:
            thread.join(10)
        if self._lock is not None:
            self._lock.release()

    def submit(self, kind: str, payload: Mapping[str, Any]) -> Task:
        """Add a task; it is stored before this returns."""
        task = Task(str(uuid4()), kind, "queued", self._clock(), payload)
        self._store.put_task(task)
        with self._changed:
            self._changed.notify()
        return task

    def record_completed(self, kind: str, payload: Mapping[str, Any], result: Mapping[str, Any]) -> Task:
        """Add a task that needs no work, with its result."""
        now = self._clock()
        task = Task(str(uuid4()), kind, "completed", now, payload, started_at=now, finished_at=now, result=result)
        self._store.put_task(task)
        return task

    def task(self, task_id: str) -> Task | None:
        """Return a task with its current progress."""
        task, item = self._store.task(task_id), self._running.get(task_id)
        if task is not None and item is not None and task.status == "running":
            return replace(task, progress=item.progress.snapshot)
        return task

    def position(self, task: Task) -> int:
        """Return a queued task's place in the queue, from 1."""
        return self._store.count_queued_before(task) + 1 if task.status == "queued" else 0

    def cancel(self, task_id: str) -> bool:
        """Cancel a queued or running task; return False when it had already finished."""
        task = self._store.task(task_id)
        if task is None:
            return False
        cancelled = replace(task, status="cancelled", finished_at=self._clock(), progress=None)
        if task.status == "queued" and self._store.replace_task(cancelled, "queued"):
            self._handler.clean_up(task)
            self._announce()
            return True
        task = self._store.task(task_id)
        if task is None or task.finished_at is not None:
            return False
        with self._changed:
            item = self._running.get(task_id)
        if item is not None:  # first: the store may be busy with this very task
            item.progress.cancel()
        self._store.request_cancel(task_id)  # valid even if the process ends before the work does
        return True

    def cancel_and_wait(self, task_id: str, seconds: float) -> bool:
        """Cancel a task and wait for its work to stop; return whether it has stopped and is cancelled."""
        if not self.cancel(task_id):
            return False
        ended = self.wait_until_ended(task_id, seconds)
        return ended is not None and ended.status == "cancelled"

    def wait_until_ended(self, task_id: str, seconds: float) -> Task | None:
        """Wait until a task has finished, for some seconds at most; return it as it is then."""
        deadline, revision = time.monotonic() + seconds, None
        while True:
            revision = self.next_revision(revision)
            task = self.task(task_id)
            if task is None or task.finished_at is not None or self._stop.is_set() or time.monotonic() >= deadline:
                return task

    def next_revision(self, after: int | None = None) -> int:
        """Wait until any task is updated after a revision, or for a second; return the current revision."""
        if self.is_owner:
            with self._updated:
                if after is not None:
                    self._updated.wait_for(lambda: self._revision != after or self._stop.is_set(), WATCH_SECONDS)
                return self._revision
        if after is not None:
            self._store.wait_for_change(after, WATCH_SECONDS)
        return self._store.version()

    def watch(self, task_id: str) -> Iterator[Task]:
        """Yield a task whenever it is updated, until it has finished or this runner stops."""
        revision, seen = None, None
        while True:
            revision = self.next_revision(revision)
            task = self.task(task_id)
            assert task is not None, f"unknown task {task_id}"
            if task != seen:
                yield task
            seen = task
            if task.finished_at is not None or self._stop.is_set():
                return

    def wait(self, task_id: str) -> Task:
        """Wait until a task has finished, and return it."""
        *_, task = self.watch(task_id)
        return task

    def _announce(self) -> None:
        with self._updated:
            self._revision += 1
            self._updated.notify_all()

    def _begin(self) -> None:
        """Queue interrupted tasks again, and start to take tasks."""
        requests = self._store.cancel_requests()
        for task in self._store.tasks({"running"}, limit=ALL):
            if task.id in requests:
                self._handler.clean_up(task)
                self._finish(replace(task, status="cancelled"))
            elif task.attempts >= MAX_ATTEMPTS:
                self._handler.clean_up(task)
                self._finish(replace(task, status="failed", error=INTERRUPTED))
            else:
                self._store.put_task(replace(task, status="queued"))
        self._store.prune_tasks(self._clock() - KEEP_SECONDS, KEEP_TASKS)
        self._handler.on_start()
        for number in range(self._workers):
            self._spawn(self._run_worker, f"task-{number}")

    def _spawn(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _supervise(self) -> None:
        """Serve the requests of other processes; become the owner if no process is."""
        while not self._stop.wait(TICK_SECONDS):
            try:
                if not self.is_owner and self._lock is not None and self._lock.acquire():
                    self._begin()
                if self.is_owner:
                    self._tick()
            except Exception:  # the next tick may succeed
                logger.exception("Supervising the tasks failed", extra={"action": "tasks_failed"})

    def _tick(self) -> None:
        with self._changed:
            running = list(self._running.values())
        for item in running:
            self._save_progress(item)
        version = self._store.version()
        if version == self._seen_version:
            return
        for task_id in self._store.cancel_requests():
            if found := self._running.get(task_id):
                found.progress.cancel()
            else:  # it has finished meanwhile
                self._store.delete_cancel_request(task_id)
        with self._changed:
            for task in self._store.tasks({"running"}):
                if task.id not in self._running:  # its outcome could not be recorded
                    self._store.replace_task(replace(task, status="queued"), "running")
            if self._next() is not None:
                self._changed.notify_all()
        self._handler.on_tick()
        self._seen_version = version
        self._announce()

    def _save_progress(self, item: _Running) -> None:
        progress = item.progress.snapshot
        if progress.share > item.saved_share:
            item.saved_share = progress.share
            self._store.replace_task(replace(item.task, progress=progress), "running")

    def _run_worker(self) -> None:
        _lower_priority()
        while not self._stop.is_set():
            try:
                item = self._claim_next()
                if item is not None:
                    self._run(item.task, item.progress)
                    if not self._running:
                        _trim_memory()
            except Exception:  # an error of the store, which may have recovered before the next task
                logger.exception("Taking a task failed", extra={"action": "tasks_failed"})
                self._stop.wait(RETRY_SECONDS)

    def _claim_next(self) -> _Running | None:
        with self._changed:
            while not self._stop.is_set() and (task := self._next()) is None:
                self._changed.wait()
            if self._stop.is_set():
                return None
            assert task is not None
            task = replace(task, status="running", started_at=self._clock(), attempts=task.attempts + 1)
            if not self._store.replace_task(task, "queued"):
                return None
            item = self._running[task.id] = _Running(task, Progress(self._announce, task.progress))
        self._announce()
        return item

    def _next(self) -> Task | None:
        return next(iter(self._store.tasks({"queued"}, limit=1)), None)

    def _run(self, task: Task, progress: Progress) -> None:
        queued = replace(task, status="queued", attempts=task.attempts - 1)
        try:
            result = self._handler.run(task, progress)
        except Cancelled:
            if progress.is_cancelled:
                self._record_outcome(replace(task, status="cancelled", progress=progress.snapshot))
            else:  # it runs again at the next start
                self._requeue(queued)
        except TaskDeferred:
            self._requeue(replace(queued, created_at=self._clock()))
            self._stop.wait(TICK_SECONDS)
        except BedstoneError as error:
            self._record_outcome(replace(task, status="failed", error=TaskError(error.code, error.message)))
        except Exception:
            logger.exception("The task %s failed", task.id, extra={"action": "task_failed"})
            self._record_outcome(replace(task, status="failed", error=INTERNAL_ERROR))
        else:
            if self._next() is None:
                self._refresh_indexes()
            self._record_outcome(replace(task, status="completed", result=result))

    def _refresh_indexes(self) -> None:
        """Let other processes find what a completed task added; while more tasks wait, the next tick does that."""
        try:
            self._handler.on_tick()
        except Exception:
            logger.exception("Refreshing the indexes failed", extra={"action": "tasks_failed"})

    def _requeue(self, task: Task) -> None:
        with self._changed:
            self._running.pop(task.id, None)
            self._store.put_task(task)

    def _record_outcome(self, task: Task) -> None:
        """Clean up after a task that did not complete and store its outcome; retry while the store fails."""
        for attempt in range(MAX_RETRIES):
            try:
                if task.status != "completed":
                    self._handler.clean_up(task)
                with self._changed:
                    self._finish(task)
                    self._running.pop(task.id, None)
            except Exception:
                logger.exception("Cannot record task %s yet", task.id, extra={"action": "task_unrecorded"})
                if attempt == MAX_RETRIES - 1 or self._stop.wait(RETRY_SECONDS):
                    break
            else:
                self._store.delete_cancel_request(task.id)
                self._announce()
                return
        with self._changed:  # the supervisor queues it again
            self._running.pop(task.id, None)
            self._seen_version = None

    def _finish(self, task: Task) -> None:
        self._store.put_task(replace(task, finished_at=self._clock()))


def _lower_priority() -> None:
    """Let other threads of the process run first, where the system has priorities for threads."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def _trim_memory() -> None:
    """Return freed memory to the system, which glibc would keep."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
