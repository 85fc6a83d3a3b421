"""One suite for every store engine: what `StoreEngine` promises."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bedstone.records import Chunk, Document, Passage
from bedstone.store.engine import StoreEngine, TaskRecord, TaskStatus
from bedstone.store.engines.memory import MemoryStore
from bedstone.store.engines.sqlite import OutdatedStore, SqliteStore

ENGINES: dict[str, Callable[[Path], StoreEngine]] = {
    "memory": lambda _: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(folder / "store.sqlite"),
}


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreEngine]:
    store = ENGINES[request.param](tmp_path)
    yield store
    store.close()


def document(name: str, digest: str = "1") -> Document:
    return Document(name, f"Title of {name}", digest, {"author": "Ü"})


def chunks(name: str, count: int, **facets: str) -> list[Chunk]:
    return [
        Chunk(
            id=f"{name}#{number}",
            text=f"**Text** {number} für {name}",
            plain=f"Text {number} für {name}",
            heading=f"Heading {number}",
            level=2,
            breadcrumb=("Top", f"Heading {number}"),
            facets=facets,
        )
        for number in range(count)
    ]


def vectors(store: StoreEngine, name: str) -> list[tuple[Passage, bytes]]:
    return [(Passage(item.rowid, 0, 4), bytes([item.rowid] * 8)) for item in store.chunks_of(name)]


def test_what_is_put_comes_back_whole(store: StoreEngine) -> None:
    store.put([(document("b"), chunks("b", 2, language="go")), (document("a"), chunks("a", 1))])
    assert store.document("b") == document("b")
    assert store.document("c") is None
    assert [item.id for item in store.documents()] == ["a", "b"]
    assert [item.id for item in store.documents(offset=1, limit=1)] == ["b"]
    assert store.digests() == {"a": "1", "b": "1"}
    assert list(store.titles().items()) == [(item.id, item.title) for item in store.documents()]
    found = store.chunk("b#1")
    assert found
    assert found.chunk == chunks("b", 2, language="go")[1]
    assert (found.document, found.position) == ("b", 1)
    assert [item.chunk.id for item in store.chunks_of("b")] == ["b#0", "b#1"]
    assert store.chunks([found.rowid, 999]) == {found.rowid: found}
    assert store.chunk("nobody") is None
    rowids = {name: [item.rowid for item in store.chunks_of(name)] for name in "ab"}
    assert store.first_chunks() == sorted(min(numbers) for numbers in rowids.values())
    assert all(numbers == list(range(numbers[0], numbers[0] + len(numbers))) for numbers in rowids.values())
    assert (store.counts().documents, store.counts().chunks) == (2, 3)


def test_putting_again_replaces_and_numbers_are_never_reused(store: StoreEngine) -> None:
    store.put([(document("a"), chunks("a", 3))])
    before = [item.rowid for item in store.chunks_of("a")]
    store.put_passages(vectors(store, "a"))
    store.put([(document("a", "2"), chunks("a", 1))])
    after = [item.rowid for item in store.chunks_of("a")]
    assert store.digests() == {"a": "2"}
    assert min(after) > max(before)
    assert store.counts().passages == 0
    store.delete(["a"])
    store.put([(document("a"), chunks("a", 1))])
    assert store.chunks_of("a")[0].rowid > max(after)


def test_deleting_takes_everything_along(store: StoreEngine) -> None:
    store.put([(document("a"), chunks("a", 2)), (document("b"), chunks("b", 1))])
    store.put_passages(vectors(store, "a"))
    store.delete(["a", "never-there"])
    assert store.document("a") is None
    assert store.chunk("a#0") is None
    assert store.counts().passages == 0
    assert [item.id for item in store.documents()] == ["b"]


def test_changes_tell_what_came_and_what_went(store: StoreEngine) -> None:
    assert store.last_change() is None
    store.put([(document("a"), chunks("a", 2))])
    first, second = (item.rowid for item in store.chunks_of("a"))
    store.put_passages(vectors(store, "a"))
    store.put([(document("a"), chunks("a", 1))])
    (third,) = (item.rowid for item in store.chunks_of("a"))
    store.delete(["a", "a"])
    store.put([(document("empty"), [])])
    changes = store.changes(0)
    assert [change.kind for change in changes] == ["put", "vectors", "put", "delete", "put"]
    assert [change.seq for change in changes] == sorted(change.seq for change in changes)
    assert len({change.stamp for change in changes}) == 5
    assert (changes[0].first, changes[0].last) == (first, second)
    assert (changes[1].first, changes[1].last) == (first, second)
    assert (changes[2].first, changes[2].last, changes[2].gone_first, changes[2].gone_last) == (
        third,
        third,
        first,
        second,
    )
    assert (changes[3].gone_first, changes[3].gone_last) == (third, third)
    assert changes[4].first > changes[4].last
    assert store.changes(changes[2].seq) == changes[3:]
    assert store.changes(0, 2) == changes[:2]
    assert store.last_change() == changes[-1]


def test_passages_belong_to_chunks_that_are_there(store: StoreEngine) -> None:
    store.put([(document("a"), chunks("a", 2))])
    one, two = (item.rowid for item in store.chunks_of("a"))
    assert [item.rowid for item in store.unembedded()] == [one, two]
    store.put_passages([(Passage(one, 5, 9), b"late"), (Passage(one, 0, 5), b"soon"), (Passage(999, 0, 1), b"lost")])
    assert [item.rowid for item in store.unembedded()] == [two]
    assert store.unembedded(after=two) == []
    found = list(store.passages_between(one, two))
    assert [item.passage.start for item in found] == [0, 5]
    vectors = store.vectors([*(item.id for item in found), 999])
    assert [vectors[item.id] for item in found] == [b"soon", b"late"]
    assert len(vectors) == 2
    assert list(store.passages_between(two, two)) == []


def test_passages_know_their_facets_and_heads_need_no_texts(store: StoreEngine) -> None:
    store.put([(document("a"), chunks("a", 1, language="go"))])
    (stored,) = store.chunks_of("a")
    store.put_passages([(Passage(stored.rowid, 0, 5), b"soon")])
    assert [item.facets for item in store.passages_between(0, 99)] == [{"language": "go"}]
    (head,) = store.heads([stored.rowid, 999]).values()
    assert (head.chunk.text, head.chunk.plain) == ("", "")
    assert (head.document, head.chunk.id, head.chunk.breadcrumb) == ("a", "a#0", stored.chunk.breadcrumb)
    assert store.plains([stored.rowid, 999]) == {stored.rowid: stored.chunk.plain}


def test_facets_are_those_of_the_chunks_that_are_there(store: StoreEngine) -> None:
    store.put(
        [(document("a"), chunks("a", 1, language="go", scope="x")), (document("b"), chunks("b", 1, language="c"))]
    )
    assert store.facets() == {"language": ["c", "go"], "scope": ["x"]}
    store.delete(["a"])
    assert store.facets() == {"language": ["c"]}


def test_settings_are_kept(store: StoreEngine) -> None:
    assert store.setting("model") is None
    store.set_setting("model", "one")
    store.set_setting("model", "two")
    assert store.setting("model") == "two"


def test_a_put_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    store.put([(document("a"), chunks("a", 1))])
    twice = chunks("b", 1) * 2
    with pytest.raises(Exception, match="UNIQUE"):
        store.put([(document("a", "2"), chunks("a", 2)), (document("b"), twice)])
    assert store.digests() == {"a": "1"}
    assert len(store.changes(0)) == 1
    store.close()


def test_a_sqlite_store_survives_its_process_and_opens_for_reading(tmp_path: Path) -> None:
    path = tmp_path / "a folder with %20 and ?" / "store.sqlite"
    store = SqliteStore(path)
    store.put([(document("a"), chunks("a", 2))])
    store.close()
    again = SqliteStore(path, read_only=True)
    assert again.counts().chunks == 2
    again.close()


def task(name: str, status: TaskStatus = "queued", **fields: Any) -> TaskRecord:
    defaults: dict[str, Any] = {"created": 1.0, "details": {"file": "ä.pdf", "pages": [1]}}
    return TaskRecord(name, "add", status, **(defaults | fields))


def test_tasks_are_kept_in_order_and_replaced(store: StoreEngine) -> None:
    for name, created in (("b", 2.0), ("a", 1.0), ("c", 3.0)):
        store.put_task(task(name, created=created))
    assert [item.id for item in store.tasks({"queued"})] == ["a", "b", "c"]
    assert store.task("a") == task("a")
    store.put_task(task("a", "running", started=5.0, attempts=1))
    assert store.task("a") == task("a", "running", started=5.0, attempts=1)
    assert [item.id for item in store.tasks({"queued"}, limit=1)] == ["b"]
    assert {item.id for item in store.tasks({"queued", "running"})} == {"a", "b", "c"}
    assert store.task("none") is None


def test_of_several_that_change_a_task_one_succeeds(store: StoreEngine) -> None:
    store.put_task(task("a"))
    assert store.change_task(task("a", "running", attempts=1), "queued")
    assert not store.change_task(task("a", "cancelled"), "queued")
    assert not store.change_task(task("unknown"), "queued")
    assert store.task("a") == task("a", "running", attempts=1)
    assert store.task("unknown") is None


def test_settings_are_found_by_how_they_begin(store: StoreEngine) -> None:
    for name in ("watch:b", "watch:a", "watched", "w%"):
        store.set_setting(name, name.upper())
    assert store.settings("watch:") == {"a": "WATCH:A", "b": "WATCH:B"}
    assert store.settings("w%") == {"": "W%"}
    store.delete_setting("watch:a")
    store.delete_setting("unknown")
    assert store.settings("watch:") == {"b": "WATCH:B"}
    assert store.setting("watch:a") is None


def test_old_tasks_are_forgotten_but_never_the_last_ones(store: StoreEngine) -> None:
    for number in range(5):
        store.put_task(task(str(number), "completed", finished=float(number)))
    store.put_task(task("waiting"))
    store.prune_tasks(before=4.0, keep=2)
    assert {item.id for item in store.tasks({"completed", "queued"})} == {"3", "4", "waiting"}


def test_chunks_are_counted_by_document(store: StoreEngine) -> None:
    store.put([(document("a"), chunks("a", 2)), (document("b"), chunks("b", 3)), (document("c"), [])])
    assert store.chunk_counts() == {"a": 2, "b": 3}
    assert (store.chunk_counts("a"), store.chunk_counts("none")) == ({"a": 2}, {})


def test_chunks_know_their_page(store: StoreEngine) -> None:
    store.put([(document("a"), [replace(chunk, page=number) for number, chunk in enumerate(chunks("a", 2))])])
    assert [item.chunk.page for item in store.chunks_of("a")] == [0, 1]


def test_vectors_can_be_forgotten_and_documents_renamed(store: StoreEngine) -> None:
    store.put([(document("a"), chunks("a", 1))])
    (stored,) = store.chunks_of("a")
    store.put_passages([(Passage(stored.rowid, 0, 5), b"soon")])
    seq = store.last_change().seq  # type: ignore[union-attr]
    store.update_documents([replace(document("a"), title="Other"), document("unknown")])
    assert store.last_change().seq == seq  # type: ignore[union-attr]
    assert store.document("a").title == "Other"  # type: ignore[union-attr]
    assert store.document("unknown") is None
    store.delete_passages()
    assert store.counts().passages == 0
    assert store.last_change().kind == "vectors"  # type: ignore[union-attr]
    assert store.unembedded()


def test_the_version_tells_of_documents_alone(tmp_path: Path) -> None:
    """What is kept by it is not read again for every vector that is made."""
    store, other = SqliteStore(tmp_path / "store.sqlite"), SqliteStore(tmp_path / "store.sqlite")
    seen = {store.version()}
    store.put([(document("a"), chunks("a", 1))])
    seen.add(store.version())
    store.put_passages(vectors(store, "a"))
    store.set_setting("speed", "7")
    assert store.version() in seen
    store.update_documents([replace(document("a"), title="Other")])
    seen.add(store.version())
    other.put([(document("b"), chunks("b", 1))])
    seen.add(store.version())
    store.delete(["a"])
    seen.add(store.version())
    assert len(seen) == 5
    store.close()
    other.close()


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    store.seal()
    store.close()
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as db:
        db.execute("PRAGMA user_version = 99")
    for read_only in (True, False):
        with pytest.raises(OutdatedStore):
            SqliteStore(tmp_path / "store.sqlite", read_only=read_only)


def test_sealing_waits_for_whoever_is_just_looking(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    store.put([(document("a"), chunks("a", 1))])
    looking = sqlite3.connect(tmp_path / "store.sqlite", check_same_thread=False)
    looking.execute("SELECT count(*) FROM document").fetchone()
    threading.Timer(0.5, looking.close).start()
    store.seal()
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["store.sqlite"]
    assert SqliteStore(tmp_path / "store.sqlite", read_only=True).counts().documents == 1
