"""Moving a store between SQLite and PostgreSQL: every row with its number, through kills, and compared at the end."""

import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from bedstone.errors import InvalidInput, Unavailable
from bedstone.records import Chunk, Document, Passage, Place, ProgressSnapshot, Task, TaskError
from bedstone.search.indexes.keyword import KeywordIndex
from bedstone.store.engine import Store, StoreUnavailable, StoreVersionMismatch
from bedstone.store.engines.postgres import PostgresStore
from bedstone.store.engines.sqlite import SqliteStore
from bedstone.store.filters import AttributeContains, AttributeHas, AttributeIn, Order
from bedstone.store.moving import ends
from bedstone.store.moving.move import MoveMismatch, move
from bedstone.store.moving.postgres_end import PostgresSource, PostgresTarget
from bedstone.store.moving.sqlite_end import SqliteSource
from bedstone.store.opening import open_store
from bedstone.store.postgres.schema import NAMES
from support import mover
from support.postgres import PostgresServer

STEPS_SECONDS = 60


def fill(store: Store, documents: int = 40) -> None:
    """Put everything there that a base has, and gaps where something was deleted."""
    chance = random.Random(3)
    for number in range(documents):
        name, places = f"d{number:03}", (Place(0, 0, 1, ("Top",)), Place(5, 6, 2, ("Top", "B")))
        attributes = {
            "added": f"{number}.5", "size": "3", "contexts": '["sea", "news"]', "filename": f"Ä {number}.pdf",
            "user": '{"author": "Ada", "year": 2020}', "status": "completed",
        }  # fmt: skip
        chunks = [
            Chunk(f"{name}#{place}", f"**tulips** {number} {place}\n" * 9, f"tulips {number} {place} für {name}",
                  f"Heading {place}", 2, ("Top", f"H{place}"), {"language": chance.choice(["go", "py"])}, 1, places)
            for place in range(chance.randint(1, 9))
        ]  # fmt: skip
        store.put([(Document(name, f"Title\0 {number}", f"digest {number}", attributes), chunks)])
        store.put_passages([(Passage(item.head.rowid, 0, 4), chance.randbytes(16)) for item in store.chunks_of(name)])
    store.delete([f"d{number:03}" for number in range(3, documents, 7)])
    store.put([(Document("last", "Goes again", "x", {}), [Chunk("last#0", "t", "t")])])
    store.delete(["last"])  # its number must not be given out again
    tasks = [
        Task("t1", "add", "queued", 1.25, {"file": "ä"}),
        Task("t2", "add", "running", 2.0, started_at=3.0, attempts=1, progress=ProgressSnapshot("Reading", 0.5, 1.0)),
        Task("t3", "add", "failed", 2.0, started_at=3.0, finished_at=1e9 + 0.123456789, error=TaskError("x", "Why")),
        Task("t4", "add", "completed", 2.0, finished_at=5.0, result={"chunks": 3}, is_dismissed=True),
    ]
    for task in tasks:
        store.put_task(task)
    store.request_cancel("t1")
    store.set_value("store_id", "base")
    store.set_value("collection:" + "long/" * 800, "Ü" * 9000)


def contents(store: Store) -> dict[str, object]:
    """Return everything that callers can see of a store."""
    passages = list(store.passages_between(0, 2**60))
    return {
        "documents": store.documents(limit=10_000),
        "newest": [item.id for item in store.documents(order=Order("added", is_number=True, descending=True))],
        "sea": store.document_ids([AttributeHas("contexts", ("sea",))]) != [],
        "ada": sorted(store.document_ids([AttributeHas("user", ("Ada",), "author")])),
        "named": store.count_documents([AttributeContains("filename", "ä 1")]),
        "state": store.count_documents([AttributeIn("status", ("completed",))]),
        "chunks": list(store.chunks_between(0, 2**60)),
        "passages": passages,
        "vectors": store.vectors([item.id for item in passages]),
        "facets": store.facets(),
        "counts": store.counts(),
        "changes": store.changes(0, 10_000),
        "tasks": [store.task(name) for name in ("t1", "t2", "t3", "t4")],
        "finished": [item.id for item in store.finished_tasks({"failed", "completed"}, dismissed=False)],
        "cancel": store.cancel_requests(),
        "values": store.list_values(""),
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source" / "knowledge.sqlite"
    store = SqliteStore(path)
    fill(store)
    store.close()
    return path


def move_once(source: str | Path, target: str | Path, base: str = "base") -> dict[str, int]:
    with closing(mover.open_source(str(source))) as first, closing(mover.open_target(str(target))) as second:
        return {name: table.count for name, table in move(first, second, base, max_rows=mover.FEW_ROWS).items()}


def opened(address: str | Path) -> Store:
    return open_store(address)


def look(address: str | Path) -> dict[str, object]:
    with closing(opened(address)) as store:
        assert store.check_integrity() == []
        return contents(store)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".owner"}


