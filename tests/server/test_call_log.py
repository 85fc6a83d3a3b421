"""The log line of each call."""

import json
import logging
import subprocess
from pathlib import Path

import pytest
from mcp import MCPError

from contracts.requirements import proves
from support.doors import DOORS
from support.processes import BEDSTONE, clean_environment
from support.workshop import Workshop

CALLS = "bedstone.server.call_log"


def facts(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[dict[str, object]]:
    found = [item for item in caplog.records if item.name == CALLS and item.levelno == level]
    return [{k: v for k, v in getattr(item, "facts", {}).items() if k != "milliseconds"} for item in found]


@proves("kb.logging")
@pytest.mark.parametrize("name", ["memory-2026", "http-handshake", "plain", "websocket-bare"])
async def test_each_call_leaves_one_line_without_its_arguments(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with DOORS[name]([Workshop()]) as door:
        caplog.clear()
        await door.call("repeat", {"word": "confidential"})
        await door.call("repeat", {"word": ""})
        await door.read("shelf:///7")
        for tool in ("hammer", "break"):
            with pytest.raises(MCPError):
                await door.call(tool)
    assert facts(caplog) == [
        {"method": "tools/call", "name": "repeat", "outcome": "ok", "characters": 39},
        {"method": "tools/call", "name": "repeat", "outcome": "error", "error": "invalid_input"},
        {"method": "resources/read", "name": "shelf:///7", "outcome": "ok"},
        {"method": "tools/call", "name": "hammer", "outcome": "failed", "code": -32602},
        {"method": "tools/call", "name": "break", "outcome": "failed", "code": -32603},
    ]
    assert "confidential" not in caplog.text


async def test_arguments_are_logged_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, CALLS)
    async with DOORS["memory-2026"]([Workshop()]) as door:
        await door.call("repeat", {"word": "visible"})
    assert any("visible" in item.getMessage() for item in caplog.records if item.name == CALLS)


@proves("kb.logging")
def test_the_real_server_logs_calls_as_json_and_survives_a_client_that_reads_no_log(tmp_path: Path) -> None:
    """A pipe holds 64 KiB: 2,000 lines fill it several times."""
    (tmp_path / "kb.txt").write_text("Bees", encoding="utf-8")
    command = [str(BEDSTONE), "--toolsets", "kb", "--kb-file", str(tmp_path / "kb.txt")]
    environment = clean_environment() | {"BEDSTONE_LOG__FORMAT": "json"}
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "get_kb_info", "arguments": {}}}
    handshake = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake}]
    messages += [call | {"id": number} for number in range(1, 2_001)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=tmp_path
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        for message in messages:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == message["id"]
        process.stdin.close()
        lines = [json.loads(line) for line in process.stderr]
    calls = [line for line in lines if line.get("action") == "call"]
    assert len(calls) == 2_000
    assert calls[0]["message"].startswith("tools/call get_kb_info: ok in ")
    assert {"time", "level", "method", "name", "outcome", "milliseconds", "characters"} <= set(calls[0])
