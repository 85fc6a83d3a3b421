"""One suite for every search index: what `SearchIndex` promises."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bedstone.search.indexes.segments.nearest as nearest_module
import bedstone.search.indexes.segments.state as state_module
from acme_diary.index import SynonymIndex
from bedstone.records import Chunk, Document, Passage
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.search.filters import AllOf, AnyOf, Filter, Missing, OneOf
from bedstone.search.index import IndexQuery, SearchIndex
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes import INDEXES as KINDS
from bedstone.search.indexes.hybrid import HybridIndex
from bedstone.search.indexes.keyword import KeywordIndex
from bedstone.search.indexes.vector import VectorIndex
from bedstone.store.engine import Store
from bedstone.store.engines.memory import MemoryStore
from bedstone.store.engines.sqlite import SqliteStore

EMBEDDER = HashingEmbedder()
TEXTS = {
    "retries": ("The client waits longer after every failed attempt.", {"language": "go", "scope": "sdk"}),
    "timeouts": ("Raise the timeout of a slow call to the server.", {"language": "python", "scope": "sdk"}),
    "install": ("Run the installer on the server, then restart the client.", {"scope": "guide"}),
    "chinese": ("运行安装程序后重新启动服务器。", {"scope": "guide"}),
}
INDEXES: dict[str, Callable[[Store, Path], SearchIndex]] = {
    "memory": lambda store, folder: KINDS.load("memory").open(store, folder, EMBEDDER),
    "synonyms": lambda store, folder: SynonymIndex.open(store, folder, EMBEDDER),
    "embedded": lambda store, folder: KINDS.load("embedded").open(store, folder, EMBEDDER),
    "embedded, vectors in memory": lambda store, folder: HybridIndex(
        store, KeywordIndex(folder / "words"), VectorIndex(store, EMBEDDER.dimensions, EMBEDDER.max_component)
    ),
    "embedded, with a graph": lambda store, folder: KINDS.load("embedded").open(store, folder, EMBEDDER),
}


def document(name: str, text: str | None = None) -> tuple[Document, list[Chunk]]:
    body, facets = TEXTS.get(name, ("", {}))
    body = text or body
    return Document(name, "", body), [Chunk(id=name, text=body, plain=body, facets=facets)]


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.put(document(name) for name in TEXTS)
    embed_missing(store, EMBEDDER)
    return store


@pytest.fixture(params=INDEXES)
def index(
    request: pytest.FixtureRequest, tmp_path: Path, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> SearchIndex:
    if "graph" in request.param:
        monkeypatch.setattr(state_module, "MAX_SCANNED", 1)
        monkeypatch.setattr(nearest_module, "MAX_SUBSET", 1)
        monkeypatch.setattr(nearest_module, "MAX_FILTERED_SCAN", 1)
    index = INDEXES[request.param](store, tmp_path)
    index.catch_up()
    return index


def found(index: SearchIndex, store: Store, query: IndexQuery) -> list[str]:
    hits = index.search(query).candidates
    stored = store.chunks([hit.rowid for hit in hits])
    return [stored[hit.rowid].head.document_id for hit in hits]


def vector(text: str) -> np.ndarray:
    return EMBEDDER.embed_query(text)


def test_words_find(index: SearchIndex, store: MemoryStore) -> None:
    assert found(index, store, IndexQuery("waiting after a failed attempt"))[0] == "retries"
    assert found(index, store, IndexQuery("安装")) == ["chinese"]
    assert found(index, store, IndexQuery("absent")) == []
    assert found(index, store, IndexQuery("")) == []


def test_vectors_find(index: SearchIndex, store: MemoryStore) -> None:
    near = index.search(IndexQuery(vector=vector(TEXTS["timeouts"][0]), limit=2))
    assert near.signals == ("semantic",)
    assert near.candidates[0].cosine
    assert near.candidates[0].cosine > 0.9
    (stored,) = store.chunks([near.candidates[0].rowid]).values()
    assert stored.head.document_id == "timeouts"
    assert near.passage(stored.head.rowid) == (0, len(TEXTS["timeouts"][0]))
    assert len(near.candidates) == 2


def test_both_are_fused(index: SearchIndex) -> None:
    both = index.search(IndexQuery("client", vector("server"), semantic_weight=0.5))
    assert both.signals == ("keyword", "semantic")
    first = both.candidates[0]
    assert first.keyword_score
    assert first.cosine is not None
    assert [hit.score for hit in both.candidates] == sorted((hit.score for hit in both.candidates), reverse=True)
    assert index.search(IndexQuery("client", vector("server"), semantic_weight=0.0)).signals == ("keyword",)


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        (OneOf("scope", ("guide",)), {"install", "chinese"}),
        (OneOf("language", ("go", "python")), {"retries", "timeouts"}),
        (Missing("language"), {"install", "chinese"}),
        (AllOf((OneOf("scope", ("sdk",)), OneOf("language", ("go",)))), {"retries"}),
        (AnyOf((Missing("scope"), OneOf("language", ("go",)))), {"retries"}),
        (OneOf("scope", ("nothing",)), set()),
        (OneOf("scope", ()), set()),
    ],
)
def test_filters_hold_inside_each_side(
    index: SearchIndex, store: MemoryStore, condition: Filter, names: set[str]
) -> None:
    query = IndexQuery("client server", vector("client server"), filter=condition)
    assert set(found(index, store, query)) == names
    assert set(found(index, store, IndexQuery(vector=vector("client"), filter=condition))) == names


def test_facets_are_counted(index: SearchIndex) -> None:
    assert index.count_facets("client", None) == {"language": {"go": 1}, "scope": {"sdk": 1, "guide": 1}}
    assert index.count_facets(None, OneOf("scope", ("sdk",))) == {
        "language": {"go": 1, "python": 1},
        "scope": {"sdk": 2},
    }
    assert index.count_facets("absent", None) == {}


def test_words_are_known_and_alike(index: SearchIndex) -> None:
    assert (index.document_frequency("client"), index.document_frequency("absent")) == (2, 0)
    assert "client" in index.suggest_terms("cleint")
    assert index.suggest_terms("client") == []


def test_quotations_are_recognised(index: SearchIndex) -> None:
    assert index.is_quotation("the timeout of a slow call")
    assert not index.is_quotation("10293")  # nobody has that number: perhaps something near it is meant
    assert not index.is_quotation("why does a slow call time out")


def test_an_index_follows_its_store(index: SearchIndex, store: MemoryStore) -> None:
    store.put([document("retries", "Nothing of the kind."), document("new", "A penguin swims.")])
    store.delete(["timeouts"])
    embed_missing(store, EMBEDDER)
    before = index.applied_seq
    index.catch_up()
    last = store.last_change()
    assert last
    assert before < index.applied_seq == last.seq
    assert found(index, store, IndexQuery("failed attempt")) == []
    assert found(index, store, IndexQuery("penguin", vector("penguin swims")))[0] == "new"
    everything = set(found(index, store, IndexQuery(vector=vector("timeout slow call"), limit=50)))
    assert everything == {"retries", "install", "chinese", "new"}


def test_an_index_built_from_scratch_finds_the_same(
    index: SearchIndex, store: MemoryStore, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    store.put([document("retries", "The client asks the server again."), document("new", "A client without a server.")])
    store.delete(["timeouts"])
    embed_missing(store, EMBEDDER)
    index.catch_up()
    fresh = INDEXES[request.node.callspec.params["index"]](store, tmp_path / "fresh")
    fresh.catch_up()
    query = IndexQuery("client server", vector("client server"))
    assert [item.rowid for item in fresh.search(query).candidates] == [
        item.rowid for item in index.search(query).candidates
    ]
    assert fresh.chunk_count == index.chunk_count == store.counts().chunks


def test_an_empty_store_is_no_trouble(tmp_path: Path) -> None:
    for name, make in INDEXES.items():
        index = make(MemoryStore(), tmp_path / name)
        index.catch_up()
        assert index.search(IndexQuery("anything", vector("anything"))).candidates == []
        assert not index.has_vectors


@pytest.mark.parametrize(("filtered", "scanned"), [(False, 1), (True, 1), (True, 10_000)])
def test_a_graph_finds_what_a_scan_finds(
    filtered: bool, scanned: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recall at ten on vectors with the spread of real ones; `make bench-search` measures it on 100,000."""
    monkeypatch.setattr(state_module, "MAX_SCANNED", 1000)
    monkeypatch.setattr(nearest_module, "MAX_SUBSET", 100)
    monkeypatch.setattr(nearest_module, "MAX_FILTERED_SCAN", scanned)
    random = np.random.default_rng(7)
    centres = random.normal(size=(40, 64))
    vectors = centres[random.integers(0, 40, 4000)] + random.normal(size=(4000, 64)) * 0.7
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    store = SqliteStore(tmp_path / "store.sqlite")
    store.put(
        (Document(str(number), "", ""), [Chunk(id=str(number), text="x", plain="x", facets={"part": str(number % 2)})])
        for number in range(4000)
    )
    store.put_passages([(Passage(row + 1, 0, 1), vectors[row].astype(np.float16).tobytes()) for row in range(4000)])
    index = VectorIndex(store, 64, float(np.abs(vectors).max()))
    index.catch_up()
    index.finish()
    condition = OneOf("part", ("1",)) if filtered else None
    inside = np.arange(4000) % 2 == 1 if filtered else np.ones(4000, bool)
    hits = 0
    for query in vectors[random.integers(0, 4000, 50)]:
        exact = np.argsort(-np.where(inside, vectors @ query, -2))[:10] + 1
        near = index.search(query, 100, condition).cosines
        hits += len(set(sorted(near, key=lambda rowid: -near[rowid])[:10]) & set(exact.tolist()))
    assert hits / 500 >= 0.98
    store.close()


