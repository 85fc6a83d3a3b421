"""Files in, passages out; and what a crash leaves."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bedstone.errors import BedstoneError, Unavailable
from bedstone.records import Document
from bedstone.search.embedder import Embedder
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.search.embedders.minilm import MiniLm
from bedstone.services.knowledge.archive import export_base, import_base
from bedstone.services.knowledge.folder_sync import FolderKeeper, FolderReport
from bedstone.services.knowledge.service import KnowledgeBase, KnowledgeOptions
from bedstone.store.engine import TaskRecord
from ingest.test_reader import docx, pdf, picture

Opened = Callable[..., KnowledgeBase]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    bases: list[KnowledgeBase] = []

    def opened(embedder: Callable[[], Embedder | None] = lambda: None, **options: object) -> KnowledgeBase:
        folders = {"documents_path": tmp_path / "documents", "index_path": tmp_path / "index"}
        base = KnowledgeBase(KnowledgeOptions(**{**folders, **options}), embedder)  # type: ignore[arg-type]
        base.open()
        bases.append(base)
        return base

    yield opened
    for base in bases:
        base.close()


def add(base: KnowledgeBase, path: Path, **metadata: object) -> TaskRecord:
    return base.tasks.wait(base.add(path, metadata).id)


def write(folder: Path, name: str, data: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_a_file_is_read_found_and_removed(opened: Opened, tmp_path: Path) -> None:
    base = opened(MiniLm)
    task = add(base, write(tmp_path, "whales.pdf", pdf("Whales: They sing at night.", "Krill: Small and many.")))
    assert task.status == "completed"
    result = task.details["result"]
    assert (result["filename"], result["processing_method"]) == ("whales.pdf", "text_extraction")
    add(base, write(tmp_path, "manual.docx", docx()))
    hits = base.search("what do whales do when it is dark", top_k=2)
    assert hits[0].document.id == result["document_id"]
    assert hits[0].stored.chunk.page == 1
    assert 1 >= hits[0].score >= hits[1].score >= 0
    assert base.search("small krill", top_k=1)[0].stored.chunk.page in (1, 2)
    (document,) = [item for item in base.documents() if item.metadata["filename"] == "whales.pdf"]
    assert document.metadata["status"] == "completed"
    assert base.remove(document.id) == result["chunks_created"]
    assert all(hit.document.id != document.id for hit in base.search("whales", top_k=5))
    assert not (tmp_path / "documents" / document.id).exists()
    with pytest.raises(BedstoneError, match="not found"):
        base.remove(document.id)


def test_the_same_content_is_kept_once(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    first = add(base, write(tmp_path, "a.txt", "The same words."))
    again = add(base, write(tmp_path, "b.txt", "The same words."))
    assert again.details["result"] == {**first.details["result"], "duplicate": True}
    assert len(base.documents()) == len(list((tmp_path / "documents").iterdir())) == 1


def test_the_same_content_read_by_several_tasks_at_once_is_kept_once(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    text = " ".join(f"Sentence {number} of the same words." for number in range(300))
    admitted = [base.admit(write(tmp_path, f"{number}.txt", text), {}) for number in range(6)]
    tasks = [base.tasks.submit("add", item.details) for item in admitted]
    ended = [base.tasks.wait(task.id) for task in tasks]
    assert {task.status for task in ended} == {"completed"}
    assert len(base.documents()) == len(list((tmp_path / "documents").iterdir())) == 1


def test_a_task_that_was_done_but_for_saying_so_is_done(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    done = add(base, write(tmp_path, "a.txt", "some words"))
    details = {key: value for key, value in done.details.items() if key != "result"}
    again = base.tasks.wait(base.tasks.submit("add", details).id)
    assert again.details["result"] == done.details["result"]
    assert (tmp_path / "documents" / str(details["document_id"])).is_dir()


def test_pictures_are_found_by_what_they_say_and_by_their_name(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    add(base, write(tmp_path, "harbour-plan.png", picture("Lighthouse keeper")))
    for query in ("lighthouse", "harbour plan"):
        (hit,) = base.search(query, top_k=3)
        assert hit.document.metadata["method"] == "image_analysis"


def test_filters_by_format_date_and_what_was_said(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    add(base, write(tmp_path, "a.txt", "tide tables of the bay"), tags=["sea", "time"], author="Ada")
    add(base, write(tmp_path, "b.md", "# Tide\n\ntide of news"), author="Bob")
    today = time.strftime("%Y-%m-%d", time.gmtime())

    def names(filters: dict[str, object]) -> set[str]:
        return {hit.document.metadata["filename"] for hit in base.search("tide", top_k=9, filters=filters)}

    assert names({"format": "txt"}) == {"a.txt"}
    assert names({"format": ["txt", "MD"]}) == {"a.txt", "b.md"}
    assert names({"author": "Bob"}) == {"b.md"}
    assert names({"tags": "sea"}) == {"a.txt"}
    assert names({"date_range": {"start": today, "end": today}}) == {"a.txt", "b.md"}
    assert names({"date_range": {"end": "2020-01-01"}}) == set()
    assert base.search("tide", top_k=9, min_relevance=1.0) == []


def test_files_are_refused_with_their_reason(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    base = opened(allowed_roots=[tmp_path / "in"], max_file_size_mb=1)
    outside = write(tmp_path, "secret.txt", "tulip")
    (tmp_path / "in" / "link.txt").symlink_to(outside)
    write(tmp_path / "in", "big.txt", "x" * 1_500_000)
    os.mkfifo(tmp_path / "in" / "pipe.txt")
    for path, code in {
        outside: "path_not_allowed",
        tmp_path / "in" / "link.txt": "path_not_allowed",
        tmp_path / "in" / ".." / "secret.txt": "path_not_allowed",
        Path(f"{tmp_path}/input.txt"): "path_not_allowed",
        tmp_path / "in" / "none.txt": "file_not_found",
        tmp_path / "in" / "pipe.txt": "file_not_found",
        tmp_path / "in" / "big.txt": "file_too_large",
        tmp_path / "in" / "a.xyz": "unsupported_format",
    }.items():
        with pytest.raises(BedstoneError) as caught:
            base.admit(path, {})
        assert caught.value.code == code, path
        assert "tulip" not in caught.value.message
    assert list((tmp_path / "documents").iterdir()) == []


def test_a_damaged_file_costs_its_task_only(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    broken = add(base, write(tmp_path, "a.pdf", b"%PDF-1.4 nothing"))
    assert (broken.status, broken.details["error"]) == ("failed", "extraction_failed")
    blank = add(base, write(tmp_path, "b.txt", "  \n"))
    assert blank.details["message"] == "No text was found in the file."
    assert base.documents() == []
    assert list((tmp_path / "documents").iterdir()) == []
    assert add(base, write(tmp_path, "c.txt", "fine")).status == "completed"


def test_everything_can_be_removed(opened: Opened, tmp_path: Path) -> None:
    base = opened(HashingEmbedder)
    for number in range(3):
        add(base, write(tmp_path, f"{number}.txt", f"words number {number}"))
    assert base.clear()[:2] == (3, 3)
    with pytest.raises(BedstoneError, match="Knowledge base is empty"):
        base.search("words", top_k=1)
    assert list((tmp_path / "documents").iterdir()) == []


def test_health_is_probed(opened: Opened, tmp_path: Path) -> None:
    base = opened(HashingEmbedder)
    assert base.issues() == {}
    (tmp_path / "documents").rmdir()
    assert list(base.issues()) == ["storage"]


CRASHING = """
import sys, time
from pathlib import Path
from bedstone.services.knowledge.service import *
from bedstone.search.embedders.minilm import MiniLm
root = Path(sys.argv[1])
base = KnowledgeBase(KnowledgeOptions(root / "documents", root / "index"), MiniLm)
base.open()
for path in sorted((root / "files").iterdir()):
    task = base.add(path, {})
    print(path.name, flush=True)
