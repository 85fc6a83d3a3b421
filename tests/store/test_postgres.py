"""What only the PostgreSQL engine does: addresses, migrations, lost connections, the feed of changes, and holders."""

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from textwrap import dedent

import psycopg
import pytest

from bedstone.errors import InvalidSetting
from bedstone.records import Chunk, Document, Passage, Task
from bedstone.search.indexes.keyword import KeywordIndex
from bedstone.search.indexes.vector import VectorIndex
from bedstone.store.engine import StoreDamaged, StoreUnavailable, StoreVersionMismatch
from bedstone.store.engines.postgres import PostgresStore
from bedstone.store.filters import AttributeContains, AttributeHas, AttributeIn, Order
from bedstone.store.opening import open_store
from bedstone.store.postgres.address import Address
from bedstone.store.postgres.connections import RETRY_SECONDS, WAIT_SECONDS, Database
from bedstone.store.postgres.schema import MIGRATIONS, migrate, read_version
from support.postgres import ENCODED_PASSWORD, PASSWORD, PostgresServer, postgres_server

Open = Callable[..., PostgresStore]


@pytest.fixture
def opened(postgres: PostgresServer) -> Iterator[Open]:
    """Open stores; all in one new schema unless told otherwise."""
    stores: list[PostgresStore] = []
    home = postgres.address()

    def open_it(address: str = home, *, read_only: bool = False) -> PostgresStore:
        stores.append(PostgresStore.open(address, read_only=read_only))
        return stores[-1]

    yield open_it
    for store in stores:
        store.close()


def document(name: str, **attributes: str) -> Document:
    return Document(name, f"Title of {name}", "1", attributes)


def chunks(name: str, count: int) -> list[Chunk]:
    return [Chunk(f"{name}#{number}", f"text {number}", f"plain {number} of {name}") for number in range(count)]


def task(name: str, **fields: object) -> Task:
    return replace(Task(name, "add", "queued", 1.0), **fields)  # type: ignore[arg-type]


# Addresses


def test_an_address_names_database_and_schema_and_hides_the_password() -> None:
    address = Address.parse("postgresql://ann:s%2Fecret@db.example:5433/kb?schema=team_a&sslmode=require")
    assert (address.schema, address.place) == ("team_a", "db.example:5433/kb (schema team_a)")
    known = psycopg.conninfo.conninfo_to_dict(address.conninfo)
    assert (known["password"], known["sslmode"], known["dbname"]) == ("s/ecret", "require", "kb")
    assert "schema" not in known
    assert Address.parse("postgresql://db.example/kb").schema == "bedstone"
    several = Address.parse("postgresql://a:5432,b:5432/kb?target_session_attrs=read-write")
    assert several.place == "a,b:5432,5432/kb (schema bedstone)"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:se/cret@db.example/kb",
        "postgresql://ann:12/cret@db.example/kb",
        "postgresql://ann:secret@db.example:many/kb",
        "postgresql://ann:secret@db.example/kb?speed=high",
        "postgresql://ann:secret@db.example/kb?schema=Team%20A",
        "postgresql://ann:secret@db.example/kb?schema=pg_temp",
        "postgresql://ann:secret@db.example/kb?schema=",
    ],
)
def test_an_address_that_is_not_valid_is_refused_without_its_password(address: str) -> None:
    with pytest.raises(InvalidSetting, match=r"storage\.database") as refused:
        Address.parse(address)
    assert "cret" not in refused.value.message


