"""The MCP Inspector's command line, over every transport it knows."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.node import npx
from support.processes import BEDSTONE, Listening, listening

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
HANDBOOK = Path(__file__).resolve().parents[2] / "demo" / "handbook.txt"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    with listening("--toolsets", "kb", "--kb-file", HANDBOOK, log=tmp_path_factory.mktemp("log") / "log") as server:
        yield server


@pytest.fixture(params=["stdio", "http", "http-modern", "http-alone", "sse"])
def target(request: pytest.FixtureRequest, server: Listening) -> list[str]:
    return {
        "stdio": [str(BEDSTONE), "--toolsets", "kb", "--kb-file", str(HANDBOOK)],
        "http": [f"{server.base}/mcp", "--transport", "http"],
        "http-modern": [f"{server.base}/mcp", "--transport", "http", "--protocol-era", "modern"],
        "http-alone": [f"{server.base}/kb/mcp", "--transport", "http"],
        "sse": [f"{server.base}/sse", "--transport", "sse"],
    }[request.param]


def test_it_lists_the_tools_without_portability_problems(target: list[str]) -> None:
    listing = npx(INSPECTOR, "--cli", *target, "--method", "tools/list", "--strict", capture=True)
    assert listing.returncode == 0
    assert [tool["name"] for tool in json.loads(listing.stdout)["tools"]] == ["get_kb_info", "get_kb_content"]


def test_it_calls_a_tool(target: list[str]) -> None:
    answer = npx(INSPECTOR, "--cli", *target, "--method", "tools/call", "--tool-name", "get_kb_content", capture=True)
    assert answer.returncode == 0
    content = json.loads(json.loads(answer.stdout)["content"][0]["text"])
    assert content["content"] == HANDBOOK.read_text()
