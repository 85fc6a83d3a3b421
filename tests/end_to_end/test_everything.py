"""One search over everything that `make run` serves: 40 questions, each with the source that answers it."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.demo_org import Running, log_in
from support.processes import Listening, bedstone, listening

ROOT = Path(__file__).parents[2]
QUESTIONS = json.loads((ROOT / "tests" / "fixtures" / "everything_questions.json").read_text(encoding="utf-8"))
MIN_RIGHT = 36
FIRST = 3
FILES = 4
MAX_WAIT_SECONDS = 60


@pytest.fixture(scope="module")
def config(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo content with its org synced."""
    folder = tmp_path_factory.mktemp("everything")
    shutil.copytree(ROOT / "demo", folder / "demo", copy_function=shutil.copyfile)
    config = folder / "demo" / "bedstone.toml"
    served = config.read_text().replace('"../.data/demo"', '"../data"')
    config.write_text(served.replace("demo_port = 3001\nsync_minutes = 60", ""))
    log_in(demo, folder / "data")
    for command in (
        ("docs", "build", folder / "demo" / "docs"),
        ("knowledge", "add", folder / "demo" / "files"),
        ("salesforce", "sync-schema"),
        ("salesforce", "sync-knowledge"),
    ):
        done = bedstone(*command, "--config", config)
        assert done.returncode == 0, done.stderr
    return config


@pytest.fixture(scope="module")
def server(config: Path) -> Iterator[Listening]:
    with listening("--config", config, log=config.parent / "log") as server:
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        while len(_call(server, "knowledge-show")["documents"]) < FILES:
            assert time.monotonic() < deadline, server.log.read_text()
            time.sleep(0.2)
        yield server


def _call(server: Listening, tool: str, **arguments: Any) -> Any:
    params = {"name": tool, "arguments": arguments}
    _, body = server.post("/mcp/tools/call", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    return json.loads(body)["result"]["structuredContent"]


def test_the_right_source_is_among_the_first_three(server: Listening) -> None:
    wrong = []
    for row in QUESTIONS:
        results = _call(server, "search", query=row["question"])["results"]
        if not any(hit["id"].startswith(tuple(row["ids"])) for hit in results[:FIRST]):
            wrong.append((row["question"], [hit["id"] for hit in results[:FIRST]]))
    assert len(QUESTIONS) >= 40
    assert {row["ids"][0].partition(":")[0] for row in QUESTIONS} == {"doc", "docs", "kb", "article", "object", "field"}
    assert len(QUESTIONS) - len(wrong) >= MIN_RIGHT, wrong


def test_what_a_search_finds_can_be_fetched_and_its_page_opened(server: Listening) -> None:
    for row in QUESTIONS[::3]:
        for hit in _call(server, "search", query=row["question"], limit=3)["results"]:
            fetched = _call(server, "fetch", id=hit["id"])
            assert fetched["text"], hit["id"]
            assert hit["url"].startswith(f"http://localhost:{server.port}/")
            status, page = server.request("GET", hit["url"].removeprefix(f"http://localhost:{server.port}"))
            assert status == 200, hit["url"]
            assert b"<mark" in page or b"found" in page or hit["source"] == "Schema", hit["url"]


def test_the_command_line_searches_the_same(config: Path) -> None:
    told = bedstone("search", "when", "to", "replace", "a", "brake", "disc", "--config", config)
    assert told.returncode == 0, told.stderr
    assert "1. Replacing a brake disc" in told.stdout
    assert "doc:porter-workshop-manual.pdf~" in told.stdout
    asked = ("search", "rate limits", "--in", "documentation", "--limit", "2", "--json", "--config", config)
    answer = json.loads(bedstone(*asked).stdout)
    assert [hit["source"] for hit in answer["results"]] == ["Documentation"] * len(answer["results"])
    wrong = bedstone("search", "x", "--in", "nowhere", "--config", config)
    assert wrong.returncode == 1
    assert "Unknown source 'nowhere'" in wrong.stderr
