"""The knowledge contract, with a real client and real files."""

import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as wire
import pytest

from bedstone.app import build_toolset
from bedstone.errors import BedstoneError
from bedstone.settings import Settings
from bedstone.toolkit import Progress
from bedstone.toolsets.knowledge.toolset import KnowledgeToolset
from contracts.requirements import proves
from ingest.test_reader import docx, pdf, picture
from support.doors import (
    DOORS,
    HANDSHAKE,
    MODERN,
    NETWORK_CLIENTS,
    ClientDoor,
    Door,
    payload,
    serving,
    stdio_client,
)
from support.processes import bedstone, listening
from support.replicas import shared

SUPPORTED = ["pdf", "docx", "pptx", "xlsx", "html", "jpg", "png", "svg"]
TASKS = "io.modelcontextprotocol/tasks"
NOBODY = "00000000-0000-4000-8000-000000000000"


def settings_for(folder: Path, **more: Any) -> Settings:
    return shared(Settings.model_validate({"data_dir": folder / "data", **more}))


@pytest.fixture
async def toolset(tmp_path: Path) -> AsyncIterator[KnowledgeToolset]:
    toolset = build_toolset("knowledge", settings_for(tmp_path, processing={"max_file_size_mb": 1}))
    assert isinstance(toolset, KnowledgeToolset)
    async with toolset.opened():
        yield toolset


@pytest.fixture(params=["stdio", "http-handshake", "websocket-2026", "plain"])
async def door(request: pytest.FixtureRequest, toolset: KnowledgeToolset, tmp_path: Path) -> AsyncIterator[Door]:
    if request.param == "stdio":
        config = tmp_path / "bedstone.toml"
        config.write_text(f'data_dir = "{tmp_path}/data"\n[processing]\nmax_file_size_mb = 1\n')
        async with stdio_client(MODERN, "serve", "--toolsets", "knowledge", "--config", str(config)) as client:
            yield ClientDoor(client)
        return
    async with DOORS[request.param]([toolset]) as door:
        yield door


async def call(door: Door, tool: str, **arguments: Any) -> Any:
    answer = await door.call(f"knowledge-{tool}", arguments)
    result = payload(answer)
    if answer.is_error:
        assert answer.structured_content is None
        assert result["success"] is False
    else:
        assert answer.structured_content == result
    return result


def write(folder: Path, name: str, data: bytes | str) -> str:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


async def finished(door: Door, task_id: str) -> Any:
    with anyio.fail_after(60):
        while (state := await call(door, "task-status", task_id=task_id)).get("status") in ("queued", "running"):  # noqa: ASYNC110
            await anyio.sleep(0.05)
    return state


@proves("knowledge.tools")
async def test_seven_tools_with_their_arguments(door: Door) -> None:
    tools = {tool.name: tool.input_schema for tool in await door.list_tools()}
    assert list(tools)[:7] == [
        f"knowledge-{name}" for name in ("add", "search", "remove", "show", "clear", "status", "task-status")
    ]
    add = tools["knowledge-add"]
    assert add["required"] == ["file_path"]
    assert {name: schema.get("type") for name, schema in add["properties"].items()} == {
        "file_path": "string",
        "metadata": "object",
        "force_ocr": "boolean",
        "async": "boolean",
        "contexts": None,  # a list, or names by commas
    }
    assert add["properties"]["async"]["default"] is True
    search = tools["knowledge-search"]["properties"]
    assert (search["top_k"]["default"], search["top_k"]["maximum"], search["min_relevance"]["default"]) == (10, 50, 0.0)
    show = tools["knowledge-show"]["properties"]
    assert (show["limit"]["default"], show["limit"]["maximum"], show["sort_order"]["default"]) == (100, 1000, "desc")
    assert tools["knowledge-clear"]["required"] == ["confirm", "confirmation_phrase"]
    assert tools["knowledge-task-status"]["required"] == ["task_id"]


