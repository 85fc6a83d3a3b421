"""Files on their way into the knowledge base: what agents see of them, and how they get rid of them."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from bedstone.app import build_toolset
from bedstone.toolkit import Progress
from bedstone.toolsets.knowledge.toolset import KnowledgeToolset
from contracts.test_knowledge import NOBODY, call, finished, settings_for, write
from ingest.test_reader import docx, pdf
from support.doors import DOORS, Door
from support.processes import bedstone
from support.scans import A4, scanned_pdf

STOP_SECONDS = 5  # generous: the machine may be busy


def build(folder: Path, **more: Any) -> KnowledgeToolset:
    toolset = build_toolset("knowledge", settings_for(folder, **more))
    assert isinstance(toolset, KnowledgeToolset)
    return toolset


@pytest.fixture
async def one_at_a_time(tmp_path: Path) -> AsyncIterator[Door]:
    toolset = build(tmp_path, processing={"max_concurrent_tasks": 1})
    async with toolset.opened(), DOORS["plain"]([toolset]) as door:
        yield door


def scan(pages: int) -> bytes:
    return scanned_pdf(*[f"Tide table {number}\nof the harbour master" for number in range(1, pages + 1)])


def long_text(sentences: int) -> str:
    return " ".join(f"Sentence {number} tells about bay {number % 97} and its tides." for number in range(sentences))


async def until(door: Door, task_id: str, step: str) -> Any:
    """Wait until a task is at a step."""
    with anyio.fail_after(60):
        while not (state := await call(door, "task-status", task_id=task_id)).get("current_step", "").startswith(step):
            assert state["status"] in ("queued", "running"), state
            await anyio.sleep(0.02)
    return state


async def ids(door: Door) -> dict[str, str]:
    return {row["filename"]: row["id"] for row in (await call(door, "show"))["documents"]}


def copies(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "data" / "documents").glob("[!.]*"))


async def test_a_file_that_is_being_read_or_waits_can_be_removed(one_at_a_time: Door, tmp_path: Path) -> None:
    door = one_at_a_time
    first = (await call(door, "add", file_path=write(tmp_path, "scan.pdf", scan(20))))["task_id"]
    second = (await call(door, "add", file_path=write(tmp_path, "b.txt", "words")))["task_id"]
    await until(door, first, "Processing page")
    known = await ids(door)
    for filename, task_id in (("b.txt", second), ("scan.pdf", first)):
        question = await call(door, "remove", document_id=known[filename])
        assert (question["error"], question["document"]) == (
            "confirmation_required",
            {"id": known[filename], "filename": filename, "chunks": 0},
        )
        assert await call(door, "remove", document_id=known[filename], confirm=True) == {
            "success": True,
            "document_id": known[filename],
            "filename": filename,
            "chunks_removed": 0,
            "message": "Document removed successfully",
        }
        assert (await call(door, "task-status", task_id=task_id))["status"] == "cancelled"
    assert (await ids(door), copies(tmp_path)) == ({}, [])
    gone = await call(door, "remove", document_id=known["scan.pdf"], confirm=True)
    assert gone["error"] == "document_not_found"


async def test_clearing_ends_what_is_being_read(one_at_a_time: Door, tmp_path: Path) -> None:
    door = one_at_a_time
    await call(door, "add", **{"file_path": write(tmp_path, "a.txt", "some words"), "async": False})
    await call(door, "add", **{"file_path": write(tmp_path, "broken.pdf", b"%PDF-1.4"), "async": False})
    task = (await call(door, "add", file_path=write(tmp_path, "scan.pdf", scan(20))))["task_id"]
    await until(door, task, "Processing page")
    asked = await call(door, "clear")
    cleared = await call(door, "clear", confirm=True, confirmation_phrase="DELETE ALL")
    assert asked["current_document_count"] == cleared["documents_removed"] == 3
    assert (await call(door, "task-status", task_id=task))["status"] == "cancelled"
    assert (await ids(door), copies(tmp_path)) == ({}, [])


async def test_a_failed_file_says_why_everywhere_and_can_be_removed(one_at_a_time: Door, tmp_path: Path) -> None:
    door = one_at_a_time
    await call(door, "add", **{"file_path": write(tmp_path, "broken.pdf", b"%PDF-1.4"), "async": False})
    (row,) = (await call(door, "show"))["documents"]
    assert (row["processing_status"], row["error"]) == ("failed", "extraction_failed")
    assert row["message"].startswith("Not a PDF")
    answer = await call(door, "get", document_id=row["id"])
    assert (answer["error"], answer["document_id"], answer["processing_status"]) == (
        "extraction_failed",
        row["id"],
        "failed",
    )
    assert answer["message"] == f"broken.pdf could not be read: {row['message']}"
    listed = bedstone("knowledge", "list", "--data-dir", tmp_path / "data", COLUMNS="200").stdout
    assert "failed: Not a PDF" in listed
    assert (await call(door, "remove", document_id=row["id"], confirm=True))["filename"] == "broken.pdf"
    assert await ids(door) == {}
    assert (await call(door, "get", document_id=row["id"]))["error"] == "document_not_found"


async def test_a_file_on_its_way_is_told_by_get_and_search(one_at_a_time: Door, tmp_path: Path) -> None:
    door = one_at_a_time
    first = (await call(door, "add", file_path=write(tmp_path, "scan.pdf", scan(60))))["task_id"]
    await call(door, "add", file_path=write(tmp_path, "b.txt", "words"))
    await until(door, first, "Processing page")
    known = await ids(door)
    for filename, status in (("scan.pdf", "processing"), ("b.txt", "pending")):
        answer = await call(door, "get", document_id=known[filename])
        assert (answer["error"], answer["processing_status"]) == ("document_not_ready", status)
        assert filename in answer["message"]
    assert (await call(door, "get", document_id=NOBODY))["error"] == "document_not_found"
    empty = await call(door, "search", query="tides")
    assert (empty["error"], empty["document_count"], empty["pending_count"]) == ("empty_knowledge_base", 0, 2)
    assert "2 files are being read" in empty["message"]
    found = bedstone("knowledge", "search", "tides", "--data-dir", tmp_path / "data")
    assert "2 files are being read" in found.stderr
    await call(door, "clear", confirm=True, confirmation_phrase="DELETE ALL")
    await call(door, "add", **{"file_path": write(tmp_path, "broken.pdf", b"%PDF-1.4"), "async": False})
    empty = await call(door, "search", query="tides")
    assert (empty["error"], empty["document_count"], empty["failed_count"]) == ("empty_knowledge_base", 0, 1)


async def test_every_count_says_the_same(one_at_a_time: Door, tmp_path: Path) -> None:
    door = one_at_a_time
    await call(door, "add", **{"file_path": write(tmp_path, "a.txt", "some words"), "async": False})
    await call(door, "add", **{"file_path": write(tmp_path, "broken.pdf", b"%PDF-1.4"), "async": False})
    task = (await call(door, "add", file_path=write(tmp_path, "scan.pdf", scan(20))))["task_id"]
    await call(door, "add", file_path=write(tmp_path, "b.txt", "other words"))
    await until(door, task, "Processing page")
    shown = await call(door, "show")
    status = (await call(door, "status"))["knowledge_base"]
    assert shown["total_count"] == len(shown["documents"]) == status["document_count"] == 4
    assert (status["pending_count"], status["failed_count"], status["average_chunks_per_document"]) == (2, 1, 1.0)
    context = await call(door, "context-show", name="default")
    assert context["total_count"] == context["context"]["document_count"] == 4
    (listed,) = (await call(door, "context-list"))["contexts"]
    assert listed["document_count"] == 4
    await call(door, "clear", confirm=True, confirmation_phrase="DELETE ALL")
    await call(door, "add", **{"file_path": write(tmp_path, "a.txt", "some words"), "async": False})
    status = (await call(door, "status"))["knowledge_base"]
    assert status["document_count"] == 1
    assert not {"pending_count", "failed_count"} & status.keys()  # as the contract prints it


async def test_metadata_of_the_user_replaces_no_computed_field(one_at_a_time: Door, tmp_path: Path) -> None:
    door = one_at_a_time
    user = {
        "page_num": 99, "page_end": 100, "format": "vinyl", "date_added": "never", "heading": "none",
        "context": "somewhere", "ocr_used": True, "user": "Ada", "author": "Ada",
    }  # fmt: skip
    files: dict[str, bytes | str] = {"a.txt": "tide tables", "m.docx": docx(), "b.pdf": pdf("Tides: High and low.")}
    for name, data in files.items():
        path = write(tmp_path, name, data)
        added = await call(door, "add", **{"file_path": path, "metadata": user, "async": False})
        (hit,) = (
            await call(door, "search", query="tide tables bolt", top_k=1, filters={"format": Path(name).suffix[1:]})
        )["results"]
        whole = await call(door, "get", document_id=added["document_id"])
        part = await call(door, "get", chunk_id=hit["chunk_id"])
        for metadata in (hit["metadata"], whole["metadata"], part["metadata"]):
            assert (metadata["format"], metadata["context"], metadata["author"]) == (
                Path(name).suffix[1:],
                "default",
                "Ada",
            )
            assert metadata["date_added"].endswith("Z")
            assert metadata.get("page_num") in (None, 1)
            assert metadata.get("heading") != "none"
            assert "ocr_used" not in metadata
            assert metadata["user"] == {key: value for key, value in user.items() if key != "author"}
    hits = await call(door, "search", query="tide", filters={"page_num": 99})
    assert hits["total_results"] >= 1  # filters still see it


@pytest.mark.parametrize("kind", ["ocr", "chunking", "embeddings"])
async def test_cancelling_is_true_when_the_work_has_stopped(kind: str, tmp_path: Path) -> None:
    toolset = build(tmp_path)
    async with toolset.opened(), DOORS["plain"]([toolset]) as door:
        if kind == "ocr":
            path, step = write(tmp_path, "scan.pdf", scan(30)), "Processing page"
        elif kind == "chunking":
            path, step = write(tmp_path, "long.txt", long_text(200_000)), "Chunking"
        else:
            path, step = write(tmp_path, "long.txt", long_text(40_000)), "Generating embeddings"
        task = (await call(door, "add", file_path=path))["task_id"]
        await until(door, task, step)
        started = time.monotonic()
        answer = await door.send("tools/cancel", {"taskId": task})
        assert (answer["taskId"], answer["cancelled"]) == (task, True)
        assert (await call(door, "task-status", task_id=task))["status"] == "cancelled"
        assert time.monotonic() - started < STOP_SECONDS
        assert answer["status"] == "cancelled"
        assert (await ids(door), copies(tmp_path)) == ({}, [])
        assert (await call(door, "status"))["knowledge_base"]["total_chunks"] == 0
        again = await door.send("tools/cancel", {"taskId": task})
        assert (again["cancelled"], again["status"]) == (False, "cancelled")


async def test_a_task_that_is_cancelled_as_it_starts_stops_at_once(tmp_path: Path) -> None:
    """The process that reads may not exist yet."""
    toolset = build(tmp_path)
    path = write(tmp_path, "scan.pdf", scan(30))
    async with toolset.opened(), DOORS["plain"]([toolset]) as door:
        for delay in (0.0, 0.005, 0.01, 0.02, 0.04, 0.08):
            task = (await call(door, "add", file_path=path))["task_id"]
            await anyio.sleep(delay)
            started = time.monotonic()
            assert (await door.send("tools/cancel", {"taskId": task}))["cancelled"]
            assert time.monotonic() - started < STOP_SECONDS
            assert (await call(door, "task-status", task_id=task))["status"] == "cancelled"
        assert copies(tmp_path) == []


async def test_progress_rises_and_reaches_its_end_once(tmp_path: Path) -> None:
    heard: list[float] = []

    class Heard(Progress):
        async def __call__(self, done: float, total: float | None = None, message: str | None = None, /) -> None:
            heard.append(done)

        def later(self, token: str) -> Progress:
            return self

    toolset = build(tmp_path)
    async with toolset.opened(), DOORS["plain"]([toolset]) as door:
        path = write(tmp_path, "scan.pdf", scan(3))
        for number, in_background in enumerate((False, True)):
            heard.clear()
            arguments = {"file_path": write(tmp_path, f"{number}.txt", long_text(400 + number)), "async": in_background}
            reply = json.loads((await toolset.call("knowledge-add", arguments, Heard())).text)
            if in_background:
                await finished(door, reply["task_id"])
                with anyio.fail_after(10):
                    while heard[-1] < 1.0:  # noqa: ASYNC110
                        await anyio.sleep(0.02)
                await anyio.sleep(0.3)  # nothing follows
                assert heard.pop(0) == 0.0  # "Queued" goes to the token of the call
            assert heard == sorted(set(heard))
            assert heard.count(1.0) == 1
            assert heard[-1] == 1.0
        task = (await call(door, "add", file_path=path))["task_id"]
        states = []
        with anyio.fail_after(60):
            while (state := await call(door, "task-status", task_id=task))["status"] in ("queued", "running"):
                states.append(state)
                await anyio.sleep(0.02)
        running = [state for state in states if state["status"] == "running"]
        assert [state["progress"] for state in running] == sorted(state["progress"] for state in running)
        for state in running:
            assert state["total_steps"] == 20
            assert state["completed_steps"] == int(state["progress"] * 20 + 1e-6)
            assert state["progress"] < 1.0
            assert 0 <= state["estimated_remaining_seconds"] < 600


async def test_the_estimate_of_a_scan_after_25_tiny_files(one_at_a_time: Door, tmp_path: Path) -> None:
    door = one_at_a_time
    for number in range(25):
        await call(door, "add", **{"file_path": write(tmp_path, "a.txt", f"Note {number}."), "async": False})
    pages = [f"Log book {number}\n" + "The harbour master keeps it dry.\n" * 20 for number in range(1, 5)]
    queued = await call(door, "add", file_path=write(tmp_path, "scan.pdf", scanned_pdf(*pages, size=A4)))
    started = time.monotonic()
    behind = await call(door, "add", file_path=write(tmp_path, "b.txt", "words"))
    remaining = (await until(door, queued["task_id"], "Processing page 2"))["estimated_remaining_seconds"]
    reached = time.monotonic()
    assert (await finished(door, queued["task_id"]))["status"] == "completed"
    seconds, rest = time.monotonic() - started, time.monotonic() - reached
    assert seconds / 10 <= queued["estimated_time_seconds"] <= seconds * 10
    assert rest / 10 - 1 <= remaining <= rest * 10 + 1
    assert behind["estimated_time_seconds"] >= queued["estimated_time_seconds"]  # it waits for the scan
