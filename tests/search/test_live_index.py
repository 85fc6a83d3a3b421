"""The index of a store that changes, its writer and its readers."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bedstone.records import Chunk, Document, StoredChunk
from bedstone.search import live_index
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.search.hits import SearchRequest, SearchResponse
from bedstone.search.index import IndexQuery
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes import keyword
from bedstone.search.live_index import LiveIndex
from bedstone.store.engines.memory import MemoryStore
from support.disks import small_disk

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


class SlowStore(MemoryStore):
    """A store that stops after some chunks until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def chunks_between(self, first: int, last: int) -> Iterator[StoredChunk]:
        if last > 2 * BATCH:
            assert self.may_go_on.wait(20)
        yield from super().chunks_between(first, last)


BATCH = 5


def test_an_index_that_cannot_be_created_is_created_when_the_disk_has_room(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_index, "WRITE_SECONDS", 0.05)
    with small_disk(tmp_path / "disk", 1) as disk:
        index = LiveIndex(store, disk.folder / "index", lambda: None)
        index.become_writer()
        disk.fill()
        assert found(index, "tulips") == ["a"]
        assert "No space left on device" in (index.problem() or "")
        disk.free()
        deadline = time.monotonic() + 20
        while index.problem() is not None:
            assert found(index, "tulips") == ["a"]
            assert time.monotonic() < deadline, index.problem()
            time.sleep(0.02)
        assert (disk.folder / "index" / "words" / "version.json").exists()
        index.close()


def test_searches_answer_from_what_is_there_while_the_index_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyword, "BATCH_CHANGES", BATCH)
    monkeypatch.setattr(keyword, "SMALL_BATCH", BATCH)
    monkeypatch.setattr(live_index, "PATIENCE_SECONDS", 0.01)
    slow = SlowStore()
    for number in range(4 * BATCH):
        put(slow, f"d{number:02}", f"tulips{number}")
    index = LiveIndex(slow, tmp_path, lambda: None)
    index.become_writer()
    assert found(index, "tulips19") == ["d19"]
    index.close()
    (tmp_path / "words" / "meta.json").write_text("{")
    slow.may_go_on.clear()
    index = LiveIndex(slow, tmp_path, lambda: None)
    index.become_writer()
    assert index.problem() is None  # nothing was opened yet
    deadline = time.monotonic() + 20
    while found(index, "tulips3") != ["d03"]:
        assert time.monotonic() < deadline
    assert found(index, "tulips19") == []
    problem = index.problem()
    assert problem is not None
    assert problem.startswith("The keyword index was damaged and is being rebuilt:")
    assert problem.endswith("of 20 chunks")
    slow.may_go_on.set()
    index.finish()
    assert index.problem() is None
    assert found(index, "tulips19") == ["d19"]
    index.close()


def test_searches_do_not_wait_for_a_large_document(
    store: MemoryStore, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = opened()
    assert found(writer, "tulips") == ["a"]
    reading, may_go_on = threading.Event(), threading.Event()
    read_chunks = store.chunks_between

    def read_slowly(first: int, last: int) -> Iterator[StoredChunk]:
        reading.set()
        assert may_go_on.wait(20)
        return iter(read_chunks(first, last))

    monkeypatch.setattr(live_index, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(store, "chunks_between", read_slowly)
    seq = put(store, "b", "roses and tulips")
    assert found(writer, "tulips") == ["a"]
    assert reading.is_set()
    assert found(writer, "tulips") == ["a"]
    assert writer.problem() is None
    may_go_on.set()
    assert writer.refresh() == seq  # which comes before the document is acknowledged
    assert set(found(writer, "tulips")) == {"a", "b"}


def test_a_search_that_fails_on_files_replaced_meanwhile_is_repeated(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = opened()
    broken = writer.current()

    def fail(_: SearchRequest) -> SearchResponse:
        writer.close()  # as a check in the background does before it replaces damaged files
        raise RuntimeError("mid > len")

    monkeypatch.setattr(broken, "search", fail)
    hits = writer.search(SearchRequest("tulips")).hits
    assert [hit.head.document_id for hit in hits] == ["a"]


def test_an_interrupted_rebuild_continues_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyword, "BATCH_CHANGES", BATCH)
    monkeypatch.setattr(keyword, "SMALL_BATCH", BATCH)
    monkeypatch.setattr(live_index, "PATIENCE_SECONDS", 0.01)
    slow = SlowStore()
    for number in range(4 * BATCH):
        put(slow, f"d{number:02}", f"tulips{number}")
    (tmp_path / "words").write_text("not a folder")
    slow.may_go_on.clear()
    index = LiveIndex(slow, tmp_path, lambda: None)
    index.become_writer()
    index.current()
    threading.Timer(0.2, slow.may_go_on.set).start()  # closing waits for the batch
    index.close()
    index = LiveIndex(slow, tmp_path, lambda: None)
    index.become_writer()
    assert found(index, "tulips19") == ["d19"]
    assert index.problem() is None
    index.close()


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


@pytest.mark.parametrize("kind", ["cut off", "garbled"])
def test_damaged_vectors_are_read_again_from_the_store(
    store: MemoryStore, opened: Open, tmp_path: Path, kind: str
) -> None:
    store.set_value(live_index.MODEL, HashingEmbedder.fingerprint)
    embed_missing(store, HashingEmbedder())
    first = opened(HashingEmbedder)
    assert found(first, "tulips") == ["a"]
    first.close()
    (segment,) = (tmp_path / "vectors").glob("*.segment")
    content = bytearray(segment.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 8] = bytes(byte ^ 0x5A for byte in content[middle : middle + 8])
    segment.write_bytes(content if kind == "garbled" else content[:middle])
    writer = opened(HashingEmbedder)
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("vectors.damaged-*")) and time.monotonic() < deadline:
        assert found(writer, "tulips") == ["a"]
    writer.current().index.verify()  # waits for the check in the background
    assert writer.current().index.has_vectors
    query = IndexQuery(vector=HashingEmbedder().embed_query("tulips"))
    (near,) = writer.current().index.search(query).candidates
    assert near.cosine == pytest.approx(0.707, abs=0.001)  # the name of the document is embedded, too
    assert writer.problem() is None
    writer.close()
    assert len(list(tmp_path.glob("vectors.damaged-*"))) == 1
