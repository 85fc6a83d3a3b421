"""Background tasks: order, concurrency, cancelling, and what a restart finds."""

import errno
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bedstone.errors import InvalidInput
from bedstone.records import ProgressSnapshot, Task, TaskError, TaskRetry, TaskStatus
from bedstone.store.engine import StoreUnavailable
from bedstone.store.engines.memory import MemoryStore
from bedstone.store.opening import open_store
from bedstone.tasks import MachineFailure, Progress, TaskDeferred, TaskRunner
from bedstone.tasks.retrying import machine_failure, next_attempt
from bedstone.tasks.runner import ABANDONED_SECONDS
from support.postgres import PostgresServer, postgres_server

AWAY_SECONDS = 8.0

Make = Callable[..., TaskRunner]
Work = Callable[[Task, Progress], Mapping[str, Any]]


class Handler:
    """Does what a test says, and notes what it is told."""

    def __init__(self, work: Work, cleaned: list[str] | None = None) -> None:
        self.run = work
        self.cleaned = cleaned if cleaned is not None else []
        self.ticks = 0

    def clean_up(self, task: Task) -> None:
        self.cleaned.append(task.id)

    def on_start(self) -> None:
        pass

    def on_tick(self) -> None:
        self.ticks += 1


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def make(store: MemoryStore) -> Iterator[Make]:
    runners: list[TaskRunner] = []

    def make(work: Work, *, workers: int = 1, cleaned: list[str] | None = None, **more: Any) -> TaskRunner:
        runner = TaskRunner(more.pop("store", store), Handler(work, cleaned), workers=workers, **more)
        runner.start()
        runners.append(runner)
        return runner

    yield make
    for runner in runners:
        runner.stop()


def wait_until_running(runner: TaskRunner, task: Task) -> None:
    assert any(seen.status == "running" for seen in runner.watch(task.id))


def slow(task: Task, progress: Progress) -> Mapping[str, Any]:
    for number in range(100):
        progress.update("Working", number, 100)
        time.sleep(0.01)
    return {}


def test_tasks_run_in_order_and_keep_their_result(make: Make) -> None:
    seen: list[Any] = []

    def work(task: Task, progress: Progress) -> Mapping[str, Any]:
        seen.append(task.payload["n"])
        progress.update("Half", 1, 2)
        return {"twice": task.payload["n"] * 2}

    runner = make(work)
    tasks = [runner.submit("double", {"n": number}) for number in range(5)]
    ended = [runner.wait(task.id) for task in tasks]
    assert seen == [0, 1, 2, 3, 4]
    assert [task.result for task in ended] == [{"twice": 2 * number} for number in range(5)]
    assert all(task.status == "completed" and task.started_at and task.finished_at for task in ended)


def test_no_more_than_allowed_run_at_once(make: Make) -> None:
    running, most, lock = 0, 0, threading.Lock()

    def work(task: Task, progress: Progress) -> Mapping[str, Any]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        with lock:
            running -= 1
        return {}

    runner = make(work, workers=3)
    for task in [runner.submit("x", {}) for _ in range(12)]:
        runner.wait(task.id)
    assert most == 3


def test_errors_are_told_and_defects_are_not(make: Make) -> None:
    def work(task: Task, progress: Progress) -> Mapping[str, Any]:
        if task.payload["n"]:
            raise InvalidInput("Not a file.")
        raise RuntimeError("the password is tulip")

    cleaned: list[str] = []
    runner = make(work, cleaned=cleaned)
    told, hidden = runner.submit("x", {"n": 1}), runner.submit("x", {"n": 0})
    assert runner.wait(told.id).error == TaskError("invalid_input", "Not a file.")
    failed = runner.wait(hidden.id)
    assert failed.status == "failed"
    assert failed.error
    assert failed.error.code == "internal_error"
    assert "tulip" not in str(failed)
    assert cleaned == [told.id, hidden.id]


def test_cancelling_stops_what_runs_and_what_waits(make: Make) -> None:
    cleaned: list[str] = []
    runner = make(slow, cleaned=cleaned)
    first, second = runner.submit("x", {}), runner.submit("x", {})
    wait_until_running(runner, first)
    assert runner.position(second) == 1
    assert runner.cancel(second.id)
    assert runner.cancel(first.id)
    assert [runner.wait(task.id).status for task in (first, second)] == ["cancelled", "cancelled"]
    assert set(cleaned) == {first.id, second.id}
    assert not runner.cancel(first.id)
    assert not runner.cancel("unknown")