for task in base.store.tasks({"queued", "running"}):
    base.tasks.wait(task.id)
print("done", flush=True)
base.close()
"""


def test_a_killed_process_loses_nothing_it_acknowledged(opened: Opened, tmp_path: Path) -> None:
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
    for task in base.store.tasks({"queued", "running"}):
        assert base.tasks.wait(task.id).status == "completed"
    documents = base.documents()
    assert acknowledged - {"done"} <= {document.metadata["filename"] for document in documents}
    assert len(documents) == len({document.digest for document in documents})
    for document in documents:
        assert document.metadata["status"] == "completed"
        chunks = base.store.chunks_of(document.id)
        assert "about bay" in chunks[-1].chunk.plain
        subject = document.metadata["filename"][0]
        assert base.search(f"subject {subject} bay {subject}", top_k=1)[0].document.id == document.id
    assert base.store.unembedded() == []
    known = {document.id for document in documents}
    assert {path.name for path in (tmp_path / "documents").iterdir()} == known


def test_contexts_hold_documents_that_are_kept_once(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    for name in ("sea", "news"):
        base.contexts.create(name, f"about {name}")
    first = base.add(write(tmp_path, "a.txt", "tide tables of the bay"), {}, contexts=["sea"])
    base.tasks.wait(first.id)
    again = base.tasks.wait(base.add(tmp_path / "a.txt", {}, contexts=["news"]).id)
    assert again.details["result"]["duplicate"] is True
    add(base, write(tmp_path, "b.txt", "tide of news"))
    assert [(item.name, item.documents) for item in base.contexts.all()] == [("default", 1), ("news", 1), ("sea", 1)]

    def found(context: str | None) -> set[str]:
        return {hit.document.metadata["filename"] for hit in base.search("tide", top_k=9, context=context)}

    assert found("sea") == found("news") == {"a.txt"}
    assert found("default") == {"b.txt"}
    assert found(None) == {"a.txt", "b.txt"}
    assert base.contexts.delete("sea") == 1
    assert found("default") == {"b.txt"}
    assert base.contexts.delete("news") == 1
    assert found("default") == {"a.txt", "b.txt"}
    for name, message in (("sea", "not found"), ("default", "cannot be deleted")):
        with pytest.raises(BedstoneError, match=message):
            base.contexts.delete(name)
    with pytest.raises(BedstoneError, match="not found"):
        base.admit(tmp_path / "a.txt", {}, contexts=["sea"])
    for name in ("", "a b", "x" * 65, "default", "ä"):
        with pytest.raises(BedstoneError):
            base.contexts.create(name)


def test_a_folder_is_kept_in_step(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    keeper = FolderKeeper(base, folder)
    for name, text in {"a.txt": "tulips", "deep/b.md": "roses", "c.txt": "tulips", ".d.txt": "x", "e.xyz": "x"}.items():
        write(folder, name, text)
    write(folder, "broken.pdf", b"%PDF-1.4")

    def names() -> list[str]:
        return sorted(document.metadata["filename"] for document in base.documents())

    def told(report: FolderReport) -> dict[str, list[str]]:
        return {what: [Path(name).name for name in found] for what, found in vars(report).items() if found}

    assert told(keeper.update()) == {"added": ["a.txt", "c.txt", "b.md"], "failed": ["broken.pdf"]}
    assert names() in (["a.txt", "b.md"], ["b.md", "c.txt"])  # the same content is kept once
    assert not keeper.update()
    (folder / "a.txt").unlink()
    write(folder, "deep/b.md", "roses and lilies")
    assert told(keeper.update()) == {"changed": ["b.md"], "removed": ["a.txt"]}
    assert len(names()) == 2  # c.txt still stands for it
    assert base.search("lilies", top_k=1)
    (folder / "deep" / "b.md").rename(folder / "moved.md")
    (folder / "c.txt").unlink()
    again = FolderKeeper(base, folder)  # what is known survives a restart
    assert told(again.update()) == {"moved": ["moved.md"], "removed": ["c.txt"]}
    assert names() == ["moved.md"]
    manual = add(base, write(tmp_path, "mine.txt", "asters"))
    write(folder, "also.txt", "asters")
    assert told(again.update()) == {"added": ["also.txt"]}
    (folder / "also.txt").unlink()
    again.update()
    assert base.document(manual.details["result"]["document_id"])  # what somebody added stays


def test_a_whole_base_travels_in_one_file(opened: Opened, tmp_path: Path) -> None:
    base = opened(HashingEmbedder)
    base.contexts.create("sea", "ships")
    task = base.add(write(tmp_path, "a.txt", "tide tables"), {"author": "Ada"}, contexts=["sea"])
    base.tasks.wait(task.id)
    add(base, write(tmp_path, "harbour.png", picture("Lighthouse")))
    assert export_base(base, tmp_path / "all.zip") == 2
    other = opened(HashingEmbedder, documents_path=tmp_path / "documents2", index_path=tmp_path / "index2")
    for task in import_base(other, tmp_path / "all.zip"):
        assert other.tasks.wait(task.id).status == "completed"
    assert {item.id for item in other.documents()} == {item.id for item in base.documents()}
    assert other.store.counts() == base.store.counts()
    assert [hit.document.metadata["filename"] for hit in other.search("tide", top_k=5, context="sea")] == ["a.txt"]
    assert other.pages(base.search("lighthouse", top_k=1)[0].document.id)[0].markdown.startswith("Lighthouse")
    assert list(import_base(other, tmp_path / "all.zip")) == []
    write(tmp_path, "wrong.zip", "no archive")
    with pytest.raises(BedstoneError, match="not an export"):
        list(import_base(other, tmp_path / "wrong.zip"))


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
    assert first.search("roses", top_k=1)[0].document.metadata["filename"] == "b.txt"
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
root = Path("{root}")
base = KnowledgeBase(KnowledgeOptions(root / "documents", root / "index"), HashingEmbedder)
base.open()
print(base.tasks.is_owner, [hit.document.metadata["filename"] for hit in base.search("tulips", top_k=5)], flush=True)
for line in sys.stdin:
    task = base.add(root / line.strip(), {{}})
    print(base.tasks.wait(task.id).status, flush=True)
hits = [base.search(query, top_k=1)[0] for query in ("tulips", "roses", "asters")]
print(base.tasks.is_owner, [hit.document.metadata["filename"] for hit in hits])
base.close()
"""