@proves("knowledge.add.async", "knowledge.task-status", "knowledge.search.answer", "knowledge.show")
async def test_a_file_is_queued_read_and_found(door: Door, tmp_path: Path) -> None:
    path = write(tmp_path, "whales.pdf", pdf("Whales: They sing at night.", "Krill: Small and many."))
    queued = await call(door, "add", file_path=path, metadata={"author": "Ada", "tags": ["sea"]})
    assert set(queued) == {"success", "task_id", "message", "estimated_time_seconds"}
    assert queued["message"] == "Document queued for processing"
    assert queued["estimated_time_seconds"] >= 1
    done = await finished(door, queued["task_id"])
    assert set(done) == {"success", "task_id", "status", "progress", "result", "total_time_seconds"}
    assert (done["success"], done["status"], done["progress"]) == (True, "completed", 1.0)
    assert done["result"]["filename"] == "whales.pdf"
    found = await call(door, "search", query="  do whales sing in the dark?  ", top_k=1)
    assert set(found) == {"success", "query", "results", "total_results", "search_time_ms"}
    (hit,) = found["results"]
    assert set(hit) == {"document_id", "chunk_id", "filename", "chunk_text", "relevance_score", "metadata"}
    assert (hit["document_id"], hit["filename"]) == (done["result"]["document_id"], "whales.pdf")
    assert "sing at night" in hit["chunk_text"]
    assert 0 < hit["relevance_score"] <= 1
    metadata = hit["metadata"]
    assert (metadata["format"], metadata["page_num"], metadata["author"], metadata["tags"]) == (
        "pdf",
        1,
        "Ada",
        ["sea"],
    )
    assert metadata["date_added"].endswith("Z")
    listed = await call(door, "show")
    assert set(listed) == {"success", "documents", "total_count", "limit", "offset"}
    assert listed["documents"] == [
        {
            "id": hit["document_id"],
            "filename": "whales.pdf",
            "format": "pdf",
            "size_bytes": Path(path).stat().st_size,
            "date_added": metadata["date_added"],
            "chunk_count": done["result"]["chunks_created"],
            "processing_status": "completed",
            "processing_method": "text_extraction",
            "source": path,
        }
    ]


@proves("knowledge.add.sync")
async def test_a_file_is_read_while_the_caller_waits(toolset: KnowledgeToolset, tmp_path: Path) -> None:
    path = write(tmp_path, "a.pdf", pdf(*[f"Page {number}: About the number {number}." for number in range(1, 8)]))
    said: list[tuple[float, str | None]] = []

    class Heard(Progress):
        async def __call__(self, done: float, total: float | None = None, message: str | None = None, /) -> None:
            assert total == 1.0
            said.append((done, message))

    reply = await toolset.call("knowledge-add", {"file_path": path, "async": False}, Heard())
    result = json.loads(reply.text)
    assert set(result) == {
        "success", "document_id", "filename", "chunks_created", "processing_method", "processing_time_seconds",
    }  # fmt: skip
    assert result["processing_method"] == "text_extraction"
    assert [share for share, _ in said] == sorted(share for share, _ in said)
    assert said[-1] == (1.0, "Completed")
    again = json.loads((await toolset.call("knowledge-add", {"file_path": path, "async": False})).text)
    assert (again["document_id"], again["duplicate"]) == (result["document_id"], True)


@proves("knowledge.add.errors")
async def test_files_that_cannot_be_added(door: Door, tmp_path: Path) -> None:
    assert await call(door, "add", file_path=write(tmp_path, "a.xyz", "x")) == {
        "success": False,
        "error": "unsupported_format",
        "message": "Unsupported file format: .xyz. Use PDF, DOCX, PPTX, XLSX, HTML, JPG, PNG, or SVG",
        "supported_formats": SUPPORTED,
        "additional_formats": ["md", "txt", "csv", "json", "eml", "epub", "rtf", "odt"],
    }
    assert await call(door, "add", file_path=write(tmp_path, "big.txt", "x" * 1_500_000)) == {
        "success": False,
        "error": "file_too_large",
        "message": "File size (2 MB) exceeds maximum allowed size (1 MB)",
        "max_size_mb": 1,
    }
    absent = await call(door, "add", file_path=str(tmp_path / "none.pdf"))
    assert (absent["error"], absent["file_path"]) == ("file_not_found", str(tmp_path / "none.pdf"))
    broken = await call(door, "add", file_path=write(tmp_path, "broken.pdf", b"%PDF-1.4"))
    failed = await finished(door, broken["task_id"])
    assert (failed["success"], failed["status"], failed["error"]) == (False, "failed", "extraction_failed")
    assert failed["task_id"] == broken["task_id"]
    assert failed["elapsed_time_seconds"] >= 0
    assert failed["message"].startswith("Not a PDF")
    sync = await call(door, "add", **{"file_path": str(tmp_path / "broken.pdf"), "async": False})
    assert sync["error"] == "extraction_failed"


