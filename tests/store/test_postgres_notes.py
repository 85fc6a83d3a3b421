"""Notes in PostgreSQL: seen by all at once, gone after their time, and no change for anything else."""

import threading
import time
from collections.abc import Iterator

import pytest

from bedstone.store.engine import StoreUnavailable
from bedstone.store.engines.postgres import PostgresStore
from bedstone.store.notes import Notes
from support.postgres import PostgresServer


@pytest.fixture
def stores(postgres: PostgresServer) -> Iterator[list[PostgresStore]]:
    address = postgres.address()
    found = [PostgresStore.open(address) for _ in range(2)]
    yield found
    for store in found:
        store.close()


def notes_of(store: PostgresStore) -> Notes:
    assert store.notes is not None
    return store.notes


def test_a_note_is_seen_by_all_until_its_time_is_over(stores: list[PostgresStore]) -> None:
    mine, theirs = map(notes_of, stores)
    version = stores[0].version()
    mine.put("peer:a", "first", 60)
    mine.put("peer:a", "second", 60)
    mine.put("peer:b%_", "short", 0.2)
    assert theirs.read("peer:") == {"a": "second", "b%_": "short"}
    assert theirs.read("peer:%") == {}
    time.sleep(0.3)
    assert theirs.read("peer:") == {"a": "second"}
    theirs.prune()
    mine.delete("peer:a")
    mine.delete("unknown")
    assert theirs.read("") == {}
    assert stores[0].version() == version  # nobody looks for tasks or changes because of a note


def test_one_secret_is_made_however_many_ask_at_once(stores: list[PostgresStore]) -> None:
    found: list[str] = []
    begin = threading.Barrier(8)

    def ask(number: int) -> None:
        begin.wait()
        found.append(notes_of(stores[number % 2]).put_once("secret", f"made by {number}"))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 8
    assert len(set(found)) == 1
    notes_of(stores[0]).prune()
    assert notes_of(stores[0]).put_once("secret", "later") == found[0]


def test_those_that_wait_are_woken(stores: list[PostgresStore]) -> None:
    mine, theirs = map(notes_of, stores)
    revision = theirs.revision()
    mine.put("peer:a", "", 60)
    assert not theirs.wait(lambda: theirs.revision() != revision, 0.2)
    threading.Timer(0.3, lambda: mine.put("ended:x", "", 60, wakes=True)).start()
    begun = time.monotonic()
    assert theirs.wait(lambda: theirs.revision() != revision, 20)
    assert time.monotonic() - begun < 10


def test_a_server_that_may_only_read_sees_the_others(postgres: PostgresServer, stores: list[PostgresStore]) -> None:
    notes_of(stores[0]).put("peer:a", "there", 60)
    notes_of(stores[0]).put_once("secret", "shared")
    reader = PostgresStore(stores[0]._database.address, read_only=True)  # noqa: SLF001
    try:
        assert notes_of(reader).read("peer:") == {"a": "there"}
        assert notes_of(reader).put_once("secret", "own") == "shared"
        with pytest.raises(StoreUnavailable):
            notes_of(reader).put("peer:b", "", 60)
    finally:
        reader.close()
