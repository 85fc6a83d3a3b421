"""The knowledge service on a store in memory: its records, lists, collections, removal and retry."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedstone.errors import BedstoneError, UnknownTask
from bedstone.records import Document, Task, TaskError
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.services.knowledge.errors import CollectionNotFound, DocumentNotFound
from bedstone.services.knowledge.listing import DocumentPage, ListQuery
from bedstone.services.knowledge.options import KnowledgeOptions
from bedstone.services.knowledge.records import AddedFile, AddFile, FileDocument, OcrSummary, added_file
from bedstone.services.knowledge.searching import KnowledgeQuery
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.settings import Settings
from bedstone.settings.sections import StorageSettings
from bedstone.store.engines.memory import MemoryStore
from bedstone.store.engines.sqlite import SqliteStore
from bedstone.toolsets.knowledge.spec import has_work

# What version 0.x wrote.
ATTRIBUTES = {
    "filename": "scan.pdf",
    "source": "/files/scan.pdf",
    "format": "pdf",
    "size": "938",
    "added": "1794974443.4876425",
    "status": "completed",
    "method": "ocr",
    "pages": "2",
    "user": '{"author": "Ada", "tags": ["sea", 1], "größe": null}',
    "facts": '{"title": "Wale"}',
    "warnings": '["Page 1 is blank."]',
    "ocr_pages": "1",
    "ocr_confidence": "0.913",
    "contexts": '["news", "sea"]',
    "seconds": "0.125",
}
PAYLOAD = {
    "document_id": "doc",
    "filename": "scan.pdf",
    "source": "/files/scan.pdf",
    "format": "pdf",
    "size": 938,
    "digest": "5964",
    "metadata": {"author": "Ada"},
    "force_ocr": False,
    "contexts": ["sea"],
}


def test_documents_of_earlier_versions_are_read_and_written_as_before() -> None:
    stored = Document("doc", "Wale", "5964", ATTRIBUTES)
    document = FileDocument.from_stored(stored)
    assert document == FileDocument(
        "doc",
        "Wale",
        "5964",
        filename="scan.pdf",
        source="/files/scan.pdf",
        format="pdf",
        size_bytes=938,
        added_at=1794974443.4876425,
        status="completed",
        method="ocr",
        page_count=2,
        collections=("news", "sea"),
        metadata={"author": "Ada", "tags": ["sea", 1], "größe": None},
        properties={"title": "Wale"},
        warnings=("Page 1 is blank.",),
        ocr=OcrSummary(1, 0.913),
        seconds=0.125,
    )
    assert document.to_stored() == stored
    assert list(document.to_stored().attributes.items()) == list(ATTRIBUTES.items())
    oldest = {key: value for key, value in ATTRIBUTES.items() if key not in ("source", "contexts", "seconds")}
    assert FileDocument.from_stored(Document("doc", "", "", {**oldest, "pages": ""})).collections == ("default",)


def test_payloads_and_results_of_earlier_versions_are_read_and_written_as_before() -> None:
    file = AddFile.from_payload(PAYLOAD)
    assert file == AddFile(
        "doc", "scan.pdf", "/files/scan.pdf", "pdf", 938, "5964", {"author": "Ada"}, collections=("sea",)
    )
    assert json.dumps(file.to_payload()) == json.dumps(PAYLOAD)
    result = {"document_id": "d", "filename": "f", "chunks_created": 3, "processing_method": "ocr"}
    assert AddedFile.from_result(result).to_result() == result
    assert AddedFile.from_result({**result, "duplicate": True}) == AddedFile("d", "f", 3, "ocr", is_duplicate=True)


json_values = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.lists(st.text(), max_size=2)
metadata = st.dictionaries(st.text(), json_values, max_size=3)
names = st.lists(st.from_regex(r"[A-Za-z0-9_-]{1,9}", fullmatch=True), min_size=1, max_size=3).map(tuple)
documents = st.builds(
    FileDocument,
    st.text(),
    st.text(),
    st.text(),
    filename=st.text(),
    source=st.text(),
    format=st.sampled_from(["pdf", "txt", "png"]),
    size_bytes=st.integers(0, 2**40),
    added_at=st.floats(0, 4e9),
    status=st.sampled_from(["pending", "processing", "completed", "failed"]),
    method=st.sampled_from([None, "text_extraction", "ocr", "image_analysis"]),
    page_count=st.none() | st.integers(1, 10**6),
    collections=names,
    metadata=metadata,
    properties=st.dictionaries(st.text(), st.text(), max_size=2),
    warnings=st.lists(st.text(), max_size=2).map(tuple),
    ocr=st.none() | st.builds(OcrSummary, st.integers(1, 99), st.integers(0, 1000).map(lambda n: n / 1000)),
    seconds=st.none() | st.integers(0, 10**7).map(lambda n: n / 1000),
)
files = st.builds(
    AddFile, st.text(), st.text(), st.text(), st.text(), st.integers(0), st.text(), metadata, st.booleans(), names
)


@given(documents, files)
def test_documents_and_payloads_survive_a_round_trip(document: FileDocument, file: AddFile) -> None:
    stored = document.to_stored()
    assert FileDocument.from_stored(stored) == document
    assert all(isinstance(value, str) for value in stored.attributes.values())
    assert AddFile.from_payload(json.loads(json.dumps(file.to_payload()))) == file


Write = Callable[[str, str], Path]


@pytest.fixture
def base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    base = make_base(MemoryStore(), tmp_path)
    base.open()
    yield base
    base.close()


def make_base(store: MemoryStore, folder: Path, **options: Any) -> KnowledgeBase:
    (folder / "index").mkdir(exist_ok=True)
    return KnowledgeBase(store, KnowledgeOptions(folder / "documents", folder / "index", **options), HashingEmbedder)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def shown(page: DocumentPage) -> list[tuple[str, str]]:
    return [(item.filename, item.status) for item in page.documents]


def test_a_list_has_what_is_stored_in_process_and_failed(tmp_path: Path, write: Write) -> None:
    store = MemoryStore()
    base = make_base(store, tmp_path)
    waiting = [base.add(write(f"{name}.txt", name)) for name in ("b", "a")]
    failed = Task("f", "add", "failed", 3.0, {**PAYLOAD, "contexts": ["default"]}, error=TaskError("ocr_failed", "No."))
    store.put_task(failed)
    store.put([(Document("doc1", "x", "1", {**ATTRIBUTES, "filename": "C.pdf", "added": "2.0", "size": "1"}), [])])
    by_name = ListQuery("filename", descending=False)
    everything = [("a.txt", "pending"), ("b.txt", "pending"), ("C.pdf", "completed"), ("scan.pdf", "failed")]
    assert shown(base.list_documents(by_name)) == everything
    pages = [base.list_documents(ListQuery("filename", False, offset, 1)) for offset in range(4)]
    assert [line for page in pages for line in shown(page)] == everything
    assert {page.total for page in pages} == {4}
    newest = base.list_documents(ListQuery()).documents
    assert [item.filename for item in newest] == ["a.txt", "b.txt", "scan.pdf", "C.pdf"]
    assert base.list_documents(ListQuery("size")).documents[0].filename == "scan.pdf"
    assert shown(base.list_documents(ListQuery(values={"status": "pending", "format": "txt"}))) == [
        ("a.txt", "pending"),
        ("b.txt", "pending"),
    ]
    assert shown(base.list_documents(ListQuery(filename="SCAN"))) == [("scan.pdf", "failed")]
    assert base.overview().values == {
        "format": {"txt": 2, "pdf": 2},
        "status": {"pending": 2, "completed": 1, "failed": 1},
        "method": {"ocr": 1},
    }
    base.open()
    assert [base.wait(task.id).status for task in waiting] == ["completed"] * 2
    assert shown(base.list_documents(by_name))[0] == ("a.txt", "completed")
    base.close()


def test_every_attempt_with_the_same_content_is_listed_once(tmp_path: Path) -> None:
    store = MemoryStore()
    base = make_base(store, tmp_path)
    for number in range(3):
        payload = {**PAYLOAD, "document_id": f"doc{number}"}
        store.put_task(Task(str(number), "add", "failed", number, payload, error=TaskError("ocr_failed", "No.")))
    assert [item.id for item in base.list_documents(ListQuery()).documents] == ["doc2"]
    assert base.remove("doc1") == 0
    assert base.list_documents(ListQuery()).total == 0
    with pytest.raises(DocumentNotFound):
        base.remove("doc1")
    base.close()


def test_a_file_that_failed_can_be_added_again(base: KnowledgeBase, write: Write) -> None:
    base.collections.create("sea")
    path = write("a.txt", " ")
    failed = base.wait(base.add(path, {"author": "Ada"}, collections=["sea"]).id)
    assert failed.error
    document_id = str(failed.payload["document_id"])
    write("a.txt", "tulips")
    again = base.wait(base.retry(document_id).id)
    (document,) = base.documents()
    assert document.id == added_file(again).document_id
    assert (document.metadata, document.collections) == ({"author": "Ada"}, ("sea",))
    assert shown(base.list_documents(ListQuery())) == [("a.txt", "completed")]
    for unknown in (document_id, document.id, "none"):
        with pytest.raises(DocumentNotFound):
            base.retry(unknown)


def test_lists_and_searches_of_a_collection(base: KnowledgeBase, write: Write) -> None:
    base.collections.create("sea", "ships")
    for name, collections in (("a", ["sea"]), ("b", []), ("c", ["default", "sea"])):
        base.wait(base.add(write(f"{name}.txt", f"tide {name}"), {"letter": name}, collections=collections).id)
    assert [(item.name, item.documents) for item in base.collections.all()] == [("default", 2), ("sea", 2)]
    for collection, expected in (("sea", {"a.txt", "c.txt"}), ("default", {"b.txt", "c.txt"})):
        page = base.list_documents(ListQuery(collection=collection))
        assert {item.filename for item in page.documents} == expected
        assert page.total == 2
        hits = base.search(KnowledgeQuery("tide", collection=collection))
        assert {hit.document.filename for hit in hits} == expected
    found = base.search(KnowledgeQuery("tide", filters={"letter": ["a", "b"]}, collection="sea"))
    assert [hit.document.filename for hit in found] == ["a.txt"]
    assert base.search(KnowledgeQuery("tide", filters={"letter": "x"})) == []
    for call in (base.list_documents, lambda query: base.search(KnowledgeQuery("tide", collection=query.collection))):
        with pytest.raises(CollectionNotFound):
            call(ListQuery(collection="none"))


def test_status_and_metadata(base: KnowledgeBase, write: Write) -> None:
    assert base.status().updated_at is None
    with pytest.raises(BedstoneError, match="Knowledge base is empty"):
        base.search(KnowledgeQuery("tide"))
    started = time.time()
    task = base.wait(base.add(write("a.txt", "tide tables"), {"author": "Ada"}).id)
    status = base.status()
    assert (status.counts.documents, status.size_bytes, status.problems) == (1, len("tide tables"), {})
    assert status.updated_at
    assert started <= status.updated_at <= time.time()
    document_id = added_file(task).document_id
    base.set_metadata(document_id, {"author": "Bob"})
    assert base.get_document(document_id).metadata == {"author": "Bob"}
    assert base.search(KnowledgeQuery("tide", filters={"author": "Bob"}))
    window = base.read_chunk(base.chunks(document_id)[0].head.id, neighbours=2)
    assert (window.total, len(window.chunks), window.document.id) == (1, 1, document_id)
    assert base.clear().documents == 1
    assert base.status().counts.documents == 0
    with pytest.raises(UnknownTask):
        base.task("none")


def test_storage_that_cannot_be_written_is_a_problem(base: KnowledgeBase, tmp_path: Path) -> None:
    assert base.problems() == []
    (tmp_path / "documents").rename(tmp_path / "moved")
    assert [problem.partition(":")[0] for problem in base.problems()] == ["Storage directory not accessible"]


def test_a_folder_of_an_earlier_version_opens_and_its_tasks_run(tmp_path: Path) -> None:
    """Rows as version 0.x wrote them: a queued task, a cancelled one that ran, and a document."""
    store = SqliteStore(tmp_path / "index" / "knowledge.sqlite")
    store.put([(Document("old", "Wale", "5964", {**ATTRIBUTES, "contexts": '["default"]'}), [])])
    store.close()
    for name in ("queued", "cancelled"):
        (tmp_path / "documents" / name).mkdir(parents=True)
        (tmp_path / "documents" / name / "content.txt").write_text(f"tulips {name}")
    with closing(sqlite3.connect(tmp_path / "index" / "knowledge.sqlite")) as db:
        db.execute("DROP TABLE cancel_request")
        for name, status in (("queued", "queued"), ("cancelled", "running")):
            payload = {**PAYLOAD, "document_id": name, "filename": f"{name}.txt", "format": "txt", "digest": name}
            details = json.dumps({**payload, "contexts": ["default"]})
            db.execute("INSERT INTO task VALUES (?, 'add', ?, 1.0, ?, NULL, NULL, 0)", (name, status, details))
        db.execute("INSERT INTO setting VALUES ('cancel:cancelled', '')")
        db.execute("PRAGMA user_version = 2")
        db.commit()
    options = KnowledgeOptions(tmp_path / "documents", tmp_path / "index")
    base = KnowledgeBase(SqliteStore(tmp_path / "index" / "knowledge.sqlite"), options, HashingEmbedder)
    base.open()
    try:
        assert [base.wait(name).status for name in ("queued", "cancelled")] == ["completed", "cancelled"]
        assert {item.id for item in base.documents()} == {"old", "queued"}
        assert [hit.document.id for hit in base.search(KnowledgeQuery("tulips"))] == ["queued"]
        assert not (tmp_path / "documents" / "cancelled").exists()
    finally:
        base.close()


def test_a_server_opens_a_store_that_may_have_work_to_resume(tmp_path: Path) -> None:
    empty = Settings.model_validate({"data_dir": tmp_path})
    assert not has_work(empty)
    assert has_work(empty.model_copy(update={"storage": StorageSettings(database="sqlite:/elsewhere.sqlite")}))
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "knowledge.sqlite").touch()
    assert has_work(empty)
