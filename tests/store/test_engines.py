"""One suite for every store engine: what `Store` promises.

To run it on the store of an installed package: `pytest tests/store --store 'NAME:{folder}/store'`. On a PostgreSQL of
your own: `--store 'postgresql://user@host/database?schema={name}'`.
"""

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any
from uuid import uuid4

import pytest

from acme_diary.store import AuditedStore
from bedstone.records import Chunk, Counts, Document, Passage, Place, Task, TaskStatus
from bedstone.store.engine import Store, StoreFactory, StoreUnavailable, StoreVersionMismatch
from bedstone.store.engines.memory import MemoryStore
from bedstone.store.engines.sqlite import SqliteStore
from bedstone.store.filters import AttributeBetween, AttributeContains, AttributeHas, AttributeIn, Condition, Order
from bedstone.store.opening import open_store
from support.disks import small_disk

ENGINES: dict[str, StoreFactory] = {"memory": MemoryStore, "sqlite": SqliteStore, "audited": AuditedStore}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--store")
        addresses = [chosen] if chosen else [*(f"{name}:{{folder}}/store.sqlite" for name in ENGINES), "postgresql"]
        metafunc.parametrize("store", addresses, ids=lambda address: address.partition(":")[0], indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "postgresql":
        address = request.getfixturevalue("postgres").address()
    else:
        address = request.param.format(folder=tmp_path, name=f"test_{uuid4().hex}")
    engine = ENGINES.get(address.partition(":")[0])
    store = engine.open(address) if engine else open_store(address)
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


def vectors(store: Store, name: str) -> list[tuple[Passage, bytes]]:
    return [(Passage(item.head.rowid, 0, 4), bytes([item.head.rowid] * 8)) for item in store.chunks_of(name)]


def test_what_is_put_comes_back_whole(store: Store) -> None:
    store.put([(document("b"), chunks("b", 2, language="go")), (document("a"), chunks("a", 1))])
    assert store.document("b") == document("b")
    assert store.document("c") is None
    assert store.documents_by_id(["b", "c", "b"]) == {"b": document("b")}
    assert [item.id for item in store.documents()] == ["a", "b"]
    assert [item.id for item in store.documents(offset=1, limit=1)] == ["b"]
    assert store.digests() == {"a": "1", "b": "1"}
    assert list(store.titles().items()) == [(item.id, item.title) for item in store.documents()]
    found = store.chunk("b#1")
    assert found
    expected = chunks("b", 2, language="go")[1]
    assert (found.text, found.plain) == (expected.text, expected.plain)
    for name in ("id", "heading", "level", "breadcrumb", "facets", "page"):
        assert getattr(found.head, name) == getattr(expected, name)
    assert (found.head.document_id, found.head.position) == ("b", 1)
    assert [item.head.id for item in store.chunks_of("b")] == ["b#0", "b#1"]
    assert store.chunks([found.head.rowid, 999]) == {found.head.rowid: found}
    assert store.chunk("nobody") is None
    rowids = {name: [item.head.rowid for item in store.chunks_of(name)] for name in "ab"}
    assert store.first_chunks() == sorted(min(numbers) for numbers in rowids.values())
    assert all(numbers == list(range(numbers[0], numbers[0] + len(numbers))) for numbers in rowids.values())
    assert (store.counts().documents, store.counts().chunks) == (2, 3)


def test_putting_again_replaces_and_numbers_are_never_reused(store: Store) -> None:
    store.put([(document("a"), chunks("a", 3))])
    before = [item.head.rowid for item in store.chunks_of("a")]
    store.put_passages(vectors(store, "a"))
    store.put([(document("a", "2"), chunks("a", 1))])
    after = [item.head.rowid for item in store.chunks_of("a")]
    assert store.digests() == {"a": "2"}
    assert min(after) > max(before)
    assert store.counts().passages == 0
    store.delete(["a"])
    store.put([(document("a"), chunks("a", 1))])
    assert store.chunks_of("a")[0].head.rowid > max(after)


def test_deleting_takes_everything_along(store: Store) -> None:
    store.put([(document("a"), chunks("a", 2)), (document("b"), chunks("b", 1))])
    store.put_passages(vectors(store, "a"))
    store.delete(["a", "never-there"])
    assert store.document("a") is None
    assert store.chunk("a#0") is None
    assert store.counts().passages == 0
    assert [item.id for item in store.documents()] == ["b"]


def test_changes_tell_what_came_and_what_went(store: Store) -> None:
    assert store.last_change() is None
    store.put([(document("a"), chunks("a", 2))])
    first, second = (item.head.rowid for item in store.chunks_of("a"))
    store.put_passages(vectors(store, "a"))
    store.put([(document("a"), chunks("a", 1))])
    (third,) = (item.head.rowid for item in store.chunks_of("a"))
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


def test_passages_belong_to_chunks_that_are_there(store: Store) -> None:
    store.put([(document("a"), chunks("a", 2))])
    one, two = (item.head.rowid for item in store.chunks_of("a"))
    assert [item.head.rowid for item in store.chunks_without_vectors()] == [one, two]
    store.put_passages([(Passage(one, 5, 9), b"late"), (Passage(one, 0, 5), b"soon"), (Passage(999, 0, 1), b"lost")])
    assert [item.head.rowid for item in store.chunks_without_vectors()] == [two]
    assert store.chunks_without_vectors(after=two) == []
    found = list(store.passages_between(one, two))
    assert [item.passage.start for item in found] == [0, 5]
    vectors = store.vectors([*(item.id for item in found), 999])
    assert [vectors[item.id] for item in found] == [b"soon", b"late"]
    assert len(vectors) == 2
    assert list(store.passages_between(two, two)) == []


def test_passages_know_their_facets_and_heads_need_no_texts(store: Store) -> None:
    store.put([(document("a"), chunks("a", 1, language="go"))])
    (stored,) = store.chunks_of("a")
    store.put_passages([(Passage(stored.head.rowid, 0, 5), b"soon")])
    assert [item.facets for item in store.passages_between(0, 99)] == [{"language": "go"}]
    (head,) = store.chunk_heads([stored.head.rowid, 999]).values()
    assert head == stored.head
    assert (head.document_id, head.id) == ("a", "a#0")
    assert store.plain_texts([stored.head.rowid, 999]) == {stored.head.rowid: stored.plain}


def test_facets_are_those_of_the_chunks_that_are_there(store: Store) -> None:
    store.put(
        [(document("a"), chunks("a", 1, language="go", scope="x")), (document("b"), chunks("b", 1, language="c"))]
    )
    assert store.facets() == {"language": ["c", "go"], "scope": ["x"]}
    store.delete(["a"])
    assert store.facets() == {"language": ["c"]}


def test_values_are_kept(store: Store) -> None:
    assert store.get_value("model") is None
    store.set_value("model", "one")
    store.set_value("model", "two")
    assert store.get_value("model") == "two"


def test_a_put_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    store.put([(document("a"), chunks("a", 1))])
    twice = chunks("b", 1) * 2
    with pytest.raises(Exception, match="UNIQUE"):
        store.put([(document("a", "2"), chunks("a", 2)), (document("b"), twice)])
    assert store.digests() == {"a": "1"}
    assert len(store.changes(0)) == 1
    store.close()


def test_a_document_and_its_task_are_stored_together(store: Store) -> None:
    store.put_with_task((document("a"), chunks("a", 2)), task("reads a"))
    assert store.digests() == {"a": "1"}
    assert [item.id for item in store.tasks({"queued"})] == ["reads a"]
    assert [change.kind for change in store.changes(0)] == ["put"]


def test_a_full_disk_is_an_error_of_the_store_until_there_is_room(tmp_path: Path) -> None:
    """A commit that fails must not leave its transaction open: nothing could be written any more."""
    with small_disk(tmp_path / "disk", 4) as disk:
        store = SqliteStore(disk.folder / "store.sqlite", durable=True)
        store.put([(document("a"), chunks("a", 1))])
        disk.fill()
        with pytest.raises(StoreUnavailable, match="full"):
            store.put([(document("b"), chunks("b", 2_000))])
        with pytest.raises(StoreUnavailable, match="full"):
            store.set_value("value", "x" * 1_000_000)
        assert store.digests() == {"a": "1"}
        disk.free()
        store.put([(document("b"), chunks("b", 200))])
        store.check_writable()
        assert store.digests() == {"a": "1", "b": "1"}
        store.close()


def test_a_sqlite_store_survives_its_process_and_opens_for_reading(tmp_path: Path) -> None:
    path = tmp_path / "a folder with %20 and ?" / "store.sqlite"
    store = SqliteStore(path)
    store.put([(document("a"), chunks("a", 2))])
    store.close()
    again = SqliteStore(path, read_only=True)
    assert again.counts().chunks == 2
    again.close()


def task(name: str, status: TaskStatus = "queued", **fields: Any) -> Task:
    defaults: dict[str, Any] = {"created_at": 1.0, "payload": {"file": "ä.pdf", "pages": [1]}}
    return Task(name, "add", status, **(defaults | fields))


def test_tasks_are_kept_in_order_and_replaced(store: Store) -> None:
    for name, created in (("b", 2.0), ("a", 1.0), ("c", 3.0)):
        store.put_task(task(name, created_at=created))
    assert [item.id for item in store.tasks({"queued"})] == ["a", "b", "c"]
    assert store.task("a") == task("a")
    store.put_task(task("a", "running", started_at=5.0, attempts=1))
    assert store.task("a") == task("a", "running", started_at=5.0, attempts=1)
    assert [item.id for item in store.tasks({"queued"}, limit=1)] == ["b"]
    assert {item.id for item in store.tasks({"queued", "running"})} == {"a", "b", "c"}
    assert store.task("none") is None


def test_of_several_that_change_a_task_one_succeeds(store: Store) -> None:
    store.put_task(task("a"))
    assert store.replace_task(task("a", "running", attempts=1), "queued")
    assert not store.replace_task(task("a", "cancelled"), "queued")
    assert not store.replace_task(task("unknown"), "queued")
    assert store.task("a") == task("a", "running", attempts=1)
    assert store.task("unknown") is None


def test_values_are_found_by_their_prefix(store: Store) -> None:
    for name in ("watch:b", "watch:a", "watched", "w%"):
        store.set_value(name, name.upper())
    assert store.list_values("watch:") == {"a": "WATCH:A", "b": "WATCH:B"}
    assert store.list_values("w%") == {"": "W%"}
    store.delete_value("watch:a")
    store.delete_value("unknown")
    assert store.list_values("watch:") == {"b": "WATCH:B"}
    assert store.get_value("watch:a") is None


def test_old_tasks_are_forgotten_but_never_the_last_ones(store: Store) -> None:
    for number in range(5):
        store.put_task(task(str(number), "completed", finished_at=float(number)))
    store.put_task(task("waiting"))
    store.prune_tasks(before=4.0, keep=2)
    assert {item.id for item in store.tasks({"completed", "queued"})} == {"3", "4", "waiting"}


def test_finished_tasks_come_last_first_in_pages_and_are_counted(store: Store) -> None:
    for number in range(4):
        store.put_task(task(f"read {number}", "completed", finished_at=float(number)))
    store.put_task(task("failed", "failed", finished_at=9.0))
    store.put_task(task("dismissed", "failed", finished_at=8.0, is_dismissed=True))
    store.put_task(task("waiting"))
    finished: set[TaskStatus] = {"completed", "failed", "cancelled"}
    order = ["failed", "dismissed", "read 3", "read 2", "read 1", "read 0"]
    assert [item.id for item in store.finished_tasks(finished)] == order
    assert [item.id for item in store.finished_tasks(finished, offset=1, limit=2)] == order[1:3]
    assert [item.id for item in store.finished_tasks({"failed"}, dismissed=False)] == ["failed"]
    assert store.finished_tasks({"queued"}) == []
    assert (store.count_tasks(finished), store.count_tasks({"queued"})) == (6, 1)
    assert (store.count_tasks({"failed"}), store.count_tasks({"failed"}, dismissed=False)) == (2, 1)


def test_chunks_are_counted_by_document(store: Store) -> None:
    store.put([(document("a"), chunks("a", 2)), (document("b"), chunks("b", 3)), (document("c"), [])])
    assert store.chunk_counts() == {"a": 2, "b": 3}
    assert (store.chunk_counts("a"), store.chunk_counts("none")) == ({"a": 2}, {})


def test_chunks_know_their_page(store: Store) -> None:
    store.put([(document("a"), [replace(chunk, page=number) for number, chunk in enumerate(chunks("a", 2))])])
    assert [item.head.page for item in store.chunks_of("a")] == [0, 1]


def test_vectors_can_be_forgotten_and_documents_renamed(store: Store) -> None:
    store.put([(document("a"), chunks("a", 1))])
    (stored,) = store.chunks_of("a")
    store.put_passages([(Passage(stored.head.rowid, 0, 5), b"soon")])
    seq = store.last_change().seq  # type: ignore[union-attr]
    store.update_documents([replace(document("a"), title="Other"), document("unknown")])
    assert store.last_change().seq == seq  # type: ignore[union-attr]
    assert store.document("a").title == "Other"  # type: ignore[union-attr]
    assert store.document("unknown") is None
    store.delete_passages()
    assert store.counts().passages == 0
    assert store.last_change().kind == "vectors"  # type: ignore[union-attr]
    assert store.chunks_without_vectors()


def test_a_new_version_takes_over_in_one_transaction(store: Store) -> None:
    store.put([(document("old"), chunks("old", 2)), (document("new"), chunks("new", 1))])
    gone = [stored.head.rowid for stored in store.chunks_of("old")]
    store.update_and_delete([replace(document("new"), title="Other")], ["old", "unknown"])
    assert (store.document("old"), store.document("new").title) == (None, "Other")  # type: ignore[union-attr]
    change = store.last_change()
    assert change is not None
    assert (change.kind, change.gone_first, change.gone_last) == ("delete", min(gone), max(gone))
    assert store.chunk_counts() == {"new": 1}


def test_the_keys_of_an_attribute_are_listed_once(store: Store) -> None:
    texts = ['{"author": "Ada", "tags": ["a"]}', '{"author": null, "größe": NaN}', "{}", None]
    for number, text in enumerate(texts):
        known = {"user": text} if text is not None else {}
        store.put([(replace(document(str(number)), attributes=known), [])])
    assert store.member_names("user") == ["author", "größe", "tags"]
    assert store.member_names("nothing") == []


def test_every_write_changes_the_version_and_ends_a_wait(store: Store) -> None:
    writes: list[Callable[[], object]] = [
        lambda: store.put([(document("a"), chunks("a", 1))]),
        lambda: store.put_passages(vectors(store, "a")),
        lambda: store.update_documents([replace(document("a"), title="Other")]),
        lambda: store.update_and_delete([document("a")], []),
        lambda: store.put_task(task("t")),
        lambda: store.replace_task(task("t", "running"), "queued"),
        lambda: store.request_cancel("t"),
        lambda: store.delete_cancel_request("t"),
        lambda: store.set_value("speed", "7"),
        lambda: store.delete(["a"]),
    ]
    for write in writes:
        before = store.version()
        assert store.version() == before
        assert not store.wait_for_change(before, 0)
        writer = threading.Timer(0.05, write)
        writer.start()
        assert store.wait_for_change(before, 5)
        writer.join()
        assert store.version() != before
        assert store.wait_for_change(before, 0)  # also when the write came first


def test_a_wait_ends_when_another_process_writes_or_the_store_is_closed(tmp_path: Path) -> None:
    store, other = SqliteStore(tmp_path / "store.sqlite"), SqliteStore(tmp_path / "store.sqlite")
    before = store.version()
    threading.Timer(0.05, lambda: other.put_task(task("t"))).start()
    assert store.wait_for_change(before, 5)
    started = time.monotonic()
    threading.Timer(0.05, store.close).start()
    store.wait_for_change(store.version(), 5)
    assert time.monotonic() - started < 4
    other.close()


def test_a_store_can_be_closed_while_other_threads_read(tmp_path: Path) -> None:
    """Closing a connection during its query crashed the process, so this runs in one of its own."""
    script = dedent("""
        import sqlite3, sys, threading, time
        from contextlib import suppress
        from pathlib import Path
        from bedstone.store.engines.sqlite import SqliteStore

        def read(store):
            with suppress(sqlite3.ProgrammingError):
                while True:
                    store.version(), store.counts(), list(store.chunks_between(0, 9))

        for number in range(60):
            store = SqliteStore(Path(sys.argv[1]) / f"{number}.sqlite")
            threads = [threading.Thread(target=read, args=(store,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(0.01)
            store.close()
            for thread in threads:
                thread.join()
    """)
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_store_refuses_a_thread_that_has_not_read_before(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    store.close()
    for read in (store.counts, store.version):
        with pytest.raises(sqlite3.ProgrammingError):
            read()


def test_one_holder_has_a_lock_at_a_time(store: Store) -> None:
    first, second, elsewhere = store.lock("owner"), store.lock("owner"), store.lock("watch-1")
    assert first.acquire()
    assert first.acquire()  # it has it already
    assert (first.is_held, second.acquire(), second.is_held, elsewhere.acquire()) == (True, False, False, True)
    second.release()
    assert first.is_held
    first.release()
    assert (first.is_held, second.acquire()) == (False, True)
    second.release()
    elsewhere.release()


def test_requests_to_cancel_are_kept_apart_from_values(store: Store) -> None:
    store.request_cancel("a")
    store.request_cancel("a")
    store.request_cancel("b")
    assert store.cancel_requests() == {"a", "b"}
    assert store.list_values("") == {}
    store.delete_cancel_request("a")
    store.delete_cancel_request("unknown")
    assert store.cancel_requests() == {"b"}


def test_requests_to_cancel_of_earlier_versions_are_moved(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "store.sqlite").close()
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as db:
        db.execute("DROP TABLE cancel_request")
        db.executemany("INSERT INTO setting VALUES (?, '')", [("cancel:one",), ("cancel:two",), ("cancelled",)])
        db.execute("PRAGMA user_version = 2")
        db.commit()
    store = SqliteStore(tmp_path / "store.sqlite")
    assert store.cancel_requests() == {"one", "two"}
    assert store.list_values("cancel") == {"led": ""}
    store.close()


def file(name: str, **attributes: object) -> Document:
    return Document(name, name, name, {key: str(value) for key, value in attributes.items()})


FILES = [
    file("a", format="pdf", added=10.5, size=300, filename="Äpfel.pdf", contexts='["sea", "news"]',
         user='{"author": "Ada", "tags": ["sea", 1, null], "year": 2020, "done": true, "who": {"x": [1, 2]}}'),
    file("b", format="md", added=20.0, size=40, filename="zebra.md", contexts='["default"]',
         user=json.dumps({"author": "Bob", "tags": "sea", "year": "2020", "ü": "ö\u0000 \" '"}, ensure_ascii=False)),
    file("c", format="txt", added=30, size=5, filename="apple.txt", user='{"ratio": NaN, "author": "Ada"}'),
    file("d", format="txt", added=30, size=1000, filename="äther.txt", contexts="null"),
]  # fmt: skip


def by_metadata(key: str, *values: object) -> AttributeHas:
    return AttributeHas("user", values, key)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((), "abcd"),
        ((AttributeIn("format", ("pdf", "md")),), "ab"),
        ((AttributeIn("format", ()),), ""),
        ((AttributeIn("missing", ("x",)),), ""),
        ((AttributeBetween("added", 10.5, 30),), "ab"),
        ((AttributeBetween("added", low=20),), "bcd"),
        ((AttributeBetween("missing", high=1),), ""),
        ((AttributeContains("filename", "ÄPF"),), "a"),
        ((AttributeContains("filename", "ther"), AttributeIn("format", ("txt",))), "d"),
        ((AttributeContains("filename", "%"),), ""),
        ((AttributeHas("contexts", ("sea",)),), "a"),
        ((AttributeHas("contexts", ("default", None)),), "bcd"),
        ((by_metadata("author", "Ada", "Eve"),), "ac"),
        ((by_metadata("author", "Ada", None),), "acd"),
        ((by_metadata("tags", "sea"),), "ab"),
        ((by_metadata("tags", 1),), "a"),
        ((by_metadata("tags", None),), "acd"),
        ((by_metadata("year", 2020),), "a"),
        ((by_metadata("year", 2020.0),), "a"),
        ((by_metadata("year", "2020"),), "b"),
        ((by_metadata("done", True),), "a"),
        ((by_metadata("who", {"x": [1, 2]}),), "a"),
        ((by_metadata("who", '{"x":[1,2]}'),), ""),
        ((by_metadata("ü", "ö\u0000 \" '"),), "b"),
        ((by_metadata("no", "such"), AttributeIn("format", ("pdf",))), ""),
        ((by_metadata("author", float("inf"), "\ud800"),), ""),
        ((by_metadata("\ud800", "x"),), ""),
    ],
)
def test_documents_are_found_by_their_attributes(
    store: Store, conditions: tuple[Condition, ...], expected: str
) -> None:
    store.put((item, []) for item in FILES)
    assert sorted(store.document_ids(conditions)) == list(expected)
    assert store.count_documents(conditions) == len(expected)
    assert [item.id for item in store.documents(conditions)] == list(expected)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (Order("added", is_number=True), "abcd"),
        (Order("added", is_number=True, descending=True), "cdba"),
        (Order("filename"), "cbad"),
        (Order("filename", descending=True), "dabc"),
        (Order("size", is_number=True), "cbad"),
    ],
)
def test_documents_are_sorted_and_ties_are_in_the_order_of_their_ids(store: Store, order: Order, expected: str) -> None:
    store.put((item, []) for item in reversed(FILES))
    assert [item.id for item in store.documents(order=order)] == list(expected)
    pages = [store.documents(order=order, offset=start, limit=3) for start in (0, 3, 6)]
    assert [item.id for page in pages for item in page] == list(expected)