def test_progress_never_goes_back() -> None:
    progress = Progress()
    shares = []
    for done, total in ((1, 10), (5, 10), (3, 10), (2, 20), (20, 20)):
        progress.update("x", done, total)
        shares.append(progress.snapshot.share)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_a_task_outlives_servers_that_were_killed(attempts: int, store: MemoryStore, make: Make) -> None:
    store.put_task(Task("a", "x", "running", 1.0, started_at=1.0, attempts=attempts))
    assert make(lambda task, progress: {"ok": True}).wait("a").status == "completed"


def test_a_task_that_ends_every_server_fails_at_last_and_says_how_to_retry(store: MemoryStore, make: Make) -> None:
    store.put_task(Task("a", "x", "running", 1.0, started_at=1.0, attempts=5))
    cleaned: list[str] = []
    failed = make(lambda task, progress: {"ok": True}, cleaned=cleaned).wait("a")
    assert (failed.status, cleaned) == ("failed", ["a"])
    assert failed.error
    assert failed.error.code == "interrupted"
    assert "Add the file again" in failed.error.message


def test_a_suspect_runs_alone_and_last(store: MemoryStore, make: Make) -> None:
    running: set[str] = set()
    seen: list[tuple[str, int]] = []
    lock = threading.Lock()

    def work(task: Task, progress: Progress) -> Mapping[str, Any]:
        with lock:
            running.add(task.id)
            seen.append((task.id, len(running)))
        time.sleep(0.05)
        with lock:
            running.discard(task.id)
        return {}

    for number, attempts in enumerate((2, 3, 0, 0, 1)):
        store.put_task(Task(str(number), "x", "queued", float(number), attempts=attempts))
    runner = make(work, workers=3)
    for number in range(5):
        assert runner.wait(str(number)).status == "completed"
    assert [name for name, _ in seen[-2:]] == ["0", "1"]
    assert [count for _, count in seen[-2:]] == [1, 1]


def test_tasks_that_wait_for_a_suspect_let_it_run(store: MemoryStore, make: Make) -> None:
    done = threading.Event()

    def work(task: Task, progress: Progress) -> Mapping[str, Any]:
        if task.id == "suspect":
            done.set()
        elif not done.is_set():
            raise TaskDeferred
        return {}

    store.put_task(Task("suspect", "x", "queued", 1.0, attempts=2))
    for number in range(3):
        store.put_task(Task(str(number), "x", "queued", 2.0 + number))
    runner = make(work, workers=3)
    wait_for(done.is_set)
    assert {runner.wait(str(number)).status for number in range(3)} == {"completed"}


def test_what_the_machine_lacks_is_waited_for(store: MemoryStore, make: Make) -> None:
    has_room = threading.Event()

    def work(task: Task, progress: Progress) -> Mapping[str, Any]:
        if not has_room.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")
        return {"ok": True}

    cleaned: list[str] = []
    runner = make(work, cleaned=cleaned)
    task = runner.submit("x", {})
    waiting = next(seen for seen in runner.watch(task.id) if seen.retry)
    assert waiting.retry
    assert (waiting.status, waiting.attempts, waiting.retry.reason) == ("queued", 0, "No space left on device")
    assert waiting.retry.at > time.time()
    assert [item.id for item in runner.waiting()] == [task.id]
    has_room.set()
    ended = runner.wait(task.id)
    assert (ended.status, ended.retry, cleaned) == ("completed", None, [])


def test_a_restart_waits_as_long_as_before(store: MemoryStore, make: Make) -> None:
    runs: list[TaskRetry | None] = []

    def work(task: Task, progress: Progress) -> Mapping[str, Any]:
        runs.append(task.retry)
        return {}

    later = TaskRetry("No space left on device", 3, time.time() + 3600)
    store.put_task(Task("later", "x", "queued", 1.0, retry=later))
    store.put_task(Task("due", "x", "queued", 2.0, retry=replace(later, at=time.time() - 1)))
    runner = make(work)
    assert runner.wait("due").status == "completed"
    assert runner.wait(runner.submit("x", {}).id).status == "completed"
    assert [retry.count if retry else 0 for retry in runs] == [3, 0]
    assert [task.id for task in runner.waiting()] == ["later"]
    assert runner.cancel("later")