@proves("knowledge.search.filters", "knowledge.search.empty")
async def test_filters_and_nothing_found(door: Door, tmp_path: Path) -> None:
    empty = await call(door, "search", query="anything")
    assert empty == {
        "success": False,
        "error": "empty_knowledge_base",
        "message": "Knowledge base is empty. Add documents with knowledge-add first",
        "document_count": 0,
    }
    for name, data in {"manual.docx": docx(), "harbour.png": picture("Lighthouse")}.items():
        await call(door, "add", **{"file_path": write(tmp_path, name, data), "async": False})
    today = time.strftime("%Y-%m-%d", time.gmtime())
    only = await call(door, "search", query="lighthouse bolt", filters={"format": "png"})
    assert [hit["filename"] for hit in only["results"]] == ["harbour.png"]
    both = {"format": ["png", "docx"], "date_range": {"start": today, "end": today}}
    assert (await call(door, "search", query="lighthouse bolt", filters=both))["total_results"] == 2
    none = await call(door, "search", query="lighthouse", filters={"date_range": {"end": "2020-01-01"}})
    assert none == {
        "success": True,
        "query": "lighthouse",
        "results": [],
        "total_results": 0,
        "message": "No documents found matching your query",
        "search_time_ms": none["search_time_ms"],
    }
    assert (await call(door, "search", query="lighthouse", min_relevance=1.0))["results"] == []


@proves("knowledge.remove")
async def test_removing_asks_first(door: Door, tmp_path: Path) -> None:
    unknown = await call(door, "remove", document_id=NOBODY, confirm=True)
    assert unknown == {
        "success": False,
        "error": "document_not_found",
        "message": f"Document with ID '{NOBODY}' not found",
        "document_id": NOBODY,
    }
    added = await call(door, "add", **{"file_path": write(tmp_path, "a.txt", "some words"), "async": False})
    question = await door.call("knowledge-remove", {"document_id": added["document_id"]})
    assert not question.is_error
    assert payload(question) == {
        "success": False,
        "error": "confirmation_required",
        "message": "Set confirm=true to remove this document",
        "document": {"id": added["document_id"], "filename": "a.txt", "chunks": 1},
    }
    assert question.structured_content == payload(question)
    assert await call(door, "remove", document_id=added["document_id"], confirm=True) == {
        "success": True,
        "document_id": added["document_id"],
        "filename": "a.txt",
        "chunks_removed": 1,
        "message": "Document removed successfully",
    }
    assert await call(door, "show") == {
        "success": True,
        "documents": [],
        "total_count": 0,
        "message": "Knowledge base is empty",
    }


@proves("knowledge.show")
async def test_documents_by_page_and_order(door: Door, tmp_path: Path) -> None:
    for name, size in (("b.txt", 20), ("c.txt", 5), ("a.txt", 10)):
        text = f"{name} " + "x" * size
        await call(door, "add", **{"file_path": write(tmp_path, name, text), "async": False})

    async def names(**arguments: Any) -> list[str]:
        return [item["filename"] for item in (await call(door, "show", **arguments))["documents"]]

    assert await names() == ["a.txt", "c.txt", "b.txt"]
    assert await names(sort_by="filename", sort_order="asc") == ["a.txt", "b.txt", "c.txt"]
    assert await names(sort_by="size") == ["b.txt", "a.txt", "c.txt"]
    page = await call(door, "show", sort_by="filename", sort_order="asc", limit=1, offset=1)
    assert [item["filename"] for item in page["documents"]] == ["b.txt"]
    assert (page["total_count"], page["limit"], page["offset"]) == (3, 1, 1)


@proves("knowledge.clear")
async def test_clearing_needs_the_phrase(door: Door, tmp_path: Path) -> None:
    await call(door, "add", **{"file_path": write(tmp_path, "a.txt", "some words"), "async": False})
    question = {
        "success": False,
        "error": "confirmation_required",
        "message": "This action will delete ALL documents. Set confirm=true and confirmation_phrase='DELETE ALL' "
        "to proceed",
        "current_document_count": 1,
    }
    for arguments in (
        {},
        {"confirm": True},
        {"confirm": False, "confirmation_phrase": "DELETE ALL"},
        {"confirm": True, "confirmation_phrase": "delete all"},
    ):
        answer = await door.call("knowledge-clear", arguments)
        assert not answer.is_error
        assert payload(answer) == question
    cleared = await call(door, "clear", confirm=True, confirmation_phrase="DELETE ALL")
    assert (cleared["documents_removed"], cleared["embeddings_removed"]) == (1, 1)
    assert cleared["message"] == "Knowledge base cleared successfully"
    assert cleared["storage_freed_mb"] >= 0


