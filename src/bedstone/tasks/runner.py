"""Runs tasks, a few at a time. A task that was running when its process ended runs again at the next start.

A failure of the machine, such as a full disk, queues the task again. A task whose attempts end with their process runs
alone, after all others, and fails at last.

Several processes can share a store. One of them owns the tasks and does the work; the others pass tasks to it through
the store, and one of them takes over when it ends. In a store with notes, each process that has the lock it was given
does work: a task has one holder at a time, and runs again when the connection of its holder ends.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from bedstone.errors import BedstoneError
from bedstone.records import Task, TaskError
from bedstone.store.engine import Store, StoreUnavailable
from bedstone.store.locks import Lock
from bedstone.tasks.handler import TaskHandler
from bedstone.tasks.progress import Cancelled, Progress, TaskDeferred
from bedstone.tasks.retrying import MachineFailure, machine_failure, next_attempt, wait_seconds
from bedstone.tasks.system import lower_priority, trim_memory

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 5  # that end with their process
MIN_SUSPECT_ATTEMPTS = 2  # from then on the task may be the cause, and runs alone
KEEP_SECONDS = 7 * 24 * 3600
KEEP_TASKS = 1_000
TICK_SECONDS = 0.25
ABANDONED_SECONDS = 1.0  # between looks for tasks whose holder is gone: nothing is written when it ends
WATCH_SECONDS = 1.0  # between looks at a task whose update went unnoticed
MAX_RETRIES = 10  # to record an outcome: a store that is locked or full for a moment must not lose a task
RETRY_SECONDS = 1.0
DEFER_SECONDS = 0.5
MAX_TICK_WAIT = 5.0
MAX_WAITING = 100  # queued tasks to look at for those that wait
INTERRUPTED = TaskError(
    "interrupted",
    f"The server, or its process that reads the file, ended {MAX_ATTEMPTS} times during this task, "
    "at last with no other task running. Add the file again to retry.",
)
RETRIED = {"action": "task_retried"}
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
        self._is_shared = store.notes is not None
        self._look_at = 0.0  # when to look for tasks whose holder is gone
        self._abandoned: set[tuple[str, int]] = set()  # at the last look: the task, and its attempt
        self._clock = clock
        self._changed = threading.Condition()  # the queue, for the threads that take tasks
        self._updated = threading.Condition()  # any task, for those who watch them
        self._revision = 0
        self._seen_version: int | None = None
        self._running: dict[str, _Running] = {}
        self._unrecorded: dict[str, Task] = {}  # tasks whose new state could not be stored
        self._deferred: dict[str, float] = {}  # until when
        self._failures = 0  # of the machine, in a row
        self._paused_until = float("-inf")
        self._is_holding = False  # tasks that may run later
        self._has_begun = False
        self._is_suspended = False  # the lock was lost, and another process does the work
        self._reported: str | None = None  # the last failure that was logged
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()

    @property
    def is_owner(self) -> bool:
        """Return whether this process does work."""
        return self._lock is None or self._lock.is_held

    @property
    def running(self) -> list[Task]:
        """The tasks that this process runs now."""
        return [item.task for item in list(self._running.values())]

    def start(self) -> None:
        """Start to work, or wait for the process that does."""
        try:
            self._try_to_begin()
        except StoreUnavailable as error:  # the supervisor tries again
            self._report(error)
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

    def submit(self, kind: str, payload: Mapping[str, Any], put: Callable[[Task], None] | None = None) -> Task:
        """Add a task; it is stored before this returns, by `put` if something else is stored with it."""
        task = Task(str(uuid4()), kind, "queued", self._clock(), payload)
        (put or self._store.put_task)(task)
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
        """Return a task with its current progress; as it was stored, if other servers tell it as well.

        Who asks one server and then another one would otherwise see progress that goes back.
        """
        task, item = self._store.task(task_id), self._running.get(task_id)
        if task is not None and item is not None and task.status == "running" and not self._is_shared:
            return replace(task, progress=item.progress.snapshot)
        return self._unrecorded.get(task_id, task)

    def waiting(self) -> list[Task]:
        """Return the oldest queued tasks that wait because the machine failed."""
        queued = [self._unrecorded.get(task.id, task) for task in self._store.tasks({"queued"}, limit=MAX_WAITING)]
        stored = {task.id for task in queued}
        unrecorded = [task for task in list(self._unrecorded.values()) if task.id not in stored]
        return [task for task in (*unrecorded, *queued) if task.retry is not None]

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

    def _try_to_begin(self) -> None:
        """Become the owner, unless another process is."""
        if self._has_begun or not (self._lock is None or self._lock.acquire()):
            return
        try:
            self._begin()
        except BaseException:
            if self._lock is not None:
                self._lock.release()
            raise
        self._has_begun = True

    def _begin(self) -> None:
        """Queue interrupted tasks again, and start to take tasks."""
        if not self._is_shared:
            self._queue_again(self._store.abandoned_tasks())
        self._store.prune_tasks(self._clock() - KEEP_SECONDS, KEEP_TASKS)
        self._handler.on_start()
        for number in range(self._workers):
            self._spawn(self._run_worker, f"task-{number}")

    def _queue_abandoned(self) -> None:
        """Queue the tasks again whose holder is gone at two looks: between them, one that lives stops its work."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + ABANDONED_SECONDS
        found = self._store.abandoned_tasks()
        before, self._abandoned = self._abandoned, {(task.id, task.attempts) for task in found}
        self._queue_again([task for task in found if (task.id, task.attempts) in before])

    def _queue_again(self, tasks: Sequence[Task]) -> None:
        """Queue tasks again whose process has ended; end those that were to be cancelled, or that end it each time."""
        requests = self._store.cancel_requests() if tasks else ()
        for task in tasks:
            if task.id in requests:
                self._handler.clean_up(task)
                self._finish(replace(task, status="cancelled"))
            elif task.attempts >= MAX_ATTEMPTS:
                failed = replace(task, status="failed", error=INTERRUPTED)
                self._handler.clean_up(failed)
                self._finish(failed)
            else:
                self._store.replace_task(replace(task, status="queued"), "running")

    def _keep_ownership(self) -> bool:
        """Return whether this process may go on; the lock of a database is lost with the connection to it."""
        if self._lock is None or (self._lock.is_held and not self._is_suspended):
            return True
        with self._changed:
            running = list(self._running.values())
        if self._lock.acquire():
            lost = [item for item in running if not self._store.replace_task(item.task, "running")]
            if self._is_suspended and not self._is_shared:
                self._queue_again(self._store.abandoned_tasks())
            self._is_suspended = False
        else:
            lost, self._is_suspended = running, True
        for item in lost:  # another process has it, and its state is not changed by this one any more
            item.progress.interrupt()
        return not self._is_suspended

    def _spawn(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _supervise(self) -> None:
        """Serve the requests of other processes; become the owner if no process is."""
        wait = TICK_SECONDS
        while not self._stop.wait(wait):
            try:
                self._try_to_begin()
                if self._has_begun and self._keep_ownership():
                    self._tick()
                wait = TICK_SECONDS
                if not self._failures:
                    self._reported = None
            except Exception as error:  # noqa: BLE001 - the next tick may succeed
                self._report(error)
                # What runs here must be held again before another process finds that its holder is gone.
                wait = TICK_SECONDS if self._running else min(wait * 2, MAX_TICK_WAIT)

    def _report(self, error: Exception) -> None:
        """Log a failure once, not at each attempt; the machine's in one line."""
        failure = machine_failure(error)
        text = failure.reason if failure is not None else repr(error)
        if text == self._reported:
            return
        self._reported = text
        if failure is not None:
            logger.warning("Tasks wait: %s", text, extra={"action": "tasks_waiting"})
        elif isinstance(error, BedstoneError):
            logger.error("Supervising the tasks failed: %s", error.message, extra={"action": "tasks_failed"})
        else:
            logger.error("Supervising the tasks failed", exc_info=error, extra={"action": "tasks_failed"})

    def _tick(self) -> None:
        with self._changed:
            running = list(self._running.values())
        for item in running:
            self._save_progress(item)
        if self._is_shared:
            self._queue_abandoned()
        version = self._store.version()
        if version == self._seen_version:
            return
        self._serve_cancel_requests()
        with self._changed:
            for task in self._store.tasks({"running"}):
                if task.id not in self._running and (task.id in self._unrecorded or not self._is_shared):
                    again = self._unrecorded.get(task.id, replace(task, status="queued"))
                    if again.status in ("failed", "cancelled"):
                        self._handler.clean_up(again)
                    self._store.replace_task(again, "running")
            self._unrecorded.clear()
            if self._next() is not None:
                self._changed.notify_all()
        self._handler.on_tick()
        self._seen_version = version
        self._announce()

    def _serve_cancel_requests(self) -> None:
        """Cancel what runs here; forget the requests for tasks that run nowhere any more."""
        for task_id in self._store.cancel_requests():
            if found := self._running.get(task_id):
                found.progress.cancel()
                continue
            task = self._store.task(task_id) if self._is_shared else None
            if task is not None and task.status == "queued":  # its holder ended before it could cancel it
                self.cancel(task_id)
            elif task is not None and task.finished_at is None:
                continue  # its holder sees the request as well
            self._store.delete_cancel_request(task_id)

    def _save_progress(self, item: _Running) -> None:
        progress = item.progress.snapshot
        if progress.share > item.saved_share:
            item.saved_share = progress.share
            self._store.replace_task(replace(item.task, progress=progress), "running")

    def _run_worker(self) -> None:
        lower_priority()
        while not self._stop.is_set():
            try:
                item = self._claim_next()
                if item is not None:
                    self._run(item.task, item.progress)
                    if not self._running:
                        trim_memory()
            except Exception as error:  # noqa: BLE001 - of the store, which may have recovered before the next task
                self._report(error)
                self._pause()
                self._stop.wait(RETRY_SECONDS)

    def _pause(self) -> None:
        """Take no task for a while: what fails on this machine will fail for other tasks as well."""
        self._failures += 1
        self._paused_until = time.monotonic() + wait_seconds(self._failures)

    def _claim_next(self) -> _Running | None:
        with self._changed:
            while not self._stop.is_set() and (task := self._next()) is None:
                self._changed.wait(TICK_SECONDS if self._is_holding else None)
            if self._stop.is_set():
                return None
            assert task is not None
            task = replace(task, status="running", started_at=self._clock(), attempts=task.attempts + 1)
            try:
                if not self._store.replace_task(task, "queued"):
                    return None
            except StoreUnavailable:  # it may have been saved: then no process would run it
                self._leave_to_supervisor(_without_attempt(task))
                raise
            self._deferred.pop(task.id, None)
            item = self._running[task.id] = _Running(task, Progress(self._announce, task.progress))
        self._announce()
        return item

    def _next(self) -> Task | None:
        """Return the task to run now: the oldest one that does not wait, and suspects alone and last."""
        self._is_holding = True
        is_waiting = self._is_suspended or time.monotonic() < self._paused_until
        if is_waiting or any(_is_suspect(item.task, 1) for item in self._running.values()):
            return None
        limit, now = 1, self._clock()
        while True:
            queued = self._store.tasks({"queued"}, limit=limit)
            due = [task for task in queued if self._is_due(task, now)]
            if found := next((task for task in due if not _is_suspect(task)), None):
                return found
            if len(queued) < limit:
                self._is_holding = bool(queued)
                return due[0] if due and not self._running else None
            limit *= 4

    def _is_due(self, task: Task, now: float) -> bool:
        """Return whether a task may run: a deferred one lets others go first, also those that run alone."""
        is_deferred = time.monotonic() < self._deferred.get(task.id, float("-inf"))
        return not is_deferred and (task.retry is None or task.retry.at <= now)

    def _run(self, task: Task, progress: Progress) -> None:
        try:
            result = self._handler.run(task, progress)
        except Cancelled:
            if progress.is_cancelled:
                self._record_outcome(replace(task, status="cancelled", progress=progress.snapshot))
            else:  # it runs again at the next start
                self._requeue(_without_attempt(task))
        except TaskDeferred:
            self._deferred[task.id] = time.monotonic() + DEFER_SECONDS
            self._requeue(replace(_without_attempt(task), created_at=self._clock()))
        except Exception as error:
            failure = machine_failure(error)
            if failure is not None and not progress.is_cancelled:
                self._retry(task, failure)
            elif isinstance(error, BedstoneError):
                self._record_outcome(replace(task, status="failed", error=TaskError(error.code, error.message)))
            else:
                logger.exception("The task %s failed", task.id, extra={"action": "task_failed"})
                self._record_outcome(replace(task, status="failed", error=INTERNAL_ERROR))
        else:
            self._failures, self._reported = 0, None
            self._refresh_indexes()
            self._record_outcome(replace(task, status="completed", result=result, retry=None))

    def _retry(self, task: Task, failure: MachineFailure) -> None:
        """Queue a task again, to run after a while."""
        retry = next_attempt(failure.reason, task.retry, self._clock())
        logger.warning(
            "Retrying task %s in %.0f s: %s", task.id, wait_seconds(retry.count), retry.reason, extra=RETRIED
        )
        if not failure.is_suspect:
            self._pause()
            self._requeue(replace(_without_attempt(task), retry=retry))
        elif task.attempts < MAX_ATTEMPTS:
            self._requeue(replace(task, status="queued", retry=retry))
        else:
            self._record_outcome(replace(task, status="failed", error=INTERRUPTED))

    def _refresh_indexes(self) -> None:
        """Let other processes find what a completed task added; while more tasks wait, the next tick does that."""
        try:
            if not self._store.tasks({"queued"}, limit=1):
                self._handler.on_tick()
        except Exception as error:  # noqa: BLE001 - the supervisor tries again
            self._report(error)

    def _requeue(self, task: Task) -> None:
        """Queue a task again; while the store cannot be written, the supervisor tries to."""
        with self._changed:
            self._running.pop(task.id, None)
            try:
                self._store.replace_task(task, "running")
            except StoreUnavailable as error:
                self._report(error)
                self._leave_to_supervisor(task)
        self._announce()

    def _leave_to_supervisor(self, task: Task) -> None:
        self._unrecorded[task.id] = task
        self._seen_version = None

    def _record_outcome(self, task: Task) -> None:
        """Clean up after a task that did not complete and store its outcome; retry while the store fails."""
        for attempt in range(MAX_RETRIES):
            try:
                if task.status != "completed":
                    self._handler.clean_up(task)
                with self._changed:
                    self._finish(task)
                    self._running.pop(task.id, None)
            except Exception as error:  # noqa: BLE001 - the store may work at the next attempt
                self._report(error)
                if attempt == MAX_RETRIES - 1 or self._stop.wait(RETRY_SECONDS):
                    break
            else:
                self._store.delete_cancel_request(task.id)
                self._announce()
                return
        with self._changed:
            self._running.pop(task.id, None)
            self._leave_to_supervisor(replace(task, finished_at=self._clock()))

    def _finish(self, task: Task) -> None:
        self._store.replace_task(replace(task, finished_at=self._clock()), "running")


def _without_attempt(task: Task) -> Task:
    """Return a task to queue again, whose attempt did not end with its process."""
    return replace(task, status="queued", attempts=task.attempts - 1)


def _is_suspect(task: Task, current: int = 0) -> bool:
    """Return whether a task's attempts ended with their process, without the current one."""
    return task.attempts - current >= MIN_SUSPECT_ATTEMPTS