def test_waits_double_up_to_a_limit() -> None:
    retry, waits = None, []
    for _ in range(10):
        retry = next_attempt("full", retry, now=0.0)
        waits.append(retry.at)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StoreUnavailable("database or disk is full"), "The store does not answer: database or disk is full"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (OSError(errno.EROFS, "Read-only file system"), "Read-only file system"),
        (MemoryError(), "Out of memory"),
        (InvalidInput("Not a file."), None),
        (FileNotFoundError(errno.ENOENT, "No such file"), None),
        (ValueError("a defect"), None),
    ],
)
def test_only_failures_of_the_machine_are_repeated(error: Exception, reason: str | None) -> None:
    failure = machine_failure(error)
    assert (failure.reason if failure else None) == reason


def test_a_reader_that_is_killed_every_time_is_not_repeated_for_ever(store: MemoryStore, make: Make) -> None:
    def work(task: Task, progress: Progress) -> Mapping[str, Any]:
        raise MachineFailure("The process was killed (SIGKILL).", is_suspect=True)

    store.put_task(Task("new", "x", "queued", 1.0, attempts=0))
    store.put_task(Task("old", "x", "queued", 2.0, attempts=4))
    runner = make(work)
    assert runner.wait("old").status == "failed"
    again = next(seen for seen in runner.watch("new") if seen.retry)
    assert (again.status, again.attempts) == ("queued", 1)


class FullDisk(MemoryStore):
    """A store that cannot be written while its disk is full."""

    is_full = False

    def put_task(self, task: Task) -> None:
        self._check()
        super().put_task(task)

    def replace_task(self, task: Task, expected_status: TaskStatus) -> bool:
        self._check()
        return super().replace_task(task, expected_status)

    def _check(self) -> None:
        if self.is_full:
            raise StoreUnavailable("database or disk is full")


def test_an_outcome_that_cannot_be_stored_is_stored_later() -> None:
    store = FullDisk()
    runs: list[str] = []

    def work(task: Task, progress: Progress) -> Mapping[str, Any]:
        runs.append(task.id)
        store.is_full = len(runs) == 1
        if store.is_full:
            raise StoreUnavailable("database or disk is full")
        return {"ok": True}

    runner = TaskRunner(store, Handler(work), workers=1)
    runner.start()
    try:
        task = runner.submit("x", {})
        wait_for(lambda: bool(runner.waiting()))
        waiting = runner.task(task.id)
        assert waiting
        assert waiting.retry
        assert waiting.status == "queued"
        store.is_full = False
        assert runner.wait(task.id).status == "completed"
    finally:
        runner.stop()


def test_stopping_leaves_work_for_the_next_start(store: MemoryStore, make: Make) -> None:
    cleaned: list[str] = []
    runner = make(slow, cleaned=cleaned)
    task = runner.submit("x", {})
    wait_until_running(runner, task)
    runner.stop()
    left = store.task(task.id)
    assert left
    assert (left.status, left.attempts, cleaned) == ("queued", 0, [])