def test_attributes_are_counted_and_summed(store: Store) -> None:
    assert (store.sum_attribute("size"), store.count_attributes(["format"])) == (0, {})
    store.put((item, []) for item in FILES)
    assert store.sum_attribute("size") == 1345
    assert store.count_attributes(["format", "missing"]) == {("pdf", ""): 1, ("md", ""): 1, ("txt", ""): 2}


def test_threads_write_and_read_at_once(store: Store) -> None:
    """Nothing is lost, every change is seen once, and readers see whole documents only."""
    problems: list[str] = []
    is_over = threading.Event()

    def write(name: str) -> None:
        for number in range(10):
            store.put([(document(f"{name}{number}"), chunks(f"{name}{number}", 3))])
            store.put_passages(vectors(store, f"{name}{number}"))
            store.put_task(task(f"{name}{number}"))

    def read() -> None:
        while not is_over.is_set():
            problems.extend(f"{name} has {count} chunks" for name, count in store.chunk_counts().items() if count != 3)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    reader.start()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    is_over.set()
    reader.join(30)
    assert problems == []
    assert store.counts() == Counts(30, 90, 90)
    assert [change.seq for change in store.changes(0)] == list(range(1, 61))
    assert len(store.tasks({"queued"})) == 30


def test_of_many_threads_one_claims_each_task(store: Store) -> None:
    for number in range(20):
        store.put_task(task(str(number)))
    claimed: list[str] = []

    def claim() -> None:
        waiting = store.tasks({"queued"})
        claimed.extend(item.id for item in waiting if store.replace_task(replace(item, status="running"), "queued"))

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(claimed) == sorted(str(number) for number in range(20))


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    store.seal()
    store.close()
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as db:
        db.execute("PRAGMA user_version = 99")
    for read_only in (True, False):
        with pytest.raises(StoreVersionMismatch):
            SqliteStore(tmp_path / "store.sqlite", read_only=read_only)


