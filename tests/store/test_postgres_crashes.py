"""Several processes write, follow and do tasks, and are killed at random: nothing that was acknowledged is lost."""

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bedstone.records import Task
from bedstone.store.engines.postgres import PostgresStore
from support import store_crowd
from support.postgres import PostgresServer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills with SIGKILL")

WRITERS = 3
WORKERS = 3
KILLS = 14
TASKS = 120
END_SECONDS = 60


class Member:
    """A process that plays a role; killed and replaced, or ended in good order."""

    def __init__(self, role: str, address: str, name: str, folder: Path, number: int) -> None:
        self.role, self.address, self.name, self.folder, self.number = role, address, name, folder, number
        self.output = folder / f"{role}-{name.replace('/', '_')}-{number}"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, store_crowd.__file__, role, address, self._argument],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def _argument(self) -> str:
        return str(self.folder / "held") if self.role == "work" else f"{self.name}.{self.number}"

    def lines(self) -> list[list[str]]:
        """Return what it said; a line that was cut off was not said."""
        return [line.split(" ", 2) for line in self.output.read_text().split("\n")[:-1]]

    def kill(self) -> "Member":
        """End it at once, and start another one in its place."""
        self.close(is_killed=True)
        return Member(self.role, self.address, self.name, self.folder, self.number + 1)

    def close(self, *, is_killed: bool) -> None:
        """End it at once, or let it finish what it does."""
        assert self.process.stdin
        if is_killed:
            self.process.kill()
        self.process.stdin.close()
        self.process.wait(END_SECONDS)


@contextmanager
def crowd(address: str, folder: Path) -> Iterator[list[Member]]:
    (folder / "held").mkdir()
    roles = ["write"] * WRITERS + ["work"] * WORKERS + ["follow"] * 2
    members = [Member(role, address, f"{role[0]}{place}", folder, 0) for place, role in enumerate(roles)]
    try:
        yield members
    finally:
        for member in members:
            if member.process.poll() is None:
                member.close(is_killed=True)


def test_of_processes_that_are_killed_nothing_is_lost_or_done_twice(postgres: PostgresServer, tmp_path: Path) -> None:
    address, chance = postgres.address(), random.Random(7)
    store = PostgresStore.open(address)
    for number in range(TASKS):
        store.put_task(Task(f"task-{number}", "x", "queued", float(number)))
    ended: list[Member] = []
    with crowd(address, tmp_path) as members:
        wait_until(lambda: all(member.lines() for member in members))
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.05, 0.4))
            wait_until(lambda: bool(places_of_begun(members)))
            place = chance.choice(places_of_begun(members))
            ended.append(members[place])
            members[place] = members[place].kill()
        wait_until(lambda: store.count_tasks({"completed"}) == TASKS)
        for role in ("write", "work", "follow"):  # in this order: those who follow see everything
            for member in members:
                if member.role == role:
                    member.close(is_killed=False)
        every = [*ended, *members]
    said = [line for member in every for line in member.lines()]
    assert [line for line in said if line[0] not in STATEMENTS] == []
    check_documents(store, every)
    check_followers(store, members)
    did = [line[1] for line in said if line[0] == "did"]
    assert len(did) == len(set(did)), "a task was completed twice"
    assert store.check_integrity() == []
    changes = store.changes(0, 100_000)
    assert [change.seq for change in changes] == list(range(1, len(changes) + 1))
    assert len([line for line in said if line[0] == "done"]) > 50, "that is too little to learn from"
    store.close()


def places_of_begun(members: list[Member]) -> list[int]:
    """Return which processes are at work, without the last one: it follows the changes from beginning to end."""
    return [place for place, member in enumerate(members[:-1]) if member.lines()]


STATEMENTS = ("ready", "begin", "done", "again", "did", "holds")


def check_documents(store: PostgresStore, members: list[Member]) -> None:
    """Every document is as its writer last heard; only what it was not told may be the one or the other."""
    expected: dict[str, set[str]] = {}
    for member in members:
        for line in member.lines():
            if line[0] == "begin":
                expected.setdefault(line[1], {"-"}).add(line[2])
            elif line[0] == "done":
                expected[line[1]] = {line[2]}
    known = store.digests()
    assert known.keys() <= expected.keys()
    for name, possible in expected.items():
        assert known.get(name, "-") in possible
        if name in known:
            assert store_crowd.digest_of(store.chunks_of(name)) == known[name]


def check_followers(store: PostgresStore, members: list[Member]) -> None:
    """Those who followed the changes hold what the store holds, the one that was killed as well."""
    chunks = [[item.head.rowid, item.text] for item in store.chunks_between(0, 2**62)]
    passages = [[item.id, item.passage.chunk_rowid] for item in store.passages_between(0, 2**62)]
    for member in members:
        if member.role == "follow":
            (data,) = (" ".join(line[1:]) for line in member.lines() if line[0] == "holds")
            assert json.loads(data) == [sorted(chunks), sorted(passages)]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + END_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
