"""The kb contract through every door, with real files."""

import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest

from bedstone.services.service import Handle
from bedstone.services.text_file import TextFile
from bedstone.toolsets.kb.toolset import KbToolset
from contracts.requirements import proves
from support.doors import DOORS, STDIO_DOORS, ClientDoor, Door, payload, stdio_client
from support.processes import listening

Connect = Callable[[Path | None], AbstractAsyncContextManager[Door]]

TEXT = "Ein Handbuch für Räder 🚲\r\nZweite Zeile\n"
FIELDS = {"fileSizeBytes", "contentLength", "isAvailable", "description", "lastModified"}


@pytest.fixture(params=[*DOORS, *STDIO_DOORS])
def connect(request: pytest.FixtureRequest) -> Connect:
    """A client at one of the doors, for a server with that kb file."""

    @asynccontextmanager
    async def open_door(path: Path | None) -> AsyncIterator[Door]:
        if request.param in STDIO_DOORS:
            file = ["--kb-file", str(path)] if path else []
            async with stdio_client(STDIO_DOORS[request.param], "serve", "--toolsets", "kb", *file) as client:
                yield ClientDoor(client)
        else:
            async with DOORS[request.param]([kb(path)]) as door:
                yield door

    return open_door


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "handbook.txt"


def kb(path: Path | None, reload: Literal["on-change", "never"] = "on-change") -> KbToolset:
    file = TextFile(path, reload=reload)
    file.load()
    return KbToolset(Handle.of(file), description="Test handbook")


@proves("kb.tools", "kb.stdio", "mcp.tools.same-everywhere")
async def test_there_are_exactly_two_tools_without_input(connect: Connect, file: Path) -> None:
    async with connect(file) as door:
        tools = await door.list_tools()
    assert [tool.name for tool in tools] == ["get_kb_info", "get_kb_content"]
    assert all(tool.input_schema == {"type": "object", "properties": {}} for tool in tools)


@proves("kb.info.available", "kb.content.ok", "kb.content.unmodified", "kb.stdio", "mcp.tools.same-everywhere")
async def test_a_readable_file_is_described_and_served_whole(connect: Connect, file: Path) -> None:
    file.write_bytes(TEXT.encode())
    os.utime(file, (1_700_000_000, 1_700_000_000))
    async with connect(file) as door:
        info = await door.call("get_kb_info")
        content = await door.call("get_kb_content")
    assert not info.is_error
    assert payload(info)["status"] == "available"
    facts = payload(info)["info"]
    assert set(facts) == FIELDS
    assert facts["description"]
    assert facts | {"description": ""} == {
        "fileSizeBytes": len(TEXT.encode()),
        "contentLength": len(TEXT),
        "isAvailable": True,
        "description": "",
        "lastModified": "2023-11-14T22:13:20Z",
    }
    assert info.structured_content == payload(info)
    assert payload(content) == {"status": "ok", "contentLength": len(TEXT), "content": TEXT}
    assert content.structured_content == payload(content)


@proves("kb.info.empty", "kb.content.empty")
async def test_an_empty_file_is_available_and_empty(connect: Connect, file: Path) -> None:
    file.touch()
    async with connect(file) as door:
        info = payload(await door.call("get_kb_info"))
        content = await door.call("get_kb_content")
    assert info["status"] == "available"
    assert (info["info"]["fileSizeBytes"], info["info"]["contentLength"]) == (0, 0)
    assert payload(content) == {"status": "empty", "contentLength": 0, "content": ""}
    assert not content.is_error


@proves("kb.info.unavailable", "kb.content.error")
async def test_a_missing_file_is_unavailable_and_an_error(connect: Connect, file: Path) -> None:
    async with connect(file) as door:
        info = await door.call("get_kb_info")
        content = await door.call("get_kb_content")
    assert not info.is_error
    assert payload(info)["status"] == "unavailable"
    assert set(payload(info)["info"]) == FIELDS
    assert payload(info)["info"]["isAvailable"] is False
    assert payload(info)["info"]["lastModified"] is None
    assert content.is_error
    assert content.structured_content is None
    assert payload(content) == {"status": "error", "error": "The knowledge base file does not exist: handbook.txt"}


@proves("kb.edge.not-configured")
async def test_without_a_configured_file_the_tools_say_so(connect: Connect) -> None:
    async with connect(None) as door:
        info = payload(await door.call("get_kb_info"))
        content = payload(await door.call("get_kb_content"))
    assert info["status"] == "unavailable"
    assert content["status"] == "error"
    assert "--kb-file" in content["error"]


@proves("kb.arguments")
async def test_arguments_nobody_asked_for_are_refused(connect: Connect, file: Path) -> None:
    file.write_text("text")
    async with connect(file) as door:
        answer = await door.call("get_kb_content", {"page": 2})
    assert answer.is_error
    assert payload(answer) == {"status": "error", "error": "Unknown parameter: page. Parameters: none"}