def test_sealing_waits_for_other_readers(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    store.put([(document("a"), chunks("a", 1))])
    looking = sqlite3.connect(tmp_path / "store.sqlite", check_same_thread=False)
    looking.execute("SELECT count(*) FROM document").fetchone()
    threading.Timer(0.5, looking.close).start()
    store.seal()
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["store.sqlite"]
    assert SqliteStore(tmp_path / "store.sqlite", read_only=True).counts().documents == 1


def test_places_of_a_chunk_come_back(store: Store) -> None:
    """Chunks with text of several pages or sections say where each begins; other chunks have one place."""
    places = (Place(0, 0, 1, ("Top", "A")), Place(9, 14, 2, ("Top", "B", "C")), Place(20, 30, 2, ()))
    both = Chunk("c#0", "text", "plain", "A", 0, ("Top", "A"), {}, 1, places)
    store.put([(document("c"), [both, Chunk("c#1", "text", "plain", "A", 0, ("Top", "A"), {}, 3)])])
    first, second = (stored.head for stored in store.chunks_of("c"))
    assert (first.breadcrumb, first.page, first.last_page, first.all_places) == (("Top", "A"), 1, 2, places)
    assert (second.places, second.last_page) == ((), 3)
    assert second.all_places == (Place(0, 0, 3, ("Top", "A")),)
