"""Adding a changed file: the earlier version answers until the new one is complete, and never are both gone."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bedstone.records import Task
from bedstone.services.knowledge.options import KnowledgeOptions
from bedstone.services.knowledge.records import AddedFile, FileDocument, added_file
from bedstone.services.knowledge.searching import KnowledgeQuery
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.store.engines.sqlite import SqliteStore
from services.test_stopping import SlowService

WAIT_SECONDS = 30


@pytest.fixture
def model() -> SlowService:
    model = SlowService()
    model.may_answer.set()
    return model


@pytest.fixture
def base(model: SlowService, tmp_path: Path) -> Iterator[KnowledgeBase]:
    (tmp_path / "index").mkdir()
    store = SqliteStore(tmp_path / "index" / "knowledge.sqlite", durable=True)
    base = KnowledgeBase(store, KnowledgeOptions(tmp_path / "documents", tmp_path / "index"), lambda: model)
    base.open()
    yield base
    model.may_answer.set()
    base.close()


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def add(base: KnowledgeBase, path: Path, **options: object) -> AddedFile:
    task = base.wait(base.add(path, **options).id)  # type: ignore[arg-type]
    assert task.status == "completed", task.error
    return added_file(task)


def found(base: KnowledgeBase, text: str) -> list[str]:
    """The texts of the chunks that have a word of the query."""
    hits = base.search(KnowledgeQuery(text, 9, mode="keyword"))
    return [hit.chunk.text for hit in hits]


def start_new_version(base: KnowledgeBase, model: SlowService, path: Path) -> Task:
    """Change a file and add it; return when its chunks are stored, and its vectors are missing."""
    model.may_answer.clear()
    model.was_called.clear()
    path.write_text("Second version: walrus.")
    task = base.add(path)
    assert model.was_called.wait(WAIT_SECONDS)
    return task


def test_the_earlier_version_answers_until_the_new_one_is_complete(
    base: KnowledgeBase, model: SlowService, tmp_path: Path
) -> None:
    path = write(tmp_path, "a.txt", "First version: whale.")
    first = add(base, path, metadata={"author": "Ada"})
    task = start_new_version(base, model, path)
    assert sorted(item.status for item in base.documents()) == ["completed", "processing"]
    assert found(base, "whale walrus version") == ["First version: whale."]
    model.may_answer.set()
    second = added_file(base.wait(task.id))
    assert second.replaced_id == first.document_id
    assert found(base, "whale walrus version") == ["Second version: walrus."]
    (document,) = base.documents()
    assert (document.id, document.metadata) == (second.document_id, {"author": "Ada"})
    assert [item.name for item in (tmp_path / "documents").glob("[!.]*")] == [second.document_id]


def test_a_cancelled_version_leaves_the_earlier_one(base: KnowledgeBase, model: SlowService, tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "First version: whale.")
    first = add(base, path)
    task = start_new_version(base, model, path)
    assert base.cancel(task.id)
    assert [item.id for item in base.documents()] == [first.document_id]
    assert found(base, "whale walrus version") == ["First version: whale."]
    model.may_answer.set()
    assert add(base, path).replaced_id == first.document_id


def test_the_last_of_several_versions_wins_in_whatever_order_they_are_read(
    base: KnowledgeBase, model: SlowService, tmp_path: Path
) -> None:
    path = write(tmp_path, "a.txt", "Version 0")
    add(base, path)
    model.may_answer.clear()
    tasks = []
    for number in range(1, 6):
        path.write_text(f"Version {number}")
        tasks.append(base.add(path))
    model.may_answer.set()
    assert {base.wait(task.id).status for task in tasks} == {"completed"}
    assert found(base, "version") == ["Version 5"]
    (document,) = base.documents()
    assert [item.name for item in (tmp_path / "documents").glob("[!.]*")] == [document.id]


def test_a_change_that_was_undone_before_it_was_read_is_dropped(
    base: KnowledgeBase, model: SlowService, tmp_path: Path
) -> None:
    path = write(tmp_path, "a.txt", "First version: whale.")
    first = add(base, path)
    task = start_new_version(base, model, path)
    path.write_text("First version: whale.")
    assert add(base, path).is_duplicate
    model.may_answer.set()
    undone = added_file(base.wait(task.id))
    assert (undone.is_superseded, undone.document_id) == (True, first.document_id)
    assert [item.id for item in base.documents()] == [first.document_id]
    assert [item.name for item in (tmp_path / "documents").glob("[!.]*")] == [first.document_id]


def test_a_clock_that_was_set_back_does_not_keep_a_new_version_out(
    base: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "a.txt", "First")
    add(base, path)
    path.write_text("Second")
    hour_ago = time.time() - 3600
    monkeypatch.setattr("bedstone.services.knowledge.intake.time.time", lambda: hour_ago)
    assert add(base, path).replaced_id
    assert found(base, "first second") == ["Second"]


def test_content_that_another_file_still_has_is_kept(base: KnowledgeBase, tmp_path: Path) -> None:
    first, copy = write(tmp_path, "one/readme.md", "Same words."), write(tmp_path, "two/readme.md", "Same words.")
    original = add(base, first)
    again = add(base, copy)
    assert (again.document_id, again.is_duplicate, again.updated) == (original.document_id, True, ("source",))
    first.write_text("Other words.")
    assert add(base, first).replaced_id is None
    assert sorted(found(base, "words")) == ["Other words.", "Same words."]
    assert {item.source for item in base.documents()} == {str(first), str(copy)}
    copy.write_text("Other words.")  # now its content is that of the other file
    last = add(base, copy)
    assert (last.is_duplicate, last.replaced_id) == (True, original.document_id)
    assert found(base, "words") == ["Other words."]


def test_uploads_never_replace_each_other(base: KnowledgeBase, tmp_path: Path) -> None:
    uploads = tmp_path / "uploads"
    for number in range(2):
        add(base, write(uploads, "notes.txt", f"Notes {number}"), is_upload=True)
    assert len(base.documents()) == 2
    assert {item.sources for item in base.documents()} == {("",)}


def test_a_synced_folder_replaces_in_the_same_way(base: KnowledgeBase, model: SlowService, tmp_path: Path) -> None:
    path, outside = write(tmp_path, "folder/a.txt", "First: whale."), write(tmp_path, "b.txt", "First: whale.")
    sync = base.folder_sync(tmp_path / "folder")
    assert [Path(name).name for name in sync.sync().added] == ["a.txt"]
    (synced,) = base.documents()
    add(base, outside)
    path.write_text("Second: walrus.")
    assert len(sync.sync().changed) == 1
    assert {item.source: _text(base, item) for item in base.documents()} == {
        str(path): "Second: walrus.",
        str(outside): "First: whale.",  # which the file outside still has
    }
    path.unlink()
    assert len(sync.sync().removed) == 1
    assert [item.id for item in base.documents()] == [synced.id]


def test_what_was_added_by_hand_outlives_a_synced_file_that_cannot_be_read(base: KnowledgeBase, tmp_path: Path) -> None:
    by_hand = add(base, write(tmp_path, "mine.txt", "Asters"))
    path = write(tmp_path, "folder/also.txt", "Asters")
    sync = base.folder_sync(tmp_path / "folder")
    assert len(sync.sync().added) == 1
    path.write_text("")
    assert list(sync.sync().failed) == [str(path)]
    path.unlink()
    sync.sync()
    assert [item.id for item in base.documents()] == [by_hand.document_id]


def _text(base: KnowledgeBase, document: FileDocument) -> str:
    return "".join(page.markdown for page in base.read_pages(document.id))


def test_a_rebuild_keeps_every_path_of_a_document(base: KnowledgeBase, tmp_path: Path) -> None:
    first = add(base, write(tmp_path, "a.txt", "The same whale."))
    add(base, write(tmp_path, "b.txt", "The same whale."))
    (tmp_path / "documents" / first.document_id / "text.json.z").unlink()
    tasks = base.rebuild().tasks
    assert [base.wait(task.id).status for task in tasks] == ["completed"]
    add(base, write(tmp_path, "a.txt", "A walrus now."))
    assert found(base, "whale") == ["The same whale."]  # which b.txt still has
    assert found(base, "walrus") == ["A walrus now."]


def test_a_collection_deleted_while_a_version_completes_undoes_nothing(
    base: KnowledgeBase, model: SlowService, tmp_path: Path
) -> None:
    base.collections.create("sea")
    path = write(tmp_path, "a.txt", "First version: whale.")
    add(base, path, collections=["sea"])
    task = start_new_version(base, model, path)
    with base.collections.changing:  # as `delete` holds it between reading and writing documents
        model.may_answer.set()
        deleting = threading.Thread(target=base.collections.delete, args=("sea",))
        deleting.start()
    deleting.join(WAIT_SECONDS)
    assert base.wait(task.id).status == "completed"
    (document,) = base.documents()
    assert (document.status, document.replaces, document.collections) == ("completed", (), ("default",))
    assert found(base, "walrus") == ["Second version: walrus."]


def test_a_synced_file_that_the_machine_cannot_store_is_tried_again(base: KnowledgeBase, tmp_path: Path) -> None:
    folder = write(tmp_path, "folder/a.txt", "A whale.").parent
    (tmp_path / "documents").rename(tmp_path / "aside")
    (tmp_path / "documents").write_text("in the way")
    report = base.folder_sync(folder).sync()
    assert report.delayed == [str(folder / "a.txt")]
    (tmp_path / "documents").unlink()
    (tmp_path / "aside").rename(tmp_path / "documents")
    assert base.folder_sync(folder).sync().added == [str(folder / "a.txt")]


def test_a_failed_rebuild_can_be_repeated_and_what_was_cleared_stays_away(base: KnowledgeBase, tmp_path: Path) -> None:
    added = add(base, write(tmp_path, "a.txt", "A whale."))
    copy = tmp_path / "documents" / added.document_id / "content.txt"
    base.remove(added.document_id)
    copy.parent.mkdir()
    copy.write_text(" ")  # nothing can be read from it
    (task,) = base.rebuild().tasks
    assert base.wait(task.id).status == "failed"
    (orphan,) = (tmp_path / "documents" / ".orphaned").glob("*/*/content.txt")
    orphan.write_text("A whale again.")
    (again,) = base.rebuild().tasks
    assert base.wait(again.id).status == "completed"
    assert found(base, "whale") == ["A whale again."]
    (tmp_path / "documents" / ".orphaned" / "day").mkdir(parents=True, exist_ok=True)
    base.clear()
    assert not (tmp_path / "documents" / ".orphaned").exists()
    assert base.rebuild().tasks == []
