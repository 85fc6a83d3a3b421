"""Processes that share a store, after their connections to it broke: who writes the index, and what they log."""

import threading
import time
from pathlib import Path

import pytest

from bedstone.records import Chunk, Document
from bedstone.search.live_index import LiveIndex
from bedstone.services.knowledge.backfill import CHECK_SECONDS, Backfill
from bedstone.services.knowledge.sharing import IndexFollower
from bedstone.store.engines.postgres import PostgresStore
from bedstone.store.opening import open_store
from support.postgres import PostgresServer, postgres_server


def test_a_process_that_lost_its_lock_leaves_writing_to_the_one_that_took_it(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    address = postgres.address()
    stores = [PostgresStore.open(address) for _ in range(2)]
    indexes = [LiveIndex(store, tmp_path / "index", lambda: None) for store in stores]
    first, second = (
        IndexFollower(store, index, tmp_path, owns_vectors=True, is_shared=True)
        for store, index in zip(stores, indexes, strict=True)
    )
    try:
        first.take_index()
        second.take_index()
        assert [index.is_writer for index in indexes] == [True, False]
        postgres.disconnect()
        second.take_index()
        first.take_index()
        assert [index.is_writer for index in indexes] == [False, True]
        stores[0].put([(Document("a", "", ""), [Chunk("a", "tulips", "tulips")])])
        assert [index.refresh() for index in indexes] == [0, 1]
        second.release()
        first.take_index()
        assert indexes[0].is_writer
    finally:
        for index, store in zip(indexes, stores, strict=True):
            index.close()
            store.close()


def test_missing_vectors_wait_for_a_database_that_is_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with postgres_server() as server:
        store = open_store(server.address())
        backfill = Backfill(store, LiveIndex(store, tmp_path, lambda: None), threading.Semaphore())
        server.stop()
        backfill.start()
        time.sleep(2.5 * CHECK_SECONDS)
        backfill.stop()
        store.close()
    found = [record for record in caplog.records if record.name.endswith("backfill")]
    assert len(found) == 1
    assert found[0].message.startswith("Missing vectors wait: PostgreSQL at ")
    assert found[0].exc_info is None
