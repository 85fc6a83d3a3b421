"""The word index: what it finds, and that it follows its store."""

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from bedstone.records import Chunk, Document
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.filters import AllOf, AnyOf, Filter, Missing, OneOf, matches
from bedstone.search.hits import SearchRequest
from bedstone.search.indexes.hybrid import HybridIndex
from bedstone.search.indexes.keyword import KeywordIndex
from bedstone.search.retriever import Retriever
from bedstone.store.engines.memory import MemoryStore

TEXTS = {
    "retries": (
        "Retries",
        "The client waits longer after every failed attempt, which is called backoff.",
        {"language": "go"},
    ),
    "timeouts": (
        "Timeouts",
        "Raise the timeout of a slow call with setReadTimeout or READ_TIMEOUT.",
        {"language": "python"},
    ),
    "install": ("Installation", "Run the installer. See the notes on timeouts for slow networks.", {}),
    "chinese": ("安装", "运行安装程序后重新启动服务器。", {"language": "zh", "scope": "guide"}),
}


def document(name: str, text: str | None = None) -> tuple[Document, list[Chunk]]:
    title, body, facets = TEXTS[name]
    body = text or body
    chunk = Chunk(id=name, text=body, plain=body, heading=title, breadcrumb=(title,), facets=facets)
    return Document(f"guides/{name}.md", title, body), [chunk]


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.put(document(name) for name in TEXTS)
    return store


@pytest.fixture(params=["memory", "folder"])
def index(request: pytest.FixtureRequest, tmp_path: Path, store: MemoryStore) -> Iterator[KeywordIndex]:
    index = KeywordIndex(tmp_path / "words" if request.param == "folder" else None)
    index.catch_up(store)
    yield index
    index.finish()


def found(index: KeywordIndex, store: MemoryStore, text: str, condition: Filter | None = None) -> list[str]:
    stored = store.chunks(rowids := list(index.search(text, condition, 10)))
    return [stored[rowid].head.id for rowid in rowids if rowid in stored]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("how long does a client wait after failed attempts?", "retries"),
        ("installing", "install"),
        ("timeout", "timeouts"),
        ("setReadTimeout", "timeouts"),
        ("read timeout", "timeouts"),
        ("READ_TIMEOUT", "timeouts"),
        ("guides/install.md", "install"),
        ("重新启动", "chinese"),
        ("the", "install"),
    ],
)
def test_the_right_chunk_comes_first(index: KeywordIndex, store: MemoryStore, query: str, first: str) -> None:
    assert found(index, store, query)[0] == first


@pytest.mark.parametrize("text", ["भाषा में लिखा गया है", "שָׁלוֹם עולם", "தமிழ் மொழி", "résumé and Prüfung"])
def test_words_keep_their_marks_and_letters_are_the_same_however_typed(text: str) -> None:
    for typed in ("NFC", "NFD"):
        store, index = MemoryStore(), KeywordIndex()
        body = unicodedata.normalize(typed, text)
        store.put([(Document("a", "", ""), [Chunk(id="a", text=body, plain=body)])])
        index.catch_up(store)
        retriever = Retriever(store, HybridIndex(store, index), QueryEmbedder(lambda: None))
        for word in text.split():
            for asked in ("NFC", "NFD"):
                request = SearchRequest(unicodedata.normalize(asked, word))
                assert retriever.search(request).hits or word == "and"


def test_a_query_without_end_is_cut(index: KeywordIndex, store: MemoryStore) -> None:
    retriever = Retriever(store, HybridIndex(store, index), QueryEmbedder(lambda: None))
    assert retriever.search(SearchRequest("timeout " + "unknownword " * 100_000)).hits
    assert not retriever.search(SearchRequest("unknownword " * 1_000 + "timeout")).hits


@pytest.mark.parametrize(
    "query", ["", "   ", "???", '"', "a:b AND (", "*", "\x00", "ü" * 500, "x " * 2000, "\U0001f6b2"]
)
def test_odd_queries_find_what_they_say_or_nothing(index: KeywordIndex, query: str) -> None:
    assert isinstance(index.search(query, None, 5), dict)


