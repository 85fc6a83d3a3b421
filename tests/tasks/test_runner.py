"""Background tasks: order, concurrency, cancelling, and what a restart finds."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bedstone.errors import InvalidInput
from bedstone.store.engine import TaskRecord
from bedstone.store.engines.memory import MemoryStore
from bedstone.tasks import Duties, Ownership, Progress, TaskRunner

Make = Callable[..., TaskRunner]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def make(store: MemoryStore) -> Iterator[Make]:
    runners: list[TaskRunner] = []

    def make(work: Any, *, workers: int = 1, undone: list[str] | None = None, **more: Any) -> TaskRunner:
        duties = Duties(work, undo=lambda task: (undone if undone is not None else []).append(task.id))
        runner = TaskRunner(store, duties, workers=workers, **more)
        runner.start()
        runners.append(runner)
        return runner

    yield make
    for runner in runners:
        runner.stop()


def slow(task: TaskRecord, progress: Progress) -> Mapping[str, Any]:
    for number in range(100):
        progress.update("Working", number, 100)
        time.sleep(0.01)
    return {}


def test_tasks_run_in_order_and_keep_their_result(make: Make) -> None:
    seen: list[Any] = []

    def work(task: TaskRecord, progress: Progress) -> Mapping[str, Any]:
        seen.append(task.details["n"])
        progress.update("Half", 1, 2)
        return {"twice": task.details["n"] * 2}

    runner = make(work)
    tasks = [runner.submit("double", {"n": number}) for number in range(5)]
    ended = [runner.wait(task.id) for task in tasks]
    assert seen == [0, 1, 2, 3, 4]
    assert [task.details["result"] for task in ended] == [{"twice": 2 * number} for number in range(5)]
    assert all(task.status == "completed" and task.started and task.finished for task in ended)


def test_no_more_than_allowed_run_at_once(make: Make) -> None:
    running, most, lock = 0, 0, threading.Lock()

    def work(task: TaskRecord, progress: Progress) -> Mapping[str, Any]:
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
    def work(task: TaskRecord, progress: Progress) -> Mapping[str, Any]:
        if task.details["n"]:
            raise InvalidInput("That is no file.")
        raise RuntimeError("the password is tulip")

    undone: list[str] = []
    runner = make(work, undone=undone)
    told, hidden = runner.submit("x", {"n": 1}), runner.submit("x", {"n": 0})
    assert runner.wait(told.id).details["message"] == "That is no file."
    failed = runner.wait(hidden.id)
    assert (failed.status, failed.details["error"]) == ("failed", "internal_error")
    assert "tulip" not in str(failed.details)
    assert undone == [told.id, hidden.id]


def test_cancelling_stops_what_runs_and_what_waits(make: Make) -> None:
    undone: list[str] = []
    runner = make(slow, undone=undone)
    first, second = runner.submit("x", {}), runner.submit("x", {})
    while runner.progress(first.id) is None:
        time.sleep(0.005)
    assert runner.position(second.id) == 1
    assert runner.cancel(second.id)
    assert runner.cancel(first.id)
    assert [runner.wait(task.id).status for task in (first, second)] == ["cancelled", "cancelled"]
    assert set(undone) == {first.id, second.id}
    assert not runner.cancel(first.id)
    assert not runner.cancel("unknown")


def test_progress_never_goes_back() -> None:
    progress = Progress()
    shares = []
    for done, total in ((1, 10), (5, 10), (3, 10), (2, 20), (20, 20)):
        progress.update("x", done, total)
        shares.append(progress.share)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_restart_goes_on_and_gives_up_after_two_attempts(store: MemoryStore, make: Make) -> None:
    store.put_task(TaskRecord("a", "x", "running", 1.0, {}, started=1.0, attempts=1))
    store.put_task(TaskRecord("b", "x", "running", 2.0, {}, started=1.0, attempts=2))
    undone: list[str] = []
    runner = make(lambda task, progress: {"ok": True}, undone=undone)
    assert runner.wait("a").status == "completed"
    assert runner.wait("b").status == "failed"
    assert undone == ["b"]


def test_stopping_leaves_work_for_the_next_start(store: MemoryStore, make: Make) -> None:
    undone: list[str] = []
    runner = make(slow, undone=undone)
    task = runner.submit("x", {})
    while runner.progress(task.id) is None:
        time.sleep(0.005)
    runner.stop()
    left = store.task(task.id)
    assert left
    assert (left.status, left.attempts, undone) == ("queued", 0, [])


def test_one_of_several_processes_does_the_work_and_another_takes_over(
    store: MemoryStore, make: Make, tmp_path: Path
) -> None:
    """Two runners with a lock each are what two processes have."""
    done: dict[str, str] = {}

    def worker(name: str) -> Any:
        def work(task: TaskRecord, progress: Progress) -> Mapping[str, Any]:
            done[task.details["n"]] = name
            while task.details["n"] == "long":
                progress.update("Half", 1, 2)
                time.sleep(0.01)
            return {}

        return work

    owner = make(worker("owner"), ownership=Ownership(tmp_path / "lock"))
    other = make(worker("other"), ownership=Ownership(tmp_path / "lock"))
    assert (owner.is_owner, other.is_owner) == (True, False)
    assert other.wait(other.submit("x", {"n": "short"}).id).status == "completed"
    long = other.submit("x", {"n": "long"})
    while (seen := other.progress(long.id)) is None or seen.share == 0:
        time.sleep(0.01)
    assert (seen.step, seen.share) == ("Half", 0.5)
    assert other.cancel(long.id)
    assert other.wait(long.id).status == "cancelled"
    assert store.settings("cancel:") == {}
    owner.stop()
    assert other.wait(other.submit("x", {"n": "last"}).id).status == "completed"
    assert done == {"short": "owner", "long": "owner", "last": "other"}
    assert other.is_owner
