"""Files that wait or could not be read, remembered until the store changes."""

from pathlib import Path

import pytest

from bedstone.records import Task, TaskError
from bedstone.services.knowledge.records import AddFile
from bedstone.services.knowledge.unfinished import UnfinishedDocuments
from bedstone.store.engine import Store
from bedstone.store.engines.memory import MemoryStore
from bedstone.store.engines.sqlite import SqliteStore


def failed_task(number: int) -> Task:
    document_id = f"{number:08d}-0000-4000-8000-000000000000"
    file = AddFile(document_id, f"file-{number}.pdf", f"/srv/file-{number}.pdf", "pdf", 1000, f"digest {number}")
    problem = TaskError("extraction_failed", "Not a PDF, or the file is corrupt.")
    return Task(f"task-{number}", "add", "failed", 1.0, file.to_payload(), 1.0, 2.0, error=problem)


@pytest.mark.parametrize("engine", ["memory", "sqlite"])
def test_unfinished_files_are_read_once_and_again_after_any_change(engine: str, tmp_path: Path) -> None:
    store: Store = MemoryStore() if engine == "memory" else SqliteStore(tmp_path / "store.sqlite")
    unfinished = UnfinishedDocuments(store)
    assert list(unfinished.current()) == []
    store.put_task(failed_task(1))
    first = unfinished.current()
    assert [item.filename for item in first] == ["file-1.pdf"]
    assert unfinished.current() is first
    store.put_task(failed_task(2))
    assert {item.filename for item in unfinished.current()} == {"file-1.pdf", "file-2.pdf"}
    store.close()
