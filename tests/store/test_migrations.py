"""Upgrading a store: once, completely or not at all, while servers of the previous version go on.

The previous version is its own code, in a process of its own: see `support/previous.py`.
"""

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from bedstone.records import Chunk, Document, Passage
from bedstone.store.engine import Store, StoreVersionMismatch
from bedstone.store.engines.postgres import PostgresStore
from bedstone.store.engines.sqlite import SqliteStore
from bedstone.store.opening import open_store
from bedstone.store.postgres import schema as postgres_schema
from bedstone.store.postgres.address import Address
from bedstone.store.postgres.connections import Database
from bedstone.store.sqlite_schema import FIRST_VERSION, MIGRATIONS, SCHEMA_VERSION, migrate, read_version
from soak.knowledge import call
from support.postgres import PostgresServer
from support.previous import previous_store
from support.processes import bedstone, listening

PREVIOUS_SQLITE, PREVIOUS_POSTGRES = 2, 1  # of the code that support/previous.py keeps
WAIT_SECONDS = 30
PUT = (
    "store.put([(Document({name!r}, 'T', '1', {{'added': '1', 'contexts': '[\"default\"]'}}), "
    "[Chunk('{name}#0', 'text of {name}', 'plain of {name}'), Chunk('{name}#1', 'more', 'more')])])"
)
VECTORS = "store.put_passages([(Passage(item.head.rowid, 0, 4), bytes(8)) for item in store.chunks_of({name!r})])"
# What a later version may add, as its servers find it, while those of this one go on.
LATER = """
CREATE TABLE later(id {number} PRIMARY KEY, name TEXT);
INSERT INTO later(id, name) VALUES (1, 'one');
ALTER TABLE document ADD COLUMN pinned {number} NOT NULL DEFAULT 0;
CREATE INDEX document_by_pinned ON document(pinned);
"""


def put(name: str) -> str:
    return PUT.format(name=name)