@pytest.mark.parametrize("engine", ["memory", "sqlite", "postgresql"])
def test_one_of_several_processes_does_the_work_and_another_takes_over(
    engine: str, make: Make, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Two runners with a store and a lock each are what two processes have."""
    stores: list[Any] = [MemoryStore()] * 2
    if engine != "memory":
        is_sqlite = engine == "sqlite"
        address = tmp_path / "tasks.sqlite" if is_sqlite else request.getfixturevalue("postgres").address()
        stores = [open_store(address) for _ in range(2)]
    done: dict[str, str] = {}

    def worker(name: str) -> Any:
        def work(task: Task, progress: Progress) -> Mapping[str, Any]:
            done[task.payload["n"]] = name
            while task.payload["n"] == "long":
                progress.update("Half", 1, 2)
                time.sleep(0.01)
            return {}

        return work

    owner, other = (
        make(worker(name), store=store, lock=store.lock("owner"))
        for name, store in zip(("owner", "other"), stores, strict=True)
    )
    assert (owner.is_owner, other.is_owner) == (True, False)
    assert other.wait(other.submit("x", {"n": "short"}).id).status == "completed"
    long = other.submit("x", {"n": "long"})
    seen = next(task.progress for task in other.watch(long.id) if task.progress and task.progress.share)
    assert seen == ProgressSnapshot("Half", 1, 2)
    assert other.cancel(long.id)
    assert other.wait(long.id).status == "cancelled"
    wait_for(lambda: stores[0].cancel_requests() == set())
    owner.stop()
    assert other.wait(other.submit("x", {"n": "last"}).id).status == "completed"
    assert done == {"short": "owner", "long": "owner", "last": "other"}
    assert other.is_owner
    for store in stores:
        other.stop()
        store.close()


def test_an_owner_that_loses_its_connection_stops_its_work_and_may_get_it_back(
    make: Make, postgres: PostgresServer
) -> None:
    """A lock in a database ends with its connection: what another process took over is not done or changed any more."""
    address = postgres.address()
    stores = [open_store(address) for _ in range(2)]
    over = threading.Event()

    def worker(name: str) -> Any:
        def work(task: Task, progress: Progress) -> Mapping[str, Any]:
            while not over.is_set():
                progress.update("Half", 1, 2)
                time.sleep(0.01)
            return {"by": name}

        return work

    first, second = (
        make(worker(name), store=store, lock=store.lock("owner"))
        for name, store in zip(("first", "second"), stores, strict=True)
    )
    task = first.submit("x", {})
    wait_until_running(first, task)
    for _ in range(2):
        postgres.disconnect()
        time.sleep(0.3)  # until a lock looks at its connection again
        wait_for(lambda: first.is_owner != second.is_owner)  # either may be the faster one
        wait_for(lambda: bool(stores[0].tasks({"running"})))
    time.sleep(0.6)
    assert stores[0].abandoned_tasks() == []
    over.set()
    done = first.wait(task.id)
    assert first.is_owner != second.is_owner
    assert (done.status, done.result) == ("completed", {"by": "first" if first.is_owner else "second"})
    for runner, store in zip((first, second), stores, strict=True):
        runner.stop()
        store.close()


def test_watching_shows_every_state_and_ends_with_the_task(make: Make) -> None:
    go_on = threading.Event()

    def work(task: Task, progress: Progress) -> Mapping[str, Any]:
        progress.update("Reading", 1, 4)
        assert go_on.wait(5)
        return {"pages": 4}

    runner = make(work)
    task = runner.submit("x", {})
    states = []
    for seen in runner.watch(task.id):
        states.append((seen.status, seen.progress))
        if seen.progress == ProgressSnapshot("Reading", 1, 4):
            go_on.set()
    assert ("running", ProgressSnapshot("Reading", 1, 4)) in states
    assert states[-1][0] == "completed"
    assert [status for status, _ in states] == sorted((status for status, _ in states), key=ORDER.index)
    assert [seen.status for seen in runner.watch(task.id)] == ["completed"]


ORDER = ["queued", "running", "completed"]


def test_stopping_ends_every_watch(make: Make) -> None:
    runner = make(slow)
    task = runner.submit("x", {})
    ended: list[Task] = []
    watcher = threading.Thread(target=lambda: ended.append(runner.wait(task.id)))
    watcher.start()
    wait_until_running(runner, task)
    runner.stop()
    watcher.join(5)
    assert [item.finished_at for item in ended] == [None]


def test_times_are_those_of_the_clock_and_old_tasks_are_forgotten(store: MemoryStore, make: Make) -> None:
    """Also a task that is deferred: it moves behind those that came meanwhile."""
    now = iter(range(10**9, 10**9 + 10_000))
    runs: list[str] = []

    def work(task: Task, progress: Progress) -> Mapping[str, Any]:
        runs.append(task.payload["n"])
        if runs == ["first"]:
            runner.submit("x", {"n": "second"})
            raise TaskDeferred
        return {}

    for number in range(1_002):
        store.put_task(Task(str(number), "x", "completed", 1.0, finished_at=float(number)))
    runner = make(work, clock=lambda: float(next(now)))
    assert len(store.tasks({"completed"}, limit=2_000)) == 1_000
    task = runner.wait(runner.submit("x", {"n": "first"}).id)
    assert runs == ["first", "second", "first"]
    assert task.started_at
    assert task.finished_at
    assert 10**9 < task.created_at < task.started_at < task.finished_at
    assert task.attempts == 1


def test_what_another_process_writes_reaches_the_handler(tmp_path: Path) -> None:
    mine, theirs = (open_store(tmp_path / "tasks.sqlite") for _ in range(2))
    handler = Handler(lambda task, progress: {})
    runner = TaskRunner(mine, handler, workers=1, lock=mine.lock("owner"))
    runner.start()
    try:
        wait_for(lambda: handler.ticks > 0)
        time.sleep(0.6)
        before = handler.ticks
        time.sleep(0.6)
        assert handler.ticks == before  # nothing was written, so nothing was looked at
        theirs.put_task(Task("theirs", "x", "queued", 1.0))
        assert runner.wait("theirs").status == "completed"
        wait_for(lambda: handler.ticks > before)
    finally:
        runner.stop()
        mine.close()
        theirs.close()


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_several_processes_work_at_once_and_each_task_has_one_of_them(make: Make, postgres: PostgresServer) -> None:
    """Also while their connections break: what is done twice is not done at the same time."""
    address = postgres.address()
    stores = [open_store(address) for _ in range(3)]
    done: list[tuple[str, str, float, float]] = []  # the task, who did it, from when until when

    def worker(name: str) -> Any:
        def work(task: Task, progress: Progress) -> Mapping[str, Any]:
            begun = time.monotonic()
            try:
                for number in range(10):
                    progress.update("Working", number, 10)
                    time.sleep(0.02)
            finally:
                done.append((task.id, name, begun, time.monotonic()))
            return {"by": name}

        return work

    runners = [
        make(worker(str(number)), store=store, workers=2, lock=store.lock(f"worker-{number}"))
        for number, store in enumerate(stores)
    ]
    assert all(runner.is_owner for runner in runners)
    tasks = [runners[0].submit("x", {"n": number}) for number in range(60)]
    for _ in range(2):
        time.sleep(0.4)
        postgres.disconnect()
    ended = [runners[1].wait(task.id) for task in tasks]
    assert [task.status for task in ended] == ["completed"] * 60
    assert {str(task.result["by"]) for task in ended if task.result} == {"0", "1", "2"}
    by_task: dict[str, list[tuple[float, float, str]]] = {}
    for task_id, name, begun, end in done:
        by_task.setdefault(task_id, []).append((begun, end, name))
    for spans in by_task.values():
        spans.sort()
        assert all(later[0] >= earlier[1] for earlier, later in itertools.pairwise(spans)), spans
    for runner, store in zip(runners, stores, strict=True):
        runner.stop()
        store.close()


def test_work_under_way_is_held_again_before_another_process_takes_it(make: Make) -> None:
    """However long the database was away: a process that has just begun does not wait as those that tried for long."""
    over, done = threading.Event(), []

    def work(task: Task, progress: Progress) -> Mapping[str, Any]:
        begun = time.monotonic()
        try:
            while not over.is_set():
                progress.update("Half", 1, 2)
                time.sleep(0.01)
        finally:
            done.append((begun, time.monotonic()))
        return {}

    with postgres_server() as server:
        address = server.address()
        stores = [open_store(address)]
        first = make(work, store=stores[0], lock=stores[0].lock("worker-1"))
        task = first.submit("x", {})
        wait_until_running(first, task)
        server.stop()
        time.sleep(AWAY_SECONDS)
        server.start()
        stores.append(open_store(address))
        second = make(work, store=stores[1], lock=stores[1].lock("worker-2"))
        time.sleep(3 * ABANDONED_SECONDS)
        over.set()
        assert second.wait(task.id).status == "completed"
        for runner, store in zip((first, second), stores, strict=True):
            runner.stop()
            store.close()
    done.sort()
    assert all(later[0] >= earlier[1] for earlier, later in itertools.pairwise(done)), done


def test_a_request_to_cancel_outlives_the_process_that_was_to_see_it(make: Make, postgres: PostgresServer) -> None:
    address = postgres.address()
    gone, store = open_store(address), open_store(address)
    gone.put_task(Task("t", "x", "queued", 1.0))
    assert gone.replace_task(Task("t", "x", "running", 1.0, attempts=1), "queued")
    runner = make(slow, store=store, lock=store.lock("worker-1"))
    assert runner.cancel("t")
    time.sleep(2.5)  # longer than between two looks for holders that are gone
    assert runner.task("t") == Task("t", "x", "running", 1.0, attempts=1)
    gone.close()
    assert runner.wait("t").status == "cancelled"
    wait_for(lambda: store.cancel_requests() == set())
    runner.stop()
    store.close()