@pytest.mark.one_server("it names the folders of one server, and removes one")
@proves("knowledge.status")
async def test_status_is_honest(door: Door, tmp_path: Path) -> None:
    empty = await call(door, "status")
    assert empty["knowledge_base"]["average_chunks_per_document"] == 0.0
    assert empty["last_updated"] is None
    await call(door, "add", **{"file_path": write(tmp_path, "a.txt", "some words"), "async": False})
    status = await call(door, "status")
    assert status["knowledge_base"] == {
        "name": "default",
        "document_count": 1,
        "total_chunks": 1,
        "total_size_bytes": 10,
        "total_size_mb": 0.0,
        "average_chunks_per_document": 1.0,
        "storage_path": str(tmp_path / "data" / "documents"),
        "vector_db_path": str(tmp_path / "data" / "index"),
    }
    assert status["health"] == {
        "status": "healthy",
        "vector_db_connected": True,
        "storage_accessible": True,
        "embedding_model_loaded": True,
    }
    assert status["configuration"] == {
        "embedding_model": "sentence-transformers/all-MiniLM-L6-v2",
        "chunk_size": 500,
        "max_file_size_mb": 1,
    }
    (tmp_path / "data" / "documents").rename(tmp_path / "gone")
    degraded = (await call(door, "status"))["health"]
    assert (degraded["status"], degraded["storage_accessible"]) == ("degraded", False)
    assert degraded["issues"] == ["Storage directory not accessible: No such file or directory"]


@pytest.mark.one_server("it looks into the folder of originals")
@proves("knowledge.task-status", "knowledge.cancel")
async def test_a_running_task_is_watched_and_cancelled(tmp_path: Path) -> None:
    one_at_a_time = settings_for(tmp_path, processing={"max_concurrent_tasks": 1}, ocr={"force_ocr": True})
    toolset = build_toolset("knowledge", one_at_a_time)
    async with toolset.opened(), DOORS["memory-2026"]([toolset]) as door:
        long = write(tmp_path, "long.pdf", pdf(*["Whales: They sing at night."] * 60))
        first = (await call(door, "add", file_path=long))["task_id"]
        second = (await call(door, "add", file_path=write(tmp_path, "b.txt", "words")))["task_id"]
        with anyio.fail_after(30):
            while (state := await call(door, "task-status", task_id=first))["progress"] == 0:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        assert set(state) == {
            "success", "task_id", "status", "progress", "current_step", "completed_steps", "total_steps",
            "elapsed_time_seconds", "estimated_remaining_seconds",
        }  # fmt: skip
        assert state["status"] == "running"
        assert state["current_step"].startswith("Processing page")
        waiting = await call(door, "task-status", task_id=second)
        assert waiting == {"success": True, "task_id": second, "status": "queued", "progress": 0.0, "position": 1}
        statuses = {item["filename"]: item["processing_status"] for item in (await call(door, "show"))["documents"]}
        assert statuses == {"long.pdf": "processing", "b.txt": "pending"}
        assert await toolset.cancel_task(first)
        cancelled = await finished(door, first)
        assert set(cancelled) == {"success", "task_id", "status", "progress", "elapsed_time_seconds"}
        assert cancelled["status"] == "cancelled"
        assert (await finished(door, second))["status"] == "completed"
        assert [item["filename"] for item in (await call(door, "show"))["documents"]] == ["b.txt"]
        assert len(list((tmp_path / "data" / "documents").glob("[!.]*"))) == 1
        assert not await toolset.cancel_task(first)


@proves("knowledge.errors")
@pytest.mark.parametrize(
    ("tool", "arguments", "error", "parameter"),
    [
        ("add", {}, "missing_required_parameter", "file_path"),
        ("add", {"file_path": 5}, "invalid_parameter", "file_path"),
        ("add", {"file_path": "a.pdf", "async": "yes"}, "invalid_parameter", "async"),
        ("add", {"file_path": "a.pdf", "colour": 1}, "invalid_parameter", "colour"),
        ("search", {}, "missing_required_parameter", "query"),
        ("search", {"query": "   "}, "invalid_parameter", "query"),
        ("search", {"query": "x" * 501}, "invalid_parameter", "query"),
        ("search", {"query": "a", "top_k": 51}, "invalid_parameter", "top_k"),
        ("search", {"query": "a", "min_relevance": 1.5}, "invalid_parameter", "min_relevance"),
        ("search", {"query": "a", "filters": {"date_range": {"start": "soon"}}}, "invalid_parameter", "filters"),
        ("search", {"query": "a", "filters": {"format": 5}}, "invalid_parameter", "filters"),
        ("remove", {}, "missing_required_parameter", "document_id"),
        ("show", {"limit": 1001}, "invalid_parameter", "limit"),
        ("show", {"sort_by": "colour"}, "invalid_parameter", "sort_by"),
        ("get", {}, "missing_required_parameter", "document_id"),
        ("get", {"document_id": "a", "chunk_id": "b"}, "invalid_parameter", "chunk_id"),
        ("get", {"chunk_id": NOBODY}, "invalid_parameter", "chunk_id"),
        ("context-create", {"name": "a b"}, "invalid_parameter", "name"),
        ("context-delete", {"name": "default"}, "invalid_parameter", "name"),
        ("task-status", {}, "missing_required_parameter", "task_id"),
        ("task-status", {"task_id": "no-uuid"}, "invalid_parameter", "task_id"),
    ],
)
async def test_wrong_arguments_are_named(
    door: Door, tool: str, arguments: dict[str, Any], error: str, parameter: str
) -> None:
    answer = await call(door, tool, **arguments)
    assert (answer["error"], answer["parameter"]) == (error, parameter)