def test_what_was_cancelled_stays_cancelled_when_the_process_ends(opened: Opened, tmp_path: Path) -> None:
    base = opened(max_concurrent_tasks=1)
    text = "\n\n".join(f"Sentence {number} about the bay." for number in range(20_000))
    tasks = [base.add(write(tmp_path, f"{number}.txt", f"{number} {text}"), {}) for number in range(3)]
    while base.tasks.progress(tasks[0].id) is None:
        time.sleep(0.005)
    base.clear()
    base.close()
    again = opened()
    assert again.store.tasks({"queued", "running", "completed"}) == []
    assert again.documents() == []
    assert [path for path in (tmp_path / "documents").iterdir() if path.is_dir()] == []


def test_vectors_that_are_lacking_are_made_later(opened: Opened, tmp_path: Path) -> None:
    """Added while there was no model, or made by another one."""
    base = opened()
    add(base, write(tmp_path, "a.txt", "tulips"))
    base.close()

    def vectors(base: KnowledgeBase) -> int:
        deadline = time.monotonic() + 20
        while base.store.unembedded() and time.monotonic() < deadline:
            time.sleep(0.05)
        return base.store.counts().passages

    second = opened(HashingEmbedder)
    assert vectors(second) == 1
    second.close()

    class Other(HashingEmbedder):
        fingerprint = "another"

    third = opened(Other)
    assert third.search("tulips", top_k=1)
    assert vectors(third) == 1
    assert third.store.setting("embedding_fingerprint") == "another"