CONDITIONS: list[Filter] = [
    OneOf("language", ("go",)),
    OneOf("language", ("go", "python")),
    OneOf("language", ("cobol",)),
    Missing("language"),
    Missing("scope"),
    AllOf((OneOf("language", ("zh",)), OneOf("scope", ("guide",)))),
    AnyOf((OneOf("language", ("go",)), Missing("language"))),
    AllOf((AnyOf((OneOf("language", ("go",)), OneOf("scope", ("guide",)))), Missing("scope"))),
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_filters_mean_what_they_say(index: KeywordIndex, store: MemoryStore, condition: Filter) -> None:
    expected = {rowid for rowid, item in store.chunks(range(1, 10)).items() if matches(condition, item.head.facets)}
    everything = "client timeout installer 安装"
    assert set(index.search(everything, condition, 10)) == expected & set(index.search(everything, None, 10))


def test_a_filter_does_not_change_scores(index: KeywordIndex) -> None:
    plain = index.search("timeout of a slow call", None, 10)
    filtered = index.search("timeout of a slow call", OneOf("language", ("python",)), 10)
    assert filtered == {rowid: plain[rowid] for rowid in filtered}


def test_chunks_without_a_body_stand_back_however_many_there_are() -> None:
    store, heading = MemoryStore(), "Backoff strategy"
    for number in range(100):
        chunk = Chunk(id=f"bare {number}", text=heading, plain=heading, heading=heading, breadcrumb=(heading,))
        store.put([(Document(f"bare {number}", "", ""), [chunk])])
    body = f"{heading}\nThe client waits longer after every failed attempt, up to a minute."
    full = Chunk(id="full", text=body, plain=body, heading=heading, breadcrumb=(heading,))
    store.put([(Document("full", "", ""), [full])])
    index = KeywordIndex()
    index.catch_up(store)
    assert found(index, store, heading)[0] == "full"
    assert list(index.search(heading, None, 5).values()) == list(index.search(heading, None, 101).values())[:5]


def test_facets_are_counted(index: KeywordIndex) -> None:
    assert index.count_facets(None, None) == {"language": {"go": 1, "python": 1, "zh": 1}, "scope": {"guide": 1}}
    assert index.count_facets("timeout", None) == {"language": {"python": 1}}
    assert index.count_facets("timeout", OneOf("language", ("go",))) == {}


def test_it_follows_the_store(index: KeywordIndex, store: MemoryStore) -> None:
    store.put([document("retries", "Nothing of interest.")])
    store.delete(["guides/timeouts.md"])
    assert "timeouts" not in found(index, store, "setReadTimeout")
    index.catch_up(store)
    assert found(index, store, "backoff") == []
    assert found(index, store, "interest") == ["retries"]
    assert found(index, store, "setReadTimeout") == []
    last = store.last_change()
    assert last
    assert index.last_applied == (last.seq, last.stamp)


def test_it_forgets_another_history(tmp_path: Path, store: MemoryStore) -> None:
    index = KeywordIndex(tmp_path / "words")
    index.catch_up(store)
    other = MemoryStore()
    other.put([document("install"), document("chinese"), document("retries"), document("timeouts")])
    index.catch_up(other)
    assert found(index, other, "backoff") == ["retries"]
    assert index.count_facets(None, None)["language"] == {"go": 1, "python": 1, "zh": 1}
    index.finish()


def test_it_is_there_again_after_a_restart(tmp_path: Path, store: MemoryStore) -> None:
    index = KeywordIndex(tmp_path / "words")
    index.catch_up(store)
    index.finish()
    del index
    again = KeywordIndex(tmp_path / "words", read_only=True)
    assert found(again, store, "backoff") == ["retries"]
    last = store.last_change()
    assert last
    assert again.last_applied == (last.seq, last.stamp)


def test_an_index_of_another_version_is_built_again(tmp_path: Path, store: MemoryStore) -> None:
    index = KeywordIndex(tmp_path / "words")
    index.catch_up(store)
    index.finish()
    del index
    (tmp_path / "words" / "version.json").write_text("0")
    again = KeywordIndex(tmp_path / "words")
    assert again.last_applied == (0, 0)
    again.catch_up(store)
    assert found(again, store, "backoff") == ["retries"]
    again.finish()


def test_what_a_killed_process_left_half_written_is_no_obstacle(tmp_path: Path, store: MemoryStore) -> None:
    index = KeywordIndex(tmp_path / "words")
    index.catch_up(store)
    index.finish()
    meta = json.loads((tmp_path / "words" / "meta.json").read_text())
    segment = meta["segments"][0]["segment_id"].replace("-", "")
    for step in range(1, 60):
        (tmp_path / "words" / f"{segment}.{meta['opstamp'] + step}.del").write_bytes(b"half")
    store.delete(["guides/install.md"])
    again = KeywordIndex(tmp_path / "words")
    again.catch_up(store)
    assert "install" not in found(again, store, "timeouts")
    again.finish()