@proves("knowledge.get")
async def test_a_document_is_read_by_pages_and_a_passage_with_its_neighbours(door: Door, tmp_path: Path) -> None:
    path = write(tmp_path, "w.pdf", pdf(*[f"Part {number}: About the number {number}." for number in range(1, 6)]))
    added = await call(door, "add", **{"file_path": path, "async": False, "metadata": {"author": "Ada"}})
    whole = await call(door, "get", document_id=added["document_id"])
    assert (whole["page_count"], whole["start_page"], whole["end_page"]) == (5, 1, 5)
    assert (whole["filename"], whole["format"], whole["metadata"]["author"]) == ("w.pdf", "pdf", "Ada")
    assert whole["next_offset"] is None
    assert whole["total_characters"] == len(whole["text"])
    some = await call(door, "get", document_id=added["document_id"], start_page=2, end_page=3)
    assert "number 2" in some["text"]
    assert "number 3" in some["text"]
    assert "number 4" not in some["text"]
    first = await call(door, "get", document_id=added["document_id"], max_characters=100)
    rest = await call(door, "get", document_id=added["document_id"], offset=first["next_offset"])
    assert first["text"] + rest["text"] == whole["text"]
    beyond = await call(door, "get", document_id=added["document_id"], start_page=9)
    assert (beyond["error"], beyond["parameter"]) == ("invalid_parameter", "start_page")
    (hit,) = (await call(door, "search", query="number 3", top_k=1))["results"]
    passage = await call(door, "get", chunk_id=hit["chunk_id"], neighbours=0)
    text = re.sub(r"\[page \d\]\n\n", "", passage["text"])
    assert (text, passage["document_id"]) == (hit["chunk_text"], added["document_id"])
    unknown = await call(door, "get", document_id=NOBODY)
    assert (unknown["error"], unknown["document_id"]) == ("document_not_found", NOBODY)


@proves("knowledge.contexts")
async def test_contexts_collect_documents(door: Door, tmp_path: Path) -> None:
    made = await call(door, "context-create", name="sea", description="ships and tides")
    assert made["context"]["document_count"] == 0
    await call(door, "context-create", name="news")
    path = write(tmp_path, "a.txt", "tide tables")
    await call(door, "add", **{"file_path": path, "async": False, "contexts": "sea, news"})
    await call(door, "add", **{"file_path": write(tmp_path, "b.txt", "tide of news"), "async": False})
    listed = await call(door, "context-list")
    counts = [(item["name"], item["document_count"]) for item in listed["contexts"]]
    assert counts == [("default", 1), ("news", 1), ("sea", 1)]
    found = await call(door, "search", query="tide", context="sea")
    assert [(hit["filename"], hit["metadata"]["context"]) for hit in found["results"]] == [("a.txt", "news, sea")]
    assert (await call(door, "search", query="tide"))["total_results"] == 2
    assert [row["filename"] for row in (await call(door, "show", context="sea"))["documents"]] == ["a.txt"]
    assert (await call(door, "context-show", name="sea"))["documents"][0]["filename"] == "a.txt"
    assert (await call(door, "context-delete", name="news"))["documents_moved_to_default"] == 0
    question = await call(door, "context-delete", name="sea")
    assert (question["error"], question["documents_only_here"]) == ("confirmation_required", 1)
    gone = await call(door, "context-delete", name="sea", confirm=True)
    assert (gone["documents_unlinked"], gone["documents_moved_to_default"]) == (1, 1)
    assert (await call(door, "search", query="tide", context="default"))["total_results"] == 2
    wrong: dict[str, dict[str, Any]] = {
        "search": {"query": "tide", "context": "sea"},
        "show": {"context": "sea"},
        "context-show": {"name": "sea"},
        "add": {"file_path": path, "contexts": ["sea"]},
    }
    for tool, arguments in wrong.items():
        refused = await call(door, tool, **arguments)
        assert (refused["error"], refused["context"]) == ("context_not_found", "sea"), tool