def test_a_base_is_moved_there_and_back(source: Path, postgres: PostgresServer, tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path / "keywords")
    with closing(opened(source)) as store:
        index.catch_up(store)
        before = contents(store)
    address, back, untouched = postgres.address(), tmp_path / "back" / "knowledge.sqlite", files_of(source.parent)
    moved = move_once(source, address)
    assert files_of(source.parent) == untouched
    assert {name: moved[name] for name in ("document", "task", "setting")} == {"document": 34, "task": 4, "setting": 2}
    assert look(address) == before
    with closing(opened(address)) as store:
        last = store.last_change()
        assert last is not None
        assert index.last_applied == (last.seq, last.stamp), "it need not be built again"
        index.catch_up(store)
        assert index.chunk_count == store.counts().chunks
    move_once(address, back)
    assert look(back) == before
    for place in (source, address, back):  # no number is given out twice
        with closing(opened(place)) as store:
            store.put([(Document("new", "New", "n", {}), [Chunk("new#0", "text", "plain")])])
            store.put_passages([(Passage(store.chunks_of("new")[0].head.rowid, 0, 1), bytes(16))])
            numbers = (store.chunks_of("new")[0].head.rowid, list(store.passages_between(0, 2**60))[-1].id)
            assert (*numbers, store.changes(0, 10_000)[-1].seq) == (
                max(item.head.rowid for item in before["chunks"]) + 2,  # type: ignore[attr-defined]
                max(item.id for item in before["passages"]) + 1,  # type: ignore[attr-defined]
                before["changes"][-1].seq + 2,  # type: ignore[index]
            )


