"""Work that is repeated: one run at a time, on request at once, and how the last one went."""

import asyncio
import time
from datetime import UTC, datetime

import anyio
import pytest

from bedstone.errors import NotFound, Unavailable
from bedstone.services.schedule import PeriodicTask, RunRecord, describe_changes
from bedstone.services.service import Service


class Work:
    """Counts its runs; each waits until it may end, and fails if it is told to."""

    def __init__(self) -> None:
        self.runs = 0
        self.may_end = asyncio.Event()
        self.has_run = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> str:
        self.runs += 1
        await self.may_end.wait()
        if self.error is not None:
            raise self.error
        self.has_run.set()
        return f"run {self.runs}"


async def test_a_run_that_is_asked_for_begins_at_once_and_is_the_only_one() -> None:
    work = Work()
    task = PeriodicTask(work, 0, "Working")
    with anyio.fail_after(5):
        first, second = task.run_now(), task.run_now()
        assert task.record.is_running  # before the event loop comes to it
        assert first is second
        work.may_end.set()
        await first
    assert (work.runs, task.record.is_running, task.record.result) == (1, False, "run 1")
    assert task.next_at is None  # 0 minutes: nothing follows by itself
    assert "ask" in task.rhythm


async def test_a_periodic_run_comes_soon_after_the_start_and_then_after_its_minutes() -> None:
    work = Work()
    work.may_end.set()
    task = PeriodicTask(work, 60, "Working")
    task.start()
    with anyio.fail_after(5):
        await work.has_run.wait()
        await asyncio.sleep(0)  # the run ends
    assert task.next_at is not None
    assert 3_590 < task.next_at - time.time() <= 3_600
    before = task.next_at
    await task.run_now()
    assert task.next_at > before  # a run between moves the next one
    await task.stop()
    assert work.runs == 2


async def test_a_failure_is_kept_with_its_reason_until_a_run_succeeds() -> None:
    work = Work()
    work.may_end.set()
    task = PeriodicTask(work, 0, "Working")
    await task.run_now()
    work.error = Unavailable("The org does not answer.")
    await task.run_now()
    facts = task.facts("Articles", "org demo", "mirror", None, "")
    assert (facts.problem, facts.result) == ("The org does not answer.", "run 1")
    assert facts.failed_at is not None
    assert facts.last_at is not None
    assert facts.failed_at >= facts.last_at
    work.error = RuntimeError("a secret")
    await task.run_now()
    assert task.record.problem == "Internal error; see the server log."
    work.error = None
    await task.run_now()
    facts = task.facts("Articles", "org demo", "mirror", None, "")
    assert (facts.problem, facts.failed_at, facts.result) == ("", None, "run 4")


async def test_a_run_ends_when_the_work_is_stopped() -> None:
    work = Work()
    task = PeriodicTask(work, 0, "Working")
    run = task.run_now()
    await asyncio.sleep(0)
    with anyio.fail_after(5):
        await task.stop()
    assert run.cancelled()
    assert not task.record.is_running


def test_facts_tell_what_an_earlier_process_left_until_there_is_something_new() -> None:
    record = RunRecord()
    earlier = datetime(2026, 1, 2, tzinfo=UTC)
    facts = record.facts("Schema", "org demo", name="demo", rhythm="", last_at=earlier, known="not synced yet")
    assert (facts.last_at, facts.result) == (earlier, "not synced yet")
    with record.running():
        record.tell(3, 1_200)
        assert record.facts("Schema", "", name="", rhythm="").progress == "3 of 1,200"
        record.succeed("78 objects")
    facts = record.facts("Schema", "org demo", name="demo", rhythm="", last_at=earlier, known="not synced yet")
    assert facts.last_at is not None
    assert facts.last_at > earlier
    assert (facts.result, facts.progress) == ("78 objects", "")


def test_changes_are_told_in_words() -> None:
    assert describe_changes(added=1_200, removed=0) == "1,200 added"
    assert describe_changes(added=0) == "nothing changed"


async def test_a_service_without_syncs_has_none_and_refuses() -> None:
    assert Service().syncs() == ()
    with pytest.raises(NotFound, match="'mirror'"):
        await Service().sync_now("mirror")