def test_a_password_is_used_and_never_shown(
    postgres: PostgresServer, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    address = postgres.network_address()
    opened(address).put([(document("a"), [])])
    with pytest.raises(StoreUnavailable, match="password authentication failed") as refused:
        opened(address.replace(ENCODED_PASSWORD, "tulip-and-more"))
    text = f"{refused.value} {refused.value.__cause__} {caplog.text}"
    assert all(secret not in text for secret in (PASSWORD, ENCODED_PASSWORD, "tulip-and-more"))


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    script = dedent("""
        import sys
        sys.modules["psycopg_pool"] = None
        from bedstone.errors import MissingExtra
        from bedstone.store.opening import open_store
        try:
            open_store("postgresql://localhost/kb")
        except MissingExtra as error:
            print(error)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("Install it with: pip install 'bedstone[postgres]'")


# Migrations


def test_schemas_share_a_database_and_see_nothing_of_each_other(postgres: PostgresServer, opened: Open) -> None:
    first, second = opened(), opened(postgres.address())
    first.put([(document("a"), chunks("a", 1))])
    lock = first.lock("owner")
    assert lock.acquire()
    assert second.counts().documents == 0
    assert second.lock("owner").acquire()
    before = second.version()
    first.set_value("name", "value")
    assert second.version() == before


def test_a_store_is_migrated_by_one_process_while_others_wait(postgres: PostgresServer) -> None:
    address = Address.parse(postgres.address())
    added = "CREATE TABLE later(id int); SELECT pg_sleep(0.2); INSERT INTO later VALUES (1)"
    problems: list[Exception] = []

    def upgrade() -> None:
        database = Database(address)
        try:
            with database.connect() as connection:
                migrate(connection, address, read_only=False, migrations=(*MIGRATIONS, added))
        except Exception as error:  # noqa: BLE001 - the test shows it
            problems.append(error)

    old = PostgresStore(address)
    old.put([(document("a"), chunks("a", 2))])
    threads = [threading.Thread(target=upgrade) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert problems == []
    with Database(address).connect() as connection:
        assert read_version(connection, address.schema) == len(MIGRATIONS) + 1
        assert connection.execute("SELECT count(*) FROM later").fetchone() == (1,)
    # While servers are upgraded one by one, the old one goes on, and says that it is to be replaced.
    old.put([(document("b"), chunks("b", 1))])
    assert old.counts().documents == 2
    with pytest.raises(StoreVersionMismatch, match=f"upgraded to version {len(MIGRATIONS) + 1} by a newer Bedstone"):
        old.check_readable()
    for read_only in (True, False):
        with pytest.raises(
            StoreVersionMismatch, match=f"upgraded to version {len(MIGRATIONS) + 1} by a newer Bedstone"
        ):
            PostgresStore(address, read_only=read_only)
    old.close()


def test_a_migration_that_fails_changes_nothing(postgres: PostgresServer) -> None:
    address = Address.parse(postgres.address())
    PostgresStore(address).close()
    with Database(address).connect() as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            migrate(connection, address, read_only=False, migrations=(*MIGRATIONS, "CREATE TABLE t(i int); SELECT 1/0"))
        assert read_version(connection, address.schema) == len(MIGRATIONS)
    PostgresStore(address).close()


def test_a_store_that_is_only_read_creates_and_writes_nothing(postgres: PostgresServer, opened: Open) -> None:
    address = postgres.address()
    with pytest.raises(StoreVersionMismatch, match="does not exist yet"):
        opened(address, read_only=True)
    opened(address).put([(document("a"), chunks("a", 1))])
    reader = opened(address, read_only=True)
    assert reader.counts().chunks == 1
    assert not reader.wait_for_change(reader.version(), 0)
    with pytest.raises(StoreUnavailable, match="read-only transaction"):
        reader.check_writable()


def test_a_role_that_may_only_read_can_read(postgres: PostgresServer, opened: Open) -> None:
    home = opened()
    home.put([(document("a"), chunks("a", 1))])
    schema = home._database.address.schema  # noqa: SLF001
    with psycopg.connect(home._database.address.conninfo, autocommit=True) as other:  # noqa: SLF001
        other.execute("CREATE ROLE reader LOGIN PASSWORD 'reader'")
        other.execute(f"GRANT USAGE ON SCHEMA {schema} TO reader")
        other.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader")
    reader = opened(f"postgresql://reader:reader@127.0.0.1:{postgres.port}/postgres?schema={schema}")
    reader.check_readable()
    assert reader.counts().documents == 1
    for write in (reader.check_writable, lambda: reader.delete(["a"]), lambda: reader.put_task(task("t"))):
        with pytest.raises(StoreUnavailable, match="permission denied"):
            write()


# Texts


def test_texts_that_postgresql_cannot_hold_come_back(opened: Open) -> None:
    odd = "a\0b\ud800c\ue000d\ue0000000"
    store = opened()
    known = Document(odd, odd, odd, {"filename": odd, "user": f'{{"k\\u0000": "v\\u0000", "{odd[4:]}": 1}}'})
    chunk = Chunk("c", "text", "plain", odd.replace("\ud800", ""), 1, (odd.replace("\ud800", ""),), {"f": "x\0"})
    store.put([(known, [chunk])])
    store.set_value(f"{odd}!", odd)
    assert store.documents() == [known]
    assert store.find_by_digest(odd) == known
    assert store.document_ids([AttributeIn("filename", (odd,))]) == [odd]
    assert store.document_ids([AttributeHas("user", ("v\0",), "k\0")]) == [odd]
    assert store.member_names("user") == sorted(["k\0", odd[4:]])
    assert store.list_values(odd) == {"!": odd}
    head = store.chunks_of(odd)[0].head
    assert (head.heading, head.breadcrumb, head.facets) == (chunk.heading, chunk.breadcrumb, chunk.facets)


def test_long_names_and_values_fit(opened: Open) -> None:
    """An index entry of PostgreSQL has 2,704 bytes at most; paths have 4,096."""
    store, path = opened(), "/".join(f"{number:x}" for number in range(2_000))
    store.put([(document("a", source=path, filename=path, user=f'{{"{path}": "{path}"}}'), [])])
    store.set_value(path, "1")
    assert store.document_ids([AttributeIn("source", (path,)), AttributeHas("user", (path,), path)]) == ["a"]
    assert store.list_values(path[:-1]) == {path[-1]: "1"}


def test_attributes_without_a_column_are_found_and_sorted_too(opened: Open) -> None:
    store = opened()
    for name, value, count in (("a", "Äpfel", "3"), ("b", "zebra", "20"), ("c", "Apple", "none")):
        store.put([(document(name, label=value, amount=count), [])])
    assert store.document_ids([AttributeIn("label", ("zebra", "Apple"))]) == ["b", "c"]
    assert store.document_ids([AttributeContains("label", "äPF")]) == ["a"]
    assert [item.id for item in store.documents(order=Order("label"))] == ["c", "b", "a"]
    assert [item.id for item in store.documents(order=Order("amount", is_number=True, descending=True))] == [
        "b",
        "a",
        "c",
    ]


# The feed of changes


def test_pruned_changes_leave_one_that_stands_for_all(opened: Open) -> None:
    """An index that is current goes on; one that is far behind starts again, and misses nothing."""
    store, current, behind = opened(), KeywordIndex(), KeywordIndex()
    nearest, far = VectorIndex(store, 2, 1.0), VectorIndex(store, 2, 1.0)
    for number in range(10):
        store.put([(document(f"d{number}"), chunks(f"d{number}", 2))])
        rowids = [item.head.rowid for item in store.chunks_of(f"d{number}")]
        store.put_passages([(Passage(rowid, 0, 4), bytes(4)) for rowid in rowids])
        if number == 3:
            behind.catch_up(store)
            far.catch_up()
    store.delete(["d1"])
    store.put([(document("d2", label="new"), chunks("d2", 3))])
    current.catch_up(store)
    nearest.catch_up()
    seq = store.last_change()
    store.prune_changes(4)
    assert store.last_change() == seq
    assert [change.seq for change in store.changes(0)] == list(range(17, 23)), "one that is not about vectors is first"
    store.put([(document("d11"), chunks("d11", 1))])
    store.delete(["d5"])
    fresh = KeywordIndex()
    for index in (current, behind, fresh):
        index.catch_up(store)
        assert index.chunk_count == store.counts().chunks == 18
        assert index.last_applied[0] == 24
        assert not index.search("d1", None, 10)
    for vectors in (nearest, far):
        vectors.catch_up()
        assert len(vectors) == store.counts().passages == 14
    assert store.check_integrity() == []


def test_changes_are_pruned_now_and_then(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bedstone.store.postgres.writing.KEEP_CHANGES", 5)
    monkeypatch.setattr("bedstone.store.postgres.writing.PRUNE_EVERY", 10)
    store = opened()
    for number in range(37):
        store.put([(document(f"d{number}"), chunks(f"d{number}", 1))])
    assert [change.seq for change in store.changes(0)] == list(range(25, 38))


# Connections


def test_a_lost_connection_costs_a_read_nothing_and_a_lost_server_is_said(
    postgres: PostgresServer, opened: Open
) -> None:
    store = opened()
    store.put([(document("a"), chunks("a", 1))])
    threads = [threading.Thread(target=store.counts) for _ in range(4)]  # so that there are several to lose
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    postgres.disconnect()
    assert store.counts().documents == 1
    postgres.disconnect()
    store.put([(document("b"), chunks("b", 1))])
    assert store.counts().documents == 2


def test_locks_outlast_the_time_after_which_a_server_ends_quiet_connections(
    postgres: PostgresServer, opened: Open
) -> None:
    with psycopg.connect(postgres.address().partition("&schema")[0], autocommit=True) as connection:
        connection.execute("ALTER ROLE bedstone SET idle_session_timeout = '200ms'")
        try:
            lock = opened().lock("owner")
            assert lock.acquire()
            time.sleep(0.8)
            assert lock.is_held
        finally:
            connection.execute("ALTER ROLE bedstone RESET idle_session_timeout")


def test_a_server_that_stops_is_an_error_at_once_until_it_is_back(postgres: PostgresServer, opened: Open) -> None:
    store = opened(postgres.network_address())
    lock = store.lock("owner")
    assert lock.acquire()
    store.put([(document("a"), chunks("a", 1))])
    postgres.stop()
    try:
        started = time.monotonic()
        for call in (store.counts, store.check_readable, store.check_writable, lock.acquire):
            with pytest.raises(StoreUnavailable, match=rf"PostgreSQL at 127\.0\.0\.1:{postgres.port}/postgres"):
                call()
        assert not lock.is_held
        assert time.monotonic() - started < 5
    finally:
        postgres.start()
    wait_until_writable(store)
    assert store.digests() == {"a": "1"}
    assert lock.acquire()
    before = store.version()
    threading.Timer(0.1, lambda: store.put([(document("b"), chunks("b", 1))])).start()
    assert store.wait_for_change(before, 5)


def wait_until_writable(store: PostgresStore) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            return store.check_writable()
        except StoreUnavailable:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_a_write_that_waits_for_a_connection_is_not_done_twice(postgres: PostgresServer, opened: Open) -> None:
    store, acknowledged = opened(), set()
    for number in range(8):
        breaker = threading.Thread(target=postgres.disconnect)
        breaker.start()
        try:
            store.put([(document(f"d{number}"), chunks(f"d{number}", 2))])
        except StoreUnavailable:
            pass  # it may have been saved nevertheless
        else:
            acknowledged.add(f"d{number}")
        breaker.join()
    wait_until_writable(store)
    known = store.digests()
    assert acknowledged <= known.keys()
    assert store.counts().chunks == 2 * len(known)
    assert len(store.changes(0)) >= len(known) >= 1
    assert store.check_integrity() == []


def test_a_notification_wakes_at_once_and_a_poll_finds_what_it_missed(postgres: PostgresServer, opened: Open) -> None:
    store, other = opened(), opened()
    assert not store.wait_for_change(store.version(), 0.2)  # it listens now
    wrote = [0.0]

    def write() -> None:
        wrote[0] = time.time()
        other.set_value("time", str(wrote[0]))

    seconds = []
    for _ in range(5):
        before = store.version()
        threading.Timer(0.05, write).start()
        assert store.wait_for_change(before, 5)
        seconds.append(time.time() - wrote[0])
    assert min(seconds) < 0.2, "that is faster than polling"
    postgres.disconnect()
    before = store.version()
    threading.Timer(0.1, write).start()
    assert store.wait_for_change(before, 5)


def test_a_wait_ends_when_the_store_is_closed(opened: Open) -> None:
    store = opened()
    started = time.monotonic()
    closing = threading.Timer(0.1, store.close)
    closing.start()
    with suppress(StoreUnavailable):
        store.wait_for_change(store.version(), 20)
    assert time.monotonic() - started < 5
    closing.join()
    for call in (store.counts, store.lock("owner").acquire):
        with pytest.raises(StoreUnavailable, match="closed"):
            call()


def test_many_threads_share_few_connections(opened: Open) -> None:
    store, found = opened(), []
    store.put([(document("a"), chunks("a", 3))])
    threads = [threading.Thread(target=lambda: found.append(len(list(store.chunks_between(0, 99))))) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [3] * 40


# Holders


def test_a_lock_and_its_tasks_are_free_when_the_connection_is_lost(postgres: PostgresServer, opened: Open) -> None:
    store, other = opened(), opened()
    mine, theirs = store.lock("owner"), other.lock("owner")
    assert mine.acquire()
    assert not theirs.acquire()
    store.put_task(task("t"))
    assert store.replace_task(task("t", status="running", attempts=1), "queued")
    assert other.abandoned_tasks() == []
    other.put_task(task("t", status="completed"))  # it is not its own
    assert not other.replace_task(task("t"), "running")
    assert store.task("t") == task("t", status="running", attempts=1)
    postgres.disconnect()
    time.sleep(0.3)  # until a lock looks at its connection again
    assert not mine.is_held
    assert theirs.acquire()
    assert [item.id for item in other.abandoned_tasks()] == ["t"]
    assert other.replace_task(task("t", attempts=1), "running")
    assert other.replace_task(task("t", status="running", attempts=2), "queued")
    assert not store.replace_task(task("t", status="running", attempts=1), "running")
    assert not mine.acquire()
    theirs.release()
    assert mine.acquire()


def test_a_damaged_store_is_told_from_one_that_does_not_answer(postgres: PostgresServer) -> None:
    address = postgres.address()
    store = PostgresStore.open(address)
    store.put([(document("a"), chunks("a", 3)), (document("b"), chunks("b", 1))])
    assert store.check_integrity() == []
    with psycopg.connect(store._database.address.conninfo) as other:  # noqa: SLF001
        other.execute(f"SET search_path = {store._database.address.schema}")  # noqa: SLF001
        other.execute("UPDATE chunk SET plain = 'broken' WHERE id = 'a#2'")
        other.execute("DELETE FROM chunk WHERE id = 'a#1'")
        other.execute("DELETE FROM document WHERE id = 'b'")
        other.execute("DELETE FROM change WHERE seq = 1")
        other.execute("UPDATE feed SET seq = 3, chunk = 1")
    assert store.check_integrity() == [
        "chunk b#0 belongs to no document",
        "document a has 2 of 3 chunks",
        "the list of changes lacks number 3",
        "the numbers of chunks are used twice",
        "the text of chunk a#2 is damaged",
    ]
    with psycopg.connect(store._database.address.conninfo) as other:  # noqa: SLF001
        other.execute(f"DROP TABLE {store._database.address.schema}.facets")  # noqa: SLF001
    with pytest.raises(StoreDamaged, match='relation "facets" does not exist'):
        store.chunk("a#0")
    store.close()


def test_calls_that_wait_for_a_connection_hear_that_the_server_has_gone() -> None:
    """Many at once, when it goes: none of them waits as long as for connections that are in use."""
    seconds: list[float] = []

    def read() -> None:
        begun = time.monotonic()
        with suppress(StoreUnavailable):
            store.version()
        seconds.append(time.monotonic() - begun)

    with postgres_server() as server:
        store = open_store(server.address())
        server.stop()
        threads = [threading.Thread(target=read) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert max(seconds) < WAIT_SECONDS / 2
        server.start()
        time.sleep(RETRY_SECONDS)
        store.version()
        store.close()
