"""Files in, passages out; and what a crash leaves."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from bedstone.errors import BedstoneError, Unavailable
from bedstone.records import Task, TaskStatus
from bedstone.search.embedder import Embedder
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.search.embedders.minilm import MiniLm
from bedstone.services.knowledge.errors import FileNotFound, FileTooLarge, PathNotAllowed, UnsupportedFormat
from bedstone.services.knowledge.folder_sync import FolderReport
from bedstone.services.knowledge.listing import ListQuery
from bedstone.services.knowledge.options import KnowledgeOptions
from bedstone.services.knowledge.records import AddedFile, FileDocument, added_file
from bedstone.services.knowledge.searching import KnowledgeHit, KnowledgeQuery
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.store.engines.sqlite import SqliteStore
from ingest.test_reader import docx, pdf, picture

Opened = Callable[..., KnowledgeBase]
STORE = "knowledge.sqlite"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    bases: list[KnowledgeBase] = []

    def opened(
        embedder: Callable[[], Embedder | None] = lambda: None,
        store: Callable[..., SqliteStore] = SqliteStore,
        is_working: bool = True,
        **options: object,
    ) -> KnowledgeBase:
        folders = {"documents_path": tmp_path / "documents", "index_path": tmp_path / "index"}
        known = KnowledgeOptions(**{**folders, **options})  # type: ignore[arg-type]
        base = KnowledgeBase(store(known.index_path / STORE, durable=True), known, embedder)
        if is_working:
            base.open()
        bases.append(base)
        return base

    yield opened
    for base in bases:
        base.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """The store that bases of a test use, as another process sees it."""
    store = SqliteStore(tmp_path / "index" / STORE)
    yield store
    store.close()


def add(base: KnowledgeBase, path: Path, **metadata: object) -> Task:
    return base.wait(base.add(path, metadata).id)


def result(task: Task) -> AddedFile:
    assert task.status == "completed", task.error
    return added_file(task)


def search(base: KnowledgeBase, text: str, limit: int = 9, **more: Any) -> list[KnowledgeHit]:
    return base.search(KnowledgeQuery(text, limit, **more))


def write(folder: Path, name: str, data: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_a_file_is_read_found_and_removed(opened: Opened, tmp_path: Path) -> None:
    base = opened(MiniLm)
    task = add(base, write(tmp_path, "whales.pdf", pdf("Whales: They sing at night.", "Krill: Small and many.")))
    added = result(task)
    assert (added.filename, added.processing_method) == ("whales.pdf", "text_extraction")
    add(base, write(tmp_path, "manual.docx", docx()))
    hits = search(base, "what do whales do when it is dark", 2)
    assert hits[0].document.id == added.document_id
    assert hits[0].chunk.head.page == 1
    assert 1 >= hits[0].score >= hits[1].score >= 0
    assert search(base, "small krill", 1)[0].chunk.head.page in (1, 2)
    (document,) = [item for item in base.documents() if item.filename == "whales.pdf"]
    assert document.status == "completed"
    assert base.remove(document.id) == added.chunks_created
    assert all(hit.document.id != document.id for hit in search(base, "whales", 5))
    assert not (tmp_path / "documents" / document.id).exists()
    with pytest.raises(BedstoneError, match="not found"):
        base.remove(document.id)


def test_the_same_content_is_kept_once(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    first = add(base, write(tmp_path, "a.txt", "The same words."))
    again = add(base, write(tmp_path, "b.txt", "The same words."))
    assert result(again) == replace(result(first), is_duplicate=True, updated=("source",))
    assert len(base.documents()) == len(list((tmp_path / "documents").glob("[!.]*"))) == 1


def test_the_same_content_read_by_several_tasks_at_once_is_kept_once(opened: Opened, tmp_path: Path) -> None:
    base = opened(is_working=False)
    text = " ".join(f"Sentence {number} of the same words." for number in range(300))
    tasks = [base.add(write(tmp_path, f"{number}.txt", text)) for number in range(6)]
    assert {task.status for task in tasks} == {"queued"}
    base.open()
    ended = [base.wait(task.id) for task in tasks]
    assert {task.status for task in ended} == {"completed"}
    assert len(base.documents()) == len(list((tmp_path / "documents").glob("[!.]*"))) == 1


def test_a_task_that_was_done_but_for_saying_so_is_done(opened: Opened, store: SqliteStore, tmp_path: Path) -> None:
    base = opened()
    done = add(base, write(tmp_path, "a.txt", "some words"))
    store.put_task(Task("again", "add", "queued", 1.0, done.payload))  # by another process
    assert result(base.wait("again")) == result(done)
    assert (tmp_path / "documents" / str(done.payload["document_id"])).is_dir()


def test_pictures_are_found_by_what_they_say_and_by_their_name(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    add(base, write(tmp_path, "harbour-plan.png", picture("Lighthouse keeper")))
    for query in ("lighthouse", "harbour plan"):
        (hit,) = search(base, query, 3)
        assert hit.document.method == "image_analysis"


def test_filters_by_format_date_and_what_was_said(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    add(base, write(tmp_path, "a.txt", "tide tables of the bay"), tags=["sea", "time"], author="Ada")
    add(base, write(tmp_path, "b.md", "# Tide\n\ntide of news"), author="Bob")
    today = time.strftime("%Y-%m-%d", time.gmtime())

    def names(filters: dict[str, object]) -> set[str]:
        return {hit.document.filename for hit in search(base, "tide", 9, filters=filters)}

    assert names({"format": "txt"}) == {"a.txt"}
    assert names({"format": ["txt", "MD"]}) == {"a.txt", "b.md"}
    assert names({"author": "Bob"}) == {"b.md"}
    assert names({"tags": "sea"}) == {"a.txt"}
    assert names({"date_range": {"start": today, "end": today}}) == {"a.txt", "b.md"}
    assert names({"date_range": {"end": "2020-01-01"}}) == set()
    assert search(base, "tide", 9, min_score=1.0) == []


def test_files_are_refused_with_their_reason(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    base = opened(allowed_roots=[tmp_path / "in"], max_file_size_mb=1)
    outside = write(tmp_path, "secret.txt", "tulip")
    (tmp_path / "in" / "link.txt").symlink_to(outside)
    write(tmp_path / "in", "big.txt", "x" * 1_500_000)
    os.mkfifo(tmp_path / "in" / "pipe.txt")
    for path, kind in {
        outside: PathNotAllowed,
        tmp_path / "in" / "link.txt": PathNotAllowed,
        tmp_path / "in" / ".." / "secret.txt": PathNotAllowed,
        Path(f"{tmp_path}/input.txt"): PathNotAllowed,
        tmp_path / "in" / "none.txt": FileNotFound,
        tmp_path / "in" / "pipe.txt": FileNotFound,
        tmp_path / "in" / "big.txt": FileTooLarge,
        tmp_path / "in" / "a.xyz": UnsupportedFormat,
    }.items():
        with pytest.raises(BedstoneError) as caught:
            base.add(path)
        assert type(caught.value) is kind, path
        assert "tulip" not in caught.value.message
    assert list((tmp_path / "documents").glob("[!.]*")) == []


def test_a_damaged_file_costs_its_task_only(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    broken = add(base, write(tmp_path, "a.pdf", b"%PDF-1.4 nothing"))
    assert broken.status == "failed"
    assert broken.error
    assert broken.error.code == "extraction_failed"
    blank = add(base, write(tmp_path, "b.txt", "  \n"))
    assert blank.error
    assert blank.error.message == "No text was found in the file."
    assert base.documents() == []
    assert list((tmp_path / "documents").glob("[!.]*")) == []
    assert add(base, write(tmp_path, "c.txt", "fine")).status == "completed"


def test_everything_can_be_removed(opened: Opened, tmp_path: Path) -> None:
    base = opened(HashingEmbedder)
    for number in range(3):
        add(base, write(tmp_path, f"{number}.txt", f"words number {number}"))
    report = base.clear()
    assert (report.documents, report.vectors, report.freed_bytes) == (3, 3, 3 * len("words number 0"))
    with pytest.raises(BedstoneError, match="Knowledge base is empty"):
        search(base, "words", 1)
    assert list((tmp_path / "documents").glob("[!.]*")) == []


def test_health_is_probed(opened: Opened, tmp_path: Path) -> None:
    base = opened(HashingEmbedder)
    assert base.check_health() == {}
    shutil.rmtree(tmp_path / "documents")
    assert list(base.check_health()) == ["storage"]


CRASHING = """
import sys, time
from pathlib import Path
from bedstone.services.knowledge.service import *
from bedstone.search.embedders.minilm import MiniLm
from bedstone.store.engines.sqlite import SqliteStore
root = Path(sys.argv[1])
store = SqliteStore(root / "index" / "knowledge.sqlite", durable=True)
base = KnowledgeBase(store, KnowledgeOptions(root / "documents", root / "index"), MiniLm)
base.open()
for path in sorted((root / "files").iterdir()):
    task = base.add(path)
    print(path.name, flush=True)