def names(store: Store) -> list[str]:
    return [item.id for item in store.documents()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "knowledge.sqlite"


def version_of(file: Path) -> int:
    with closing(sqlite3.connect(file)) as db:
        return read_version(db)


def columns_of(file: Path) -> dict[str, str]:
    with closing(sqlite3.connect(file)) as db:
        return dict(db.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"))


# SQLite


def test_a_file_of_the_previous_version_keeps_everything(file: Path) -> None:
    with previous_store(f"sqlite:{file}") as old:
        for name in ("a", "b"):
            assert (old.ask(put(name)), old.ask(VECTORS.format(name=name))) == ("None", "None")
        old.ask("store.put_task(Task('t', 'add', 'completed', 1.0, {'file': 'a'}, finished_at=2.5))")
        old.ask("store.set_value('store_id', 'mine')")
        old.ask("store.delete(['b'])")
        asked = (
            "store.documents()", "store.chunks_of('a')", "list(store.passages_between(0, 99))", "store.changes(0)",
            "store.task('t')", "store.list_values('')", "store.facets()", "store.counts()",
        )  # fmt: skip
        before = [old.ask(question) for question in asked]
    assert version_of(file) == PREVIOUS_SQLITE < SCHEMA_VERSION
    store = SqliteStore(file)
    after = [repr(eval(question, {"store": store})) for question in asked]
    assert after == before
    assert store.check_integrity() == []
    store.check_readable()
    store.put([(Document("c", "T", "1", {}), [Chunk("c#0", "text", "plain")])])
    assert store.chunks_of("c")[0].head.rowid == 5, "numbers go on"
    store.close()
    assert version_of(file) == SCHEMA_VERSION


def test_an_upgraded_file_is_like_a_new_one(file: Path, tmp_path: Path) -> None:
    with previous_store(f"sqlite:{file}"):
        pass
    SqliteStore(file).close()
    SqliteStore(tmp_path / "new.sqlite").close()
    assert columns_of(file) == columns_of(tmp_path / "new.sqlite")


def test_a_server_of_the_previous_version_goes_on_after_an_upgrade(file: Path) -> None:
    """Both read what the other writes; it cannot be started again."""
    with previous_store(f"sqlite:{file}") as old:
        assert old.ask(put("before")) == "None"
        new = SqliteStore(file)
        assert version_of(file) == SCHEMA_VERSION
        rolling_upgrade(old.ask, new)
        new.close()
    with pytest.raises(AssertionError), previous_store(f"sqlite:{file}"):
        pass  # it says that another version wrote the file, and ends


def rolling_upgrade(ask: Callable[[str], str], new: Store) -> None:
    """Let the previous version and the current one work on one store."""
    assert ask(put("during")) == "None"
    new.put([(Document("new", "T", "1", {}), [Chunk("new#0", "text", "plain")])])
    assert names(new) == ["before", "during", "new"]
    assert ask("[item.id for item in store.documents()]") == repr(["before", "during", "new"])
    assert ask(VECTORS.format(name="new")) == "None"
    assert new.counts() == (counts := eval_counts(ask)), counts
    assert [change.seq for change in new.changes(0)] == list(range(1, 5))
    assert ask("store.put_task(Task('t', 'add', 'queued', 1.0))") == "None"
    task = new.task("t")
    assert task is not None
    new.request_cancel("t")
    assert ask("store.cancel_requests()") == "{'t'}"
    assert ask("store.delete(['before'])") == "None"
    assert names(new) == ["during", "new"]
    assert ask("store.check_integrity()") == "[]"
    assert new.check_integrity() == []


def eval_counts(ask: Callable[[str], str]) -> object:
    from bedstone.records import Counts  # noqa: PLC0415 - for `eval`

    return eval(ask("store.counts()"), {"Counts": Counts})


def test_a_running_server_says_that_a_newer_one_has_migrated_its_store(file: Path) -> None:
    store = SqliteStore(file)
    store.check_readable()
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        migrate(db, file, migrations=(*MIGRATIONS, LATER.format(number="INTEGER")))
    expected = (
        f"upgraded to version {SCHEMA_VERSION + 1} by a newer Bedstone, and this one knows version {SCHEMA_VERSION}"
    )
    with pytest.raises(StoreVersionMismatch, match=expected):
        store.check_readable()
    store.put([(Document("a", "T", "1", {}), [])])
    assert names(store) == ["a"], "it goes on"
    store.seal()
    store.close()
    for read_only in (True, False):
        with pytest.raises(StoreVersionMismatch, match=f"{expected}: upgrade this one too"):
            SqliteStore(file, read_only=read_only)


def test_a_sealed_file_of_the_previous_version_can_be_read_where_nobody_may_write(file: Path) -> None:
    with previous_store(f"sqlite:{file}") as old:
        old.ask(put("a"))
        old.ask("store.seal()")
    with closing(SqliteStore(file, read_only=True)) as store:
        assert names(store) == ["a"]
        store.check_readable()
    assert version_of(file) == PREVIOUS_SQLITE
    with closing(sqlite3.connect(file)) as db:
        db.execute(f"PRAGMA user_version = {FIRST_VERSION - 1}")
    for read_only in (True, False):
        with pytest.raises(StoreVersionMismatch, match="has version 1, which is too old"):
            SqliteStore(file, read_only=read_only)


UPGRADE_FILE = """
import sqlite3, sys, time
from bedstone.store.sqlite_schema import MIGRATIONS, migrate
db = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
def pause():
    print("paused", flush=True)
    time.sleep(float(sys.argv[2]))
db.create_function("pause", 0, pause)
added = "CREATE TABLE once(id INTEGER);\\nSELECT pause();\\nINSERT INTO once VALUES (1);\\n"
migrate(db, "file", migrations=(*MIGRATIONS, added))
print("migrated", flush=True)
"""
UPGRADE_SCHEMA = """
import sys
from bedstone.store.postgres.address import Address
from bedstone.store.postgres.connections import Database
from bedstone.store.postgres.schema import MIGRATIONS, migrate
address = Address.parse(sys.argv[1])
connection = Database(address).connect()
connection.add_notice_handler(lambda notice: print(notice.message_primary, flush=True))
migrate(connection, address, read_only=False, migrations=(*MIGRATIONS, "CREATE TABLE once(id int);"
    f"DO $$ BEGIN RAISE WARNING 'paused'; END $$; SELECT pg_sleep({float(sys.argv[2])}); INSERT INTO once VALUES (1);"))
print("migrated", flush=True)
"""


def upgrade(script: str, address: str | Path, seconds: float) -> "subprocess.Popen[str]":
    """Upgrade a store to a version whose migration pauses in its middle."""
    command = [sys.executable, "-c", script, str(address), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said(process: "subprocess.Popen[str]") -> list[str]:
    output, problems = process.communicate(timeout=WAIT_SECONDS)
    assert problems == ""
    return output.split()


def kill_while_paused(process: "subprocess.Popen[str]") -> None:
    assert process.stdout
    assert process.stdout.readline() == "paused\n"
    process.kill()
    process.communicate(timeout=WAIT_SECONDS)


def test_of_processes_that_open_a_file_at_once_one_migrates_it(file: Path) -> None:
    SqliteStore(file).close()
    outputs = [said(process) for process in [upgrade(UPGRADE_FILE, file, 0.3) for _ in range(4)]]
    assert sorted(outputs) == [["migrated"]] * 3 + [["paused", "migrated"]]
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT id FROM once").fetchall() == [(1,)]
        assert read_version(db) == SCHEMA_VERSION + 1


@pytest.mark.skipif(sys.platform == "win32", reason="kills with SIGKILL")
def test_a_crash_in_a_migration_leaves_the_file_of_before(file: Path) -> None:
    with closing(SqliteStore(file)) as store:
        store.put([(Document("a", "T", "1", {}), [Chunk("a#0", "text", "plain")])])
    kill_while_paused(upgrade(UPGRADE_FILE, file, WAIT_SECONDS))
    assert version_of(file) == SCHEMA_VERSION
    assert "once" not in columns_of(file)
    with closing(SqliteStore(file)) as store:
        assert names(store) == ["a"]
        assert store.check_integrity() == []
    assert said(upgrade(UPGRADE_FILE, file, 0)) == ["paused", "migrated"]
    assert version_of(file) == SCHEMA_VERSION + 1


def test_many_threads_that_open_a_previous_file_upgrade_it(file: Path) -> None:
    with previous_store(f"sqlite:{file}") as old:
        old.ask(put("a"))
    found: list[list[str]] = []

    def look() -> None:
        with closing(SqliteStore(file)) as store:
            found.append(names(store))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert found == [["a"]] * 8


# PostgreSQL


def test_a_schema_of_the_previous_version_keeps_everything(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server goes on, reads what the newer one writes, and the newer one has everything."""
    monkeypatch.setattr(
        postgres_schema.migrate,
        "__kwdefaults__",
        {"migrations": (*postgres_schema.MIGRATIONS, LATER.format(number="int"))},
    )
    address = postgres.address()
    with previous_store(address) as old:
        assert old.ask(put("before")) == "None"
        new = PostgresStore.open(address)
        version = len(postgres_schema.MIGRATIONS) + 1
        assert stored_version(address) == version > PREVIOUS_POSTGRES
        rolling_upgrade(old.ask, new)
        refused = old.ask("store.check_readable()")
        assert f"upgraded to version {version} by a newer Bedstone, and this one knows version 1" in refused
        new.close()
    with psycopg.connect(address.rpartition("&")[0]) as db:
        schema = address.rpartition("=")[2]
        assert db.execute(f"SELECT name FROM {schema}.later".encode()).fetchall() == [("one",)]


def stored_version(address: str) -> int:
    parsed = Address.parse(address)
    with closing(Database(parsed).connect()) as connection:
        return postgres_schema.read_version(connection, parsed.schema)


def test_of_processes_that_open_a_schema_at_once_one_migrates_it(postgres: PostgresServer) -> None:
    address = postgres.address()
    outputs = [said(process) for process in [upgrade(UPGRADE_SCHEMA, address, 0.3) for _ in range(3)]]
    assert sorted(outputs) == [["migrated"]] * 2 + [["paused", "migrated"]]
    assert stored_version(address) == len(postgres_schema.MIGRATIONS) + 1


@pytest.mark.skipif(sys.platform == "win32", reason="kills with SIGKILL")
def test_a_crash_in_a_migration_leaves_the_schema_of_before(postgres: PostgresServer) -> None:
    address = postgres.address()
    with closing(PostgresStore.open(address)) as store:
        store.put([(Document("a", "T", "1", {}), [Chunk("a#0", "text", "plain")])])
        kill_while_paused(upgrade(UPGRADE_SCHEMA, address, 2))
        assert stored_version(address) == len(postgres_schema.MIGRATIONS)
        assert said(upgrade(UPGRADE_SCHEMA, address, 0)) == ["paused", "migrated"]
        assert names(store) == ["a"]
        with pytest.raises(StoreVersionMismatch):
            store.check_readable()


def test_the_first_opening_by_several_stores_creates_each_kind_once(postgres: PostgresServer, file: Path) -> None:
    for address in (postgres.address(), f"sqlite:{file}"):
        stores: list[Store] = []
        threads = [
            threading.Thread(target=lambda to, known: known.append(open_store(to)), args=(address, stores))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_SECONDS)
        assert len(stores) == 4
        stores[0].put([(Document("a", "T", "1", {}), [Chunk("a#0", "text", "plain")])])
        stores[1].put_passages([(Passage(1, 0, 1), bytes(4))])
        assert {names(store)[0] for store in stores} == {"a"}
        for store in stores:
            store.close()


# Servers


def test_a_server_is_not_ready_after_a_newer_one_has_migrated_its_store(tmp_path: Path) -> None:
    """It goes on answering, so that nothing is lost until it is replaced; it cannot be started again."""
    (tmp_path / "tulips.txt").write_text("plant tulips in autumn")
    options = ("--toolsets", "knowledge", "--data-dir", tmp_path / "data")
    store = tmp_path / "data" / "index" / "knowledge.sqlite"
    expected = f"upgraded to version {SCHEMA_VERSION + 1} by a newer Bedstone"
    with listening(*options, log=tmp_path / "log", BEDSTONE_EMBEDDING__PROVIDER="none") as server:
        assert call(server, "add", {"file_path": str(tmp_path / "tulips.txt"), "async": False})["success"]
        assert server.request("GET", "/readyz")[0] == 200
        assert said(upgrade(UPGRADE_FILE, store, 0)) == ["paused", "migrated"]
        status, answer = server.request("GET", "/readyz")
        assert status == 503
        assert expected in json.loads(answer)["problems"][0]
        assert call(server, "search", {"query": "tulips"})["results"][0]["filename"] == "tulips.txt"
        (tmp_path / "gulls.txt").write_text("feed the gulls")
        assert call(server, "add", {"file_path": str(tmp_path / "gulls.txt"), "async": False})["success"]
    refused = bedstone("knowledge", "list", "--data-dir", tmp_path / "data")
    assert refused.returncode == 1
    assert f"{expected}, and this one knows version {SCHEMA_VERSION}: upgrade this one too." in refused.stderr
