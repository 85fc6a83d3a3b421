"""The index of a store that changes, its writer and its readers."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bedstone.records import Chunk, Document
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.search.hits import SearchRequest
from bedstone.search.indexer import embed_missing
from bedstone.search.live_index import LiveIndex
from bedstone.store.engines.memory import MemoryStore

Open = Callable[..., LiveIndex]


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    put(store, "a", "tulips")
    return store


@pytest.fixture
def opened(store: MemoryStore, tmp_path: Path) -> Iterator[Open]:
    indexes: list[LiveIndex] = []

    def make(embedder: Callable[[], HashingEmbedder | None] = lambda: None, *, is_writer: bool = True) -> LiveIndex:
        index = LiveIndex(store, tmp_path, embedder)
        if is_writer:
            index.become_writer()
        indexes.append(index)
        return index

    yield make
    for index in indexes:
        index.close()


def put(store: MemoryStore, name: str, text: str) -> int:
    """Store a document; return the sequence number of the change."""
    store.put([(Document(name, "", text), [Chunk(name, text, text)])])
    change = store.last_change()
    assert change
    return change.seq


def found(index: LiveIndex, query: str) -> list[str]:
    return [hit.head.document_id for hit in index.current().search(SearchRequest(query)).hits]


def test_a_writer_tells_which_change_is_searchable(store: MemoryStore, opened: Open) -> None:
    writer, reader = opened(), opened(is_writer=False)
    seq = put(store, "b", "roses")
    assert writer.refresh() == seq
    assert writer.refresh() == seq
    assert found(reader, "roses") == ["b"]
    assert reader.refresh() == seq  # it tells, and leaves the work to the writer
    later = put(store, "c", "lilies")
    assert reader.refresh() == seq
    assert writer.refresh() == later
    assert found(reader, "lilies") == ["c"]


def test_a_reader_without_an_index_builds_its_own(store: MemoryStore, opened: Open, tmp_path: Path) -> None:
    assert found(opened(is_writer=False), "tulips") == ["a"]
    assert list(tmp_path.iterdir()) == []


def test_corrupt_files_are_rebuilt(store: MemoryStore, opened: Open, tmp_path: Path) -> None:
    writer = opened()
    writer.refresh()
    writer.close()
    for path in (tmp_path / "words").glob("*.term"):
        path.unlink()
    assert found(opened(is_writer=False), "tulips") == ["a"]


def test_an_index_takes_up_an_embedder_and_discards_the_vectors_of_another(store: MemoryStore, opened: Open) -> None:
    class Other(HashingEmbedder):
        fingerprint = "another"

    for embedder in (HashingEmbedder, Other):
        index = opened(embedder)
        index.current()
        assert index.vectors_discarded
        assert store.counts().passages == 0
        assert not index.current().index.has_vectors
        embed_missing(store, embedder())
        assert index.current().index.has_vectors
        index.close()
    reader = opened(HashingEmbedder, is_writer=False)
    assert not reader.current().index.has_vectors  # made by the other one