@pytest.fixture
async def door(file: Path) -> AsyncIterator[Door]:
    async with DOORS["memory-handshake"]([kb(file)]) as door:
        yield door


@proves("kb.edge.not-utf8", "kb.content.error", "kb.info.unavailable")
async def test_a_file_that_is_not_utf8_is_an_error(door: Door, file: Path) -> None:
    file.write_bytes(b"good until \xff here")
    info = payload(await door.call("get_kb_info"))
    content = await door.call("get_kb_content")
    assert info["status"] == "unavailable"
    assert info["info"]["fileSizeBytes"] == info["info"]["contentLength"] == 0
    assert info["info"]["lastModified"].endswith("Z")
    assert content.is_error
    assert "not valid UTF-8 (byte 11)" in payload(content)["error"]


@proves("kb.edge.io-error", "kb.content.error")
@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file whose read fails")
async def test_a_failing_read_is_an_error() -> None:
    async with DOORS["memory-handshake"]([kb(Path("/proc/self/mem"))]) as door:
        info = payload(await door.call("get_kb_info"))
        content = await door.call("get_kb_content")
    assert info["status"] == "unavailable"
    assert content.is_error
    assert set(payload(content)) == {"status", "error"}
    assert "cannot be read (Input/output error)" in payload(content)["error"]


@proves("kb.content.error")
async def test_folders_and_pipes_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        async with DOORS["memory-handshake"]([kb(path)]) as door:
            content = await door.call("get_kb_content")
        assert content.is_error
        assert payload(content)["status"] == "error"


async def test_a_folder_in_place_of_the_file_costs_no_descriptors(tmp_path: Path) -> None:
    async with DOORS["memory-handshake"]([kb(tmp_path)]) as door:
        await door.call("get_kb_content")
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(20):
            await door.call("get_kb_content")
        assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is locked for root")
async def test_a_locked_file_is_an_error(door: Door, file: Path) -> None:
    file.write_text("secret")
    file.chmod(0)
    assert payload(await door.call("get_kb_info"))["info"]["lastModified"]
    assert "Permission denied" in payload(await door.call("get_kb_content"))["error"]


@proves("kb.content.unmodified")
async def test_only_a_byte_order_mark_is_dropped(door: Door, file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    assert payload(await door.call("get_kb_content"))["content"] == TEXT
    assert payload(await door.call("get_kb_info"))["info"]["fileSizeBytes"] == len(TEXT.encode()) + 3


@proves("kb.reload")
async def test_changes_on_disk_are_noticed(door: Door, file: Path) -> None:
    file.write_text("first")
    assert payload(await door.call("get_kb_content"))["content"] == "first"
    file.write_text("second, longer")
    assert payload(await door.call("get_kb_content"))["content"] == "second, longer"
    file.unlink()
    assert payload(await door.call("get_kb_info"))["status"] == "unavailable"
    file.write_text("back")
    assert payload(await door.call("get_kb_content"))["content"] == "back"


@proves("kb.reload")
async def test_never_reloading_serves_the_text_of_the_start(file: Path) -> None:
    file.write_text("first")
    async with DOORS["memory-2026"]([kb(file, reload="never")]) as door:
        file.unlink()
        assert payload(await door.call("get_kb_content"))["content"] == "first"


@proves("kb.content.large")
@pytest.mark.parametrize("name", [name for name in DOORS if name not in ("http-handshake", "sse")] + [*STDIO_DOORS])
async def test_ten_megabytes_are_returned_whole(name: str, file: Path) -> None:
    """The official client refuses events above 1 MiB, which leaves out the two event-stream doors."""
    text = "Zeile mit Ümlauten\n" * 530_000
    assert len(text.encode()) > 10_000_000
    file.write_text(text)
    if name in STDIO_DOORS:
        async with stdio_client(STDIO_DOORS[name], "serve", "--toolsets", "kb", "--kb-file", str(file)) as client:
            answer = await client.call_tool("get_kb_content")
    else:
        async with DOORS[name]([kb(file)]) as door:
            answer = await door.call("get_kb_content")
    assert payload(answer) == {"status": "ok", "contentLength": len(text), "content": text}
    assert answer.structured_content is None


@proves("kb.startup")
def test_the_log_says_which_file_was_used(tmp_path: Path, file: Path) -> None:
    with listening("--kb-file", file, log=tmp_path / "log") as server:
        assert f"does not exist: handbook.txt ({file})" in server.log.read_text()
    file.write_text("text")
    with listening("--kb-file", file, "--log-format", "json", log=tmp_path / "log") as server:
        assert re.search(rf'"action": "kb_loaded", "message": "kb: loaded {file}, 4 bytes"', server.log.read_text())