def killed_at(step: int, source: str | Path, target: str | Path) -> bool:
    """Move in a process of its own, killed when it has said so many steps; return whether it came to its end."""
    command = [sys.executable, mover.__file__, str(source), str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        said: list[str] = []
        for line in process.stdout:
            said.append(line.strip())
            if len(said) == step:
                process.kill()
        problems = process.stderr.read()
        process.wait(STEPS_SECONDS)
    assert "Traceback" not in problems, problems
    return said[-1:] == ["end"]


@pytest.mark.skipif(sys.platform == "win32", reason="kills with SIGKILL")
@pytest.mark.parametrize("is_back", [False, True])
def test_a_move_that_is_killed_goes_on(is_back: bool, source: Path, postgres: PostgresServer, tmp_path: Path) -> None:
    before, chance = look(source), random.Random(5)
    first: str | Path = source
    target: str | Path = postgres.address()
    if is_back:
        move_once(source, target)
        first, target = target, tmp_path / "back" / "knowledge.sqlite"
    kills = 0
    while not killed_at(chance.randint(8, 20) + 8 * kills, first, target):
        kills += 1
        assert kills < 40, "each attempt must go on where the last one was"
        with pytest.raises(StoreUnavailable, match="is incomplete: moving a base to it has not ended"):
            opened(target)
    assert kills >= 3
    assert look(target) == before
    assert look(first) == before


def test_a_source_that_changed_meanwhile_is_moved_anew(source: Path, postgres: PostgresServer) -> None:
    address, changes = postgres.address(), iter(CHANGES)
    for change in changes:
        interrupt(source, address, "Copying tasks")
        with closing(opened(source)) as store:
            change(store)
    move_once(source, address)
    assert look(address) == look(source)


CHANGES: list[Callable[[Store], object]] = [
    lambda store: store.put([(Document("later", "Later", "l", {}), [Chunk("later#0", "text", "plain")])]),
    lambda store: store.update_documents([Document("later", "Renamed", "l", {"added": "1"})]),
    lambda store: store.delete_passages(),
    lambda store: store.put_task(Task("t1", "add", "cancelled", 1.25, {"file": "ä"})),
    lambda store: store.set_value("name", "value"),
]


def interrupt(source: str | Path, target: str | Path, at: str) -> None:
    """Begin a move, and break off at a step."""

    def stop(step: str, *_: int) -> None:
        if step == at:
            raise KeyboardInterrupt

    with (
        closing(mover.open_source(str(source))) as first,
        closing(mover.open_target(str(target))) as second,
        pytest.raises(KeyboardInterrupt),
    ):
        move(first, second, "base", stop, max_rows=mover.FEW_ROWS)


def test_a_target_that_is_not_empty_is_refused_and_left_alone(
    source: Path, postgres: PostgresServer, tmp_path: Path
) -> None:
    address, other = postgres.address(), tmp_path / "other" / "knowledge.sqlite"
    for place in (address, other):
        with closing(opened(place)) as store:
            store.put([(Document("mine", "Mine", "m", {}), [])])
            store.set_value("name", "value")
    expected = "is not empty: it has 1 documents, 1 changes, 1 values. Nothing was changed"
    with pytest.raises(InvalidInput, match=expected):
        move_once(source, address)
    with pytest.raises(InvalidInput, match=expected):
        move_once(address, other)
    for place in (address, other):
        assert list(look(place)["values"]) == ["name"]  # type: ignore[call-overload]
    begun = postgres.address()
    interrupt(source, begun, "Copying chunks")
    with pytest.raises(InvalidInput, match="has a part of another base"):
        move_once(source, begun, base="another")
    move_once(source, begun)


def test_what_differs_at_the_end_is_found_and_moved_again(source: Path, postgres: PostgresServer) -> None:
    address = postgres.address()
    schema = address.rpartition("=")[2]
    damages = (
        ("UPDATE chunk SET plain = 'x' WHERE id = 'd002#0'", "1 of [0-9]+ chunks, such as [0-9]+"),
        ("UPDATE passage SET vector = 'x' WHERE id IN (SELECT min(id) FROM passage)", "vectors, such as 1"),
        ("DELETE FROM task WHERE id = 't3'", "3 instead of 4 tasks"),
        ("UPDATE document SET title = 'x' WHERE id = 'd000'", "documents, such as d000"),
    )
    for damage, expected in damages:
        interrupt(source, address, "Copying values")
        with psycopg.connect(address.rpartition("&")[0]) as db:
            db.execute(f"SET search_path = {schema}")
            db.execute(damage.encode())
        with pytest.raises(MoveMismatch, match=f"differs from .* in .*{expected}"):
            move_once(source, address)
        with pytest.raises(StoreUnavailable, match="is incomplete"):
            opened(address)
    move_once(source, address)
    assert look(address) == look(source)


def test_nobody_writes_while_a_base_is_moved(source: Path, postgres: PostgresServer, tmp_path: Path) -> None:
    store = opened(source)
    owner = store.lock("owner")
    assert owner.acquire()
    with pytest.raises(Unavailable, match=r"uses the store .*knowledge\.sqlite\. Stop it, and run the command again"):
        SqliteSource(source)
    owner.release()
    held = SqliteSource(source)
    assert not owner.acquire(), "a server that starts meanwhile does no work"
    with closing(sqlite3.connect(source, timeout=0)) as db, pytest.raises(sqlite3.OperationalError, match="locked"):
        db.execute("INSERT INTO setting VALUES ('late', '')")
    assert store.counts().documents == 34, "reading goes on"
    held.close()
    store.set_value("late", "")
    store.close()
    address = postgres.address()
    move_once(source, address)
    with closing(PostgresStore.open(address)) as there:
        lock = there.lock("owner")
        assert lock.acquire()
        for end in (PostgresSource, PostgresTarget):
            with pytest.raises(Unavailable, match=r"uses the store .*\. Stop it, and run the command again"):
                end(address)
        lock.release()
        held_there = PostgresSource(address)
        assert not lock.acquire()
        with psycopg.connect(address.rpartition("&")[0]) as db:
            db.execute("SET lock_timeout = 100")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                db.execute(f"UPDATE {address.rpartition('=')[2]}.feed SET seq = seq".encode())
        assert there.counts().documents == 34
        held_there.close()
        there.set_value("later", "")
    assert not (tmp_path / "nowhere").exists()


def test_a_source_that_is_missing_or_of_another_version_is_refused(source: Path, postgres: PostgresServer) -> None:
    with pytest.raises(InvalidInput, match="so there is nothing to move"):
        SqliteSource(source.with_name("other.sqlite"))
    with pytest.raises(StoreVersionMismatch, match="does not exist yet"):
        PostgresSource(postgres.address())
    for version, expected in ((2, "has version 2. Upgrade it first: `bedstone knowledge status`"), (99, "by a newer")):
        with closing(sqlite3.connect(source)) as db:
            db.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(StoreVersionMismatch, match=expected):
            SqliteSource(source)


def test_a_crash_of_the_source_loses_nothing_that_is_not_in_its_file_yet(
    source: Path, postgres: PostgresServer
) -> None:
    script = (
        "import os, sys; from pathlib import Path; from bedstone.store.engines.sqlite import SqliteStore\n"
        "from bedstone.records import Document\n"
        "store = SqliteStore(Path(sys.argv[1])); store.put([(Document('crashed', 'T', 'd', {}), [])]); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", script, str(source)], check=False)
    before = files_of(source.parent)
    assert before["knowledge.sqlite-wal"]
    address = postgres.address()
    move_once(source, address)
    assert files_of(source.parent)["knowledge.sqlite"] == before["knowledge.sqlite"]
    with closing(opened(address)) as store:
        assert store.document("crashed")


def test_every_table_is_moved_or_known_not_to_be(source: Path) -> None:
    moved = {table.name for table in ends.TABLES}
    counters = {"feed", "activity", "sqlite_sequence"}  # moved as numbers
    with closing(sqlite3.connect(source)) as db:
        known = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        columns = {table: {row[1] for row in db.execute(f"PRAGMA table_info({table})")} - {"rowid"} for table in moved}
    assert known - counters == moved
    passing = {"note", "note_revision"}  # about servers that run, and none does
    assert set(NAMES) - counters - passing == moved
    for table in ends.TABLES:
        assert columns[table.name] == set(table.columns) - {"number"}