@proves("knowledge.show")
async def test_what_failed_is_listed(door: Door, tmp_path: Path) -> None:
    await call(door, "add", **{"file_path": write(tmp_path, "broken.pdf", b"%PDF-1.4"), "async": False})
    (row,) = (await call(door, "show"))["documents"]
    assert (row["filename"], row["processing_status"], row["chunk_count"]) == ("broken.pdf", "failed", 0)


@pytest.mark.needs_session("http-handshake")
@proves("knowledge.progress")
@pytest.mark.parametrize("name", ["http-handshake", "websocket-handshake", "http-2026", "stdio"])
async def test_progress_reaches_the_caller_and_those_who_wait_in_the_background(
    name: str, toolset: KnowledgeToolset, tmp_path: Path
) -> None:
    heard: list[tuple[float, str | None]] = []
    later: list[dict[str, Any]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async def overhear(message: Any) -> None:
        if isinstance(message, wire.ProgressNotification) and isinstance(message.params.progress_token, str):
            later.append(message.params.model_dump(by_alias=True))  # the client's own tokens are numbers

    async with AsyncExitStack() as stack:
        if name == "stdio":
            arguments = ("serve", "--toolsets", "knowledge", "--data-dir", str(tmp_path / "data"))
            client = await stack.enter_async_context(stdio_client(HANDSHAKE, *arguments, message_handler=overhear))
        else:
            base = await stack.enter_async_context(serving([toolset]))
            client = await stack.enter_async_context(NETWORK_CLIENTS[name](base, message_handler=overhear))
        path = write(tmp_path, "a.pdf", pdf(*[f"Page {number}: words." for number in range(1, 9)]))
        arguments_ = {"file_path": path, "async": False}
        assert not (await client.call_tool("knowledge-add", arguments_, progress_callback=note)).is_error
        assert [share for share, _ in heard] == sorted(share for share, _ in heard)
        assert heard[-1] == (1.0, "Completed")
        heard.clear()
        path = write(tmp_path, "b.pdf", pdf(*[f"Leaf {number}: words." for number in range(1, 9)]))
        queued = payload(await client.call_tool("knowledge-add", {"file_path": path}, progress_callback=note))
        await finished(ClientDoor(client), queued["task_id"])
        assert heard == [(0.0, "Queued")]
        if name == "http-2026":  # an era without standing channels
            assert later == []
            return
        with anyio.fail_after(10):
            while not later or later[-1]["message"] != "Completed":  # noqa: ASYNC110
                await anyio.sleep(0.05)
        assert {item["progressToken"] for item in later} == {queued["task_id"]}
        assert [item["progress"] for item in later] == sorted(item["progress"] for item in later)


@proves("knowledge.cancel")
async def test_hanging_up_on_a_call_cancels_its_work(toolset: KnowledgeToolset, tmp_path: Path) -> None:
    path = write(tmp_path, "long.pdf", pdf(*["Whales: They sing at night."] * 40))
    async with DOORS["websocket-handshake"]([toolset]) as door:
        with anyio.move_on_after(1.0):
            await door.call("knowledge-add", {"file_path": path, "async": False, "force_ocr": True})
        with anyio.fail_after(20):
            while (await call(door, "show"))["documents"]:  # noqa: ASYNC110
                await anyio.sleep(0.05)
    assert list((tmp_path / "data" / "documents").glob("[!.]*")) == []


@proves("knowledge.tasks-extension")
async def test_a_client_that_knows_tasks_is_given_one(toolset: KnowledgeToolset, tmp_path: Path) -> None:
    capabilities: dict[str, Any] = {"extensions": {TASKS: {}}}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    async with serving([toolset]) as base, httpx2.AsyncClient() as http:

        async def send(method: str, name: str | None, params: dict[str, Any], **more: Any) -> Any:
            headers = {
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": method,
                "Accept": "application/json, text/event-stream",
                **({"Mcp-Name": name} if name else {}),
            }
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta | more}}
            response = await http.post(f"{base}/mcp", json=message, headers=headers)
            return response.json()

        async def ended(task_id: str) -> Any:
            with anyio.fail_after(30):
                while True:
                    view = (await send("tasks/get", task_id, {"taskId": task_id}))["result"]
                    if view["status"] != "working":
                        return view
                    await anyio.sleep(0.05)

        discovered = (await send("server/discover", None, {}))["result"]
        assert discovered["capabilities"]["extensions"] == {TASKS: {}}
        path = write(tmp_path, "a.txt", "tide tables")
        add = {"name": "knowledge-add", "arguments": {"file_path": path}}
        begun = (await send("tools/call", "knowledge-add", add))["result"]
        assert (begun["resultType"], begun["status"]) == ("task", "working")
        assert set(begun) >= {"taskId", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"}
        done = await ended(begun["taskId"])
        assert (done["status"], done["resultType"]) == ("completed", "complete")
        assert done["result"]["structuredContent"]["filename"] == "a.txt"
        same = await send("tools/call", "knowledge-task-status", {
            "name": "knowledge-task-status", "arguments": {"task_id": begun["taskId"]}
        })  # fmt: skip
        assert same["result"]["structuredContent"]["status"] == "completed"
        broken = {"name": "knowledge-add", "arguments": {"file_path": write(tmp_path, "b.pdf", b"%PDF-1.4")}}
        failed = await ended((await send("tools/call", "knowledge-add", broken))["result"]["taskId"])
        assert (failed["status"], failed["result"]["isError"]) == ("completed", True)
        absent = {"name": "knowledge-add", "arguments": {"file_path": str(tmp_path / "none.txt")}}
        assert (await send("tools/call", "knowledge-add", absent))["result"]["isError"] is True
        assert (await send("tasks/cancel", begun["taskId"], {"taskId": begun["taskId"]}))["result"].keys() <= {
            "resultType", "_meta",
        }  # fmt: skip
        assert (await send("tasks/get", NOBODY, {"taskId": NOBODY}))["error"]["code"] == -32602
        assert (await send("tasks/get", "other", {"taskId": begun["taskId"]}))["error"]["code"] == -32020
        without: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {}}
        assert (await send("tasks/get", NOBODY, {"taskId": NOBODY}, **without))["error"]["code"] == -32021
        plain = await send("tools/call", "knowledge-add", add, **without)
        assert plain["result"]["structuredContent"]["message"] == "Document queued for processing"