for task in base.active_tasks():
    base.wait(task.id)
print("done", flush=True)
base.close()
"""


def test_a_killed_process_loses_nothing_it_acknowledged(opened: Opened, store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for number in range(6):
        text = f"Subject {number}. " + " ".join(f"Sentence {place} about bay {number}." for place in range(60))
        write(tmp_path / "files", f"{number}.txt", text)
    acknowledged: set[str] = set()
    for delay in (0.1, 0.6, 1.5):
        process = subprocess.Popen(
            [sys.executable, "-c", CRASHING, tmp_path], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert process.stdout
        acknowledged.add(process.stdout.readline().strip())
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGKILL)
        acknowledged |= set(process.stdout.read().split())
        process.wait(10)
        process.stdout.close()
    base = opened(MiniLm)
    for task in base.active_tasks():
        assert base.wait(task.id).status == "completed"
    documents = base.documents()
    assert acknowledged - {"done"} <= {document.filename for document in documents}
    assert len(documents) == len({document.digest for document in documents})
    for document in documents:
        assert document.status == "completed"
        chunks = base.chunks(document.id)
        assert "about bay" in chunks[-1].plain
        subject = document.filename[0]
        assert search(base, f"subject {subject} bay {subject}", 1)[0].document.id == document.id
    assert store.chunks_without_vectors() == []
    known = {document.id for document in documents}
    assert {path.name for path in (tmp_path / "documents").glob("[!.]*")} == known


def test_contexts_hold_documents_that_are_kept_once(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    for name in ("sea", "news"):
        base.collections.create(name, f"about {name}")
    first = base.add(write(tmp_path, "a.txt", "tide tables of the bay"), {}, collections=["sea"])
    base.wait(first.id)
    again = base.wait(base.add(tmp_path / "a.txt", {}, collections=["news"]).id)
    assert result(again).is_duplicate
    add(base, write(tmp_path, "b.txt", "tide of news"))
    assert [(item.name, item.documents) for item in base.collections.all()] == [("default", 1), ("news", 1), ("sea", 1)]

    def found(context: str | None) -> set[str]:
        return {hit.document.filename for hit in search(base, "tide", 9, collection=context)}

    assert found("sea") == found("news") == {"a.txt"}
    assert found("default") == {"b.txt"}
    assert found(None) == {"a.txt", "b.txt"}
    assert base.collections.delete("sea") == 1
    assert found("default") == {"b.txt"}
    assert base.collections.delete("news") == 1
    assert found("default") == {"a.txt", "b.txt"}
    for name, message in (("sea", "not found"), ("default", "cannot be deleted")):
        with pytest.raises(BedstoneError, match=message):
            base.collections.delete(name)
    with pytest.raises(BedstoneError, match="not found"):
        base.add(tmp_path / "a.txt", collections=["sea"])
    for name in ("", "a b", "x" * 65, "default", "ä"):
        with pytest.raises(BedstoneError):
            base.collections.create(name)


def test_a_folder_is_kept_in_step(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    keeper = base.folder_sync(folder)
    for name, text in {"a.txt": "tulips", "deep/b.md": "roses", "c.txt": "tulips", ".d.txt": "x", "e.xyz": "x"}.items():
        write(folder, name, text)
    write(folder, "broken.pdf", b"%PDF-1.4")

    def names() -> list[str]:
        return sorted(document.filename for document in base.documents())

    def told(report: FolderReport) -> dict[str, list[str]]:
        return {what: [Path(name).name for name in found] for what, found in vars(report).items() if found}

    assert told(keeper.sync()) == {"added": ["a.txt", "c.txt", "b.md"], "failed": ["broken.pdf"]}
    assert names() in (["a.txt", "b.md"], ["b.md", "c.txt"])  # the same content is kept once
    assert not keeper.sync()
    (folder / "a.txt").unlink()
    write(folder, "deep/b.md", "roses and lilies")
    assert told(keeper.sync()) == {"changed": ["b.md"], "removed": ["a.txt"]}
    assert len(names()) == 2  # c.txt still stands for it
    assert search(base, "lilies", 1)
    (folder / "deep" / "b.md").rename(folder / "moved.md")
    (folder / "c.txt").unlink()
    again = base.folder_sync(folder)  # what is known survives a restart
    assert told(again.sync()) == {"moved": ["moved.md"], "removed": ["c.txt"]}
    assert names() == ["moved.md"]
    manual = add(base, write(tmp_path, "mine.txt", "asters"))
    write(folder, "also.txt", "asters")
    assert told(again.sync()) == {"added": ["also.txt"]}
    (folder / "also.txt").unlink()
    again.sync()
    assert base.get_document(result(manual).document_id)  # what somebody added stays


def test_a_whole_base_travels_in_one_file(opened: Opened, tmp_path: Path) -> None:
    base = opened(HashingEmbedder)
    base.collections.create("sea", "ships")
    task = base.add(write(tmp_path, "a.txt", "tide tables"), {"author": "Ada"}, collections=["sea"])
    base.wait(task.id)
    add(base, write(tmp_path, "harbour.png", picture("Lighthouse")))
    assert base.export_to(tmp_path / "all.zip") == 2
    other = opened(HashingEmbedder, documents_path=tmp_path / "documents2", index_path=tmp_path / "index2")
    for task in other.import_from(tmp_path / "all.zip"):
        assert other.wait(task.id).status == "completed"
    assert {item.id for item in other.documents()} == {item.id for item in base.documents()}
    assert other.status().counts == base.status().counts
    assert [hit.document.filename for hit in search(other, "tide", 5, collection="sea")] == ["a.txt"]
    assert other.read_pages(search(base, "lighthouse", 1)[0].document.id)[0].markdown.startswith("Lighthouse")
    assert list(other.import_from(tmp_path / "all.zip")) == []
    write(tmp_path, "wrong.zip", "no archive")
    with pytest.raises(BedstoneError, match="not an export"):
        list(other.import_from(tmp_path / "wrong.zip"))


def test_several_processes_share_one_base(opened: Opened, tmp_path: Path) -> None:
    """A second process searches what the first indexes, adds through it, and takes over when it ends."""
    first = opened(HashingEmbedder)
    add(first, write(tmp_path, "a.txt", "tulips"))
    script = SHARING.format(root=tmp_path)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdin
    assert process.stdout.readline() == "False ['a.txt']\n"
    write(tmp_path, "b.txt", "roses")
    print("b.txt", file=process.stdin, flush=True)
    assert process.stdout.readline() == "completed\n"
    assert search(first, "roses", 1)[0].document.filename == "b.txt"
    first.close()
    write(tmp_path, "c.txt", "asters")
    print("c.txt", file=process.stdin, flush=True)
    assert process.stdout.readline() == "completed\n"
    process.stdin.close()
    assert process.stdout.read() == "True ['a.txt', 'b.txt', 'c.txt']\n"
    assert process.wait(20) == 0
    process.stdout.close()


SHARING = """
import sys
from pathlib import Path
from bedstone.services.knowledge.service import *
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.store.engines.sqlite import SqliteStore
root = Path("{root}")
store = SqliteStore(root / "index" / "knowledge.sqlite", durable=True)
base = KnowledgeBase(store, KnowledgeOptions(root / "documents", root / "index"), HashingEmbedder)
base.open()
print(base.is_owner, [hit.document.filename for hit in base.search(KnowledgeQuery("tulips", 5))], flush=True)
for line in sys.stdin:
    task = base.add(root / line.strip())
    print(base.wait(task.id).status, flush=True)