def test_a_graph_and_a_model_live_in_one_process() -> None:
    """In whichever order they are first needed: their libraries crash when loaded the wrong way round."""
    program = (
        "from bedstone.search.indexes.segments.graphs import usearch_index; usearch_index();"
        "from bedstone.search.embedders.minilm import MiniLm; print(MiniLm().embed_query('x').shape)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "(384,)\n")


def test_searches_go_on_while_the_index_catches_up(index: SearchIndex, store: MemoryStore) -> None:
    problems: list[Exception] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            try:
                index.search(IndexQuery("client server", vector("client server")))
                _ = index.applied_seq
            except Exception as error:  # noqa: BLE001 - that is the question
                problems.append(error)

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(15):
        store.put([document(f"new{number}", f"The client number {number} asks the server.")])
        embed_missing(store, EMBEDDER)
        index.catch_up()
    done.set()
    for thread in threads:
        thread.join()
    assert problems == []


def test_catching_up_ends_while_others_go_on_writing(tmp_path: Path, store: MemoryStore) -> None:
    index, rounds = KeywordIndex(tmp_path / "words"), 0

    def write_on(_: int) -> None:
        nonlocal rounds
        rounds += 1
        assert rounds < 10, "it runs after the writer"
        store.put([document(f"later-{rounds}", "A later note about tulips.")])

    index.catch_up(store, write_on)
    index.catch_up(store, write_on)
    assert len(index.search("tulips", None, 5)) == 1
    index.finish()


def test_a_failed_catch_up_leaves_nothing_behind(tmp_path: Path, store: MemoryStore) -> None:
    words = KeywordIndex(tmp_path / "words")
    broken = store.chunks_between

    def fail(first: int, last: int) -> object:
        yield from broken(first, last)
        raise OSError("the disk is gone")

    store.chunks_between = fail  # type: ignore[assignment, method-assign]
    with pytest.raises(OSError, match="gone"):
        words.catch_up(store)
    store.chunks_between = broken  # type: ignore[method-assign]
    words.catch_up(store)
    assert words.document_frequency("client") == 2
    words.finish()


def test_a_long_query_of_unknown_words_costs_little(index: SearchIndex) -> None:
    text = " ".join(f"unknownword{number}" for number in range(5_000))
    started = time.process_time()
    assert index.search(IndexQuery(text)).candidates == []
    assert time.process_time() - started < 5


def test_vectors_alone_do_not_commit_keywords(tmp_path: Path, store: MemoryStore) -> None:
    """Nor are they forgotten: readers, and an index that was closed, know that nothing is missing."""
    folder = tmp_path / "words"
    words = KeywordIndex(folder)
    words.catch_up(store)
    store.put([document("new", "A penguin swims.")])
    words.catch_up(store)
    before = (folder / "meta.json").read_bytes()
    embed_missing(store, EMBEDDER)
    words.catch_up(store)
    last = store.last_change()
    assert last is not None
    assert words.last_applied == (last.seq, last.stamp)
    assert (folder / "meta.json").read_bytes() == before
    reader = KeywordIndex(folder, read_only=True)
    assert reader.last_applied[0] < last.seq
    reader.reload(store)
    assert reader.last_applied == words.last_applied
    words.finish()
    assert KeywordIndex(folder, read_only=True).last_applied == words.last_applied
    store.delete(["new"])
    reader.reload(store)
    assert reader.last_applied == words.last_applied
    writer = KeywordIndex(folder)
    writer.catch_up(store)
    reader.reload(store)
    assert reader.last_applied[0] == last.seq + 1
    assert reader.search("penguin", None, 5) == {}
    writer.finish()