def test_a_model_that_cannot_be_had_costs_meaning_and_nothing_else(opened: Opened, tmp_path: Path) -> None:
    def unavailable() -> Embedder:
        raise Unavailable("The service does not answer.")

    base = opened(unavailable)
    assert add(base, write(tmp_path, "a.txt", "tulips")).status == "completed"
    assert base.search("tulips", top_k=1)
    assert base.issues() == {"embedding_model": "The embedding model does not answer: The service does not answer."}


def test_a_store_that_fails_for_a_moment_costs_no_task(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = opened()
    monkeypatch.setattr("bedstone.tasks.runner.RETRY_SECONDS", 0.05)
    real, failures = base.store.put_task, 3

    def failing(task: TaskRecord) -> None:
        nonlocal failures
        if task.status == "completed" and failures:
            failures -= 1
            raise sqlite3.OperationalError("disk is full")
        real(task)

    monkeypatch.setattr(base.store, "put_task", failing)
    tasks = [base.add(write(tmp_path, f"{number}.txt", f"words {number}"), {}) for number in range(4)]
    assert [base.tasks.wait(task.id).status for task in tasks] == ["completed"] * 4


def test_the_same_content_waits_for_whoever_reads_it_first(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    first = base.admit(write(tmp_path, "a.txt", "tulips"), {})
    document = Document(
        first.details["document_id"], "a.txt", first.details["digest"], {"status": "processing", "filename": "a.txt"}
    )
    base.store.put([(document, [])])  # somebody is at it
    second = base.add(tmp_path / "a.txt", {})
    time.sleep(0.6)
    waiting = base.store.task(second.id)
    assert waiting
    assert waiting.finished is None
    base.store.delete([document.id])  # and gives up
    ended = base.tasks.wait(second.id)
    assert (ended.status, ended.details["result"].get("duplicate")) == ("completed", None)


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
    assert caught.value.code == "path_not_allowed"


def test_odd_names_and_texts(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    assert add(base, write(tmp_path, "bmw.txt", "BMW sales rose")).status == "completed"
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("coffee")
    assert add(base, tmp_path / os.fsdecode(b"caf\xe9.txt")).details["result"]["filename"] == "caf\ufffd.txt"
    for path in ("a\0b.txt", "x" * 300 + ".txt", "~nobody-at-all/a.txt"):
        with pytest.raises(BedstoneError) as caught:
            base.add(Path(path), {})
        assert caught.value.code == "file_not_found"


def test_what_failed_can_be_removed(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    failed = add(base, write(tmp_path, "a.pdf", b"%PDF-1.4 nothing"))
    other = add(base, write(tmp_path, "b.pdf", b"%PDF-1.4 else"))
    assert base.remove(str(failed.details["document_id"])) == 0
    assert [task.id for task in base.failures()] == [other.id]
    base.clear()
    assert base.failures() == []


def test_a_folder_that_is_not_there_removes_nothing(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    write(tmp_path / "one", "a.txt", "tulips")
    write(tmp_path / "two", "b.txt", "tulips")
    write(tmp_path / "one", "c.txt", "roses")
    one, two = FolderKeeper(base, tmp_path / "one"), FolderKeeper(base, tmp_path / "two")
    one.update()
    two.update()
    (tmp_path / "one").rename(tmp_path / "away")
    with pytest.raises(BedstoneError, match="cannot be looked into"):
        one.update()
    assert len(base.documents()) == 2
    (tmp_path / "away").rename(tmp_path / "one")
    (tmp_path / "one" / "a.txt").unlink()
    one.update()  # the other folder still stands for its content
    assert len(base.documents()) == 2
    (tmp_path / "two" / "b.txt").unlink()
    two.update()
    assert [document.metadata["filename"] for document in base.documents()] == ["c.txt"]
    write(tmp_path / "one", "c.txt", b"\x00\x01" * 0)
    assert one.update().failed
    (tmp_path / "one" / "c.txt").unlink()
    one.update()
    assert base.documents() == []
    (tmp_path / "one" / os.fsdecode(b"caf\xe9.txt")).write_text("coffee")
    assert len(one.update().added) == 1
    assert not FolderKeeper(base, tmp_path / "one").update()


def test_a_read_only_base_is_searched_and_left_alone(opened: Opened, tmp_path: Path) -> None:
    base = opened()
    add(base, write(tmp_path, "a.txt", "tulips"))
    base.close()
    frozen = opened(read_only=True)
    assert frozen.search("tulips", top_k=1)
    assert frozen.issues() == {}
    assert not frozen.tasks.is_owner