hits = [base.search(KnowledgeQuery(query, 1))[0] for query in ("tulips", "roses", "asters")]
print(base.is_owner, [hit.document.filename for hit in hits])
base.close()
"""


def test_what_was_cancelled_stays_cancelled_when_the_process_ends(opened: Opened, tmp_path: Path) -> None:
    base = opened(max_concurrent_tasks=1)
    text = "\n\n".join(f"Sentence {number} about the bay." for number in range(20_000))
    tasks = [base.add(write(tmp_path, f"{number}.txt", f"{number} {text}"), {}) for number in range(3)]
    while base.task(tasks[0].id).progress is None:
        time.sleep(0.005)
    base.clear()
    base.close()
    again = opened()
    assert again.active_tasks() == []
    assert {again.task(task.id).status for task in tasks} == {"cancelled"}
    assert again.documents() == []
    assert [path for path in (tmp_path / "documents").glob("[!.]*") if path.is_dir()] == []


def test_vectors_that_are_lacking_are_made_later(opened: Opened, store: SqliteStore, tmp_path: Path) -> None:
    """Added while there was no model, or made by another one."""
    base = opened()
    add(base, write(tmp_path, "a.txt", "tulips"))
    base.close()

    def vectors(base: KnowledgeBase) -> int:
        deadline = time.monotonic() + 20
        while store.chunks_without_vectors() and time.monotonic() < deadline:
            time.sleep(0.05)
        return base.status().counts.passages

    second = opened(HashingEmbedder)
    assert vectors(second) == 1
    second.close()

    class Other(HashingEmbedder):
        fingerprint = "another"

    third = opened(Other)
    assert search(third, "tulips", 1)
    assert vectors(third) == 1
    assert store.get_value("embedding_fingerprint") == "another"


def test_a_model_that_cannot_be_had_costs_meaning_and_nothing_else(opened: Opened, tmp_path: Path) -> None:
    def unavailable() -> Embedder:
        raise Unavailable("The service does not answer.")

    base = opened(unavailable)
    assert add(base, write(tmp_path, "a.txt", "tulips")).status == "completed"
    assert search(base, "tulips", 1)
    assert base.check_health() == {
        "embedding_model": "The embedding model does not answer: The service does not answer."
    }


def test_a_store_that_fails_for_a_moment_costs_no_task(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FailingStore(SqliteStore):
        failures = 3

        def replace_task(self, task: Task, expected_status: TaskStatus) -> bool:
            if task.status == "completed" and self.failures:
                self.failures -= 1
                raise sqlite3.OperationalError("disk is full")
            return super().replace_task(task, expected_status)

    monkeypatch.setattr("bedstone.tasks.runner.RETRY_SECONDS", 0.05)
    base = opened(store=FailingStore)
    tasks = [base.add(write(tmp_path, f"{number}.txt", f"words {number}"), {}) for number in range(4)]
    assert [base.wait(task.id).status for task in tasks] == ["completed"] * 4


def test_the_same_content_waits_for_the_task_that_reads_it_first(
    opened: Opened, store: SqliteStore, tmp_path: Path
) -> None:
    base = opened()
    path = write(tmp_path, "a.txt", "tulips")
    digest = sha256(path.read_bytes()).hexdigest()
    first = FileDocument("first", "a.txt", digest, "a.txt", str(path), "txt", 6, 1.0, "processing", "text_extraction")
    store.put([(first.to_stored(), [])])  # another task is reading it
    second = base.add(path)
    time.sleep(0.6)
    assert base.task(second.id).finished_at is None
    store.delete(["first"])  # and fails
    assert not result(base.wait(second.id)).is_duplicate


def test_files_are_checked_as_they_were_opened(opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    base = opened(allowed_roots=[tmp_path / "in"])
    write(tmp_path, "secret.txt", "tulip")
    inside = write(tmp_path / "in", "a.txt", "rose")
    real = os.open

    def swapped(path: object, flags: int, *more: int, **named: object) -> int:
        if str(path).endswith("a.txt") and not inside.is_symlink():
            inside.unlink()
            inside.symlink_to(tmp_path / "secret.txt")
        return real(path, flags, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(BedstoneError) as caught:
        base.add(inside, {})
    assert type(caught.value) is PathNotAllowed


def test_odd_names_and_texts(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    assert add(base, write(tmp_path, "bmw.txt", "BMW sales rose")).status == "completed"
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("coffee")
    assert result(add(base, tmp_path / os.fsdecode(b"caf\xe9.txt"))).filename == "caf\ufffd.txt"
    for path in ("a\0b.txt", "x" * 300 + ".txt", "~nobody-at-all/a.txt"):
        with pytest.raises(BedstoneError) as caught:
            base.add(Path(path), {})
        assert type(caught.value) is FileNotFound


def test_what_failed_can_be_removed(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    failed = add(base, write(tmp_path, "a.pdf", b"%PDF-1.4 nothing"))
    other = add(base, write(tmp_path, "b.pdf", b"%PDF-1.4 else"))
    assert base.remove(str(failed.payload["document_id"])) == 0
    assert [item.id for item in base.list_documents(ListQuery()).documents] == [other.payload["document_id"]]
    base.clear()
    assert base.list_documents(ListQuery()).documents == []


def test_a_folder_that_is_not_there_removes_nothing(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    write(tmp_path / "one", "a.txt", "tulips")
    write(tmp_path / "two", "b.txt", "tulips")
    write(tmp_path / "one", "c.txt", "roses")
    one, two = base.folder_sync(tmp_path / "one"), base.folder_sync(tmp_path / "two")
    one.sync()
    two.sync()
    (tmp_path / "one").rename(tmp_path / "away")
    with pytest.raises(BedstoneError, match="Cannot read"):
        one.sync()
    assert len(base.documents()) == 2
    (tmp_path / "away").rename(tmp_path / "one")
    (tmp_path / "one" / "a.txt").unlink()
    one.sync()  # the other folder still stands for its content
    assert len(base.documents()) == 2
    (tmp_path / "two" / "b.txt").unlink()
    two.sync()
    assert [document.filename for document in base.documents()] == ["c.txt"]
    write(tmp_path / "one", "c.txt", b"\x00\x01" * 0)
    assert one.sync().failed
    (tmp_path / "one" / "c.txt").unlink()
    one.sync()
    assert base.documents() == []
    (tmp_path / "one" / os.fsdecode(b"caf\xe9.txt")).write_text("coffee")
    assert len(one.sync().added) == 1
    assert not base.folder_sync(tmp_path / "one").sync()


def test_a_read_only_base_is_searched_and_left_alone(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    add(base, write(tmp_path, "a.txt", "tulips"))
    base.close()
    frozen = opened(read_only=True)
    assert search(frozen, "tulips", 1)
    assert frozen.check_health() == {}
    assert not frozen.is_owner
