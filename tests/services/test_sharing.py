"""Processes that share a store: which of them writes an index that all use."""

from pathlib import Path

from bedstone.records import Chunk, Document
from bedstone.search.live_index import LiveIndex
from bedstone.services.knowledge.sharing import IndexFollower
from bedstone.store.engines.postgres import PostgresStore
from support.postgres import PostgresServer


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