@proves("knowledge.errors")
async def test_an_unknown_task_is_told(door: Door) -> None:
    unknown = await call(door, "task-status", task_id=NOBODY)
    assert (unknown["error"], unknown["task_id"]) == ("task_not_found", NOBODY)


@proves("knowledge.durable")
async def test_documents_and_tasks_outlive_the_server(tmp_path: Path) -> None:
    arguments = ("serve", "--toolsets", "knowledge", "--data-dir", str(tmp_path / "data"))
    path = write(tmp_path, "whales.pdf", pdf("Whales: They sing at night."))
    async with stdio_client(HANDSHAKE, *arguments) as client:
        assert client.server_info
        assert client.server_info.name == "knowledge-server"
        queued = payload(await client.call_tool("knowledge-add", {"file_path": path}))
    async with stdio_client(HANDSHAKE, *arguments) as client:
        with anyio.fail_after(60):
            while True:
                state = payload(await client.call_tool("knowledge-task-status", {"task_id": queued["task_id"]}))
                if state["status"] == "completed":
                    break
                await anyio.sleep(0.1)
        found = payload(await client.call_tool("knowledge-search", {"query": "whales"}))
        assert found["results"][0]["filename"] == "whales.pdf"


@proves("knowledge.reach")
def test_other_machines_need_named_folders(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-long-made-up-token")
    (tmp_path / "token").chmod(0o600)
    options = (
        "--toolsets",
        "knowledge",
        "--transport",
        "http",
        "--host",
        "0.0.0.0",
        "--token-file",
        tmp_path / "token",
    )
    refused = bedstone("serve", *options, "--data-dir", tmp_path / "data")
    assert refused.returncode == 1
    assert "storage.allowed_roots" in refused.stderr


def test_the_command_line_adds_searches_and_removes(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    write(tmp_path / "files", "whales.pdf", pdf("Whales: They sing at night."))
    write(tmp_path / "files", "ignored.bin", b"x")
    write(tmp_path, "notes.md", "# Krill\n\nsmall and many\n")
    data = ("--data-dir", tmp_path / "data")
    added = bedstone("knowledge", "add", tmp_path / "files", f"{tmp_path}/*.md", *data)
    assert added.returncode == 0
    assert "whales.pdf: 1 chunk by text_extraction" in added.stdout
    assert "notes.md" in added.stdout
    again = bedstone("knowledge", "add", tmp_path / "notes.md", tmp_path / "none.pdf", *data)
    assert again.returncode == 1
    assert "already added" in again.stdout
    assert "none.pdf: File not found" in again.stdout
    found = bedstone("knowledge", "search", "singing whales", *data)
    assert "whales.pdf, page 1" in found.stdout
    assert "whales.pdf" in bedstone("knowledge", "list", *data).stdout
    listed = json.loads(bedstone("knowledge", "list", "--json", *data).stdout)
    assert listed["total_count"] == 2
    whales = next(row["id"] for row in listed["documents"] if row["filename"] == "whales.pdf")
    assert "They sing at night." in bedstone("knowledge", "show", whales, "--pages", "1", *data).stdout
    assert "has pages 1 to 1" in bedstone("knowledge", "show", whales, "--pages", "7", *data).stderr
    assert bedstone("knowledge", "export", tmp_path / "all.zip", *data).stdout.startswith("2 documents written")
    other = ("--data-dir", tmp_path / "other")
    assert bedstone("knowledge", "import", tmp_path / "all.zip", *other).stdout.startswith("2 documents added")
    assert "whales.pdf, page 1" in bedstone("knowledge", "search", "whales", *other).stdout
    removed = bedstone("knowledge", "remove", listed["documents"][0]["id"], "--yes", *data)
    assert json.loads(removed.stdout)["success"]
    assert json.loads(bedstone("knowledge", "clear", "--yes", *data).stdout)["documents_removed"] == 1
    assert json.loads(bedstone("knowledge", "status", *data).stdout)["health"]["status"] == "healthy"


def test_the_command_line_keeps_a_folder_in_step(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    data = ("--data-dir", tmp_path / "data")
    assert json.loads(bedstone("knowledge", "context", "create", "sea", *data).stdout)["success"]
    write(tmp_path / "files", "a.txt", "tulips")
    watch = ("knowledge", "watch", tmp_path / "files", "--once", "--context", "sea", *data)
    assert bedstone(*watch).stdout.split() == ["added", "a.txt"]
    assert "tulips" in bedstone("knowledge", "search", "tulips", "--context", "sea", *data).stdout
    (tmp_path / "files" / "a.txt").unlink()
    assert bedstone(*watch).stdout.split() == ["removed", "a.txt"]
    refused = bedstone("knowledge", "watch", tmp_path / "files", "--once", "--context", "none", *data)
    assert (refused.returncode, "Context 'none' not found" in refused.stderr) == (1, True)


async def test_a_server_keeps_folders_in_step(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    write(tmp_path / "files", "a.txt", "tulips")
    toolset = build_toolset("knowledge", settings_for(tmp_path, storage={"watch": [tmp_path / "files"]}))
    async with toolset.opened(), DOORS["plain"]([toolset]) as door:

        async def names(*wanted: str) -> None:
            with anyio.fail_after(20):
                while True:
                    rows = (await call(door, "show"))["documents"]
                    if sorted(row["filename"] for row in rows) == list(wanted):
                        return
                    await anyio.sleep(0.1)

        await names("a.txt")
        write(tmp_path / "files", "b.txt", "roses")
        await names("a.txt", "b.txt")
        (tmp_path / "files" / "a.txt").unlink()
        await names("b.txt")
    for watch, roots, message in (("none", [], "not a folder"), ("files", [tmp_path / "data"], "allowed_roots")):
        storage = {"watch": [tmp_path / watch], "allowed_roots": roots}
        with pytest.raises(BedstoneError, match=message):
            build_toolset("knowledge", settings_for(tmp_path, storage=storage))


def test_cancelling_a_task_by_message(tmp_path: Path) -> None:
    """`tools/cancel` as the contract prints it, over the plain endpoint."""
    path = write(tmp_path, "long.pdf", pdf(*["Whales: They sing at night."] * 60))
    options = ("--toolsets", "knowledge", "--data-dir", tmp_path / "data")
    with listening(*options, log=tmp_path / "log", BEDSTONE_OCR__FORCE_OCR="true") as server:

        def ask(method: str, params: object) -> Any:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return json.loads(server.post("/mcp", body)[1])

        def tool(name: str, arguments: object) -> Any:
            return json.loads(ask("tools/call", {"name": name, "arguments": arguments})["result"]["content"][0]["text"])

        task_id = tool("knowledge-add", {"file_path": path})["task_id"]
        assert "result" in ask("tools/cancel", {"taskId": task_id})
        deadline = time.monotonic() + 30
        while tool("knowledge-task-status", {"task_id": task_id})["status"] in ("queued", "running"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert tool("knowledge-task-status", {"task_id": task_id})["status"] == "cancelled"
