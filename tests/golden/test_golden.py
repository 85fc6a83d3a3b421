"""The answers of the demo server, recorded: a restructuring must not change them.

Everything goes through public doors (commands, HTTP), so the same file runs on the old and the new code.
`UPDATE_GOLDEN=1 pytest tests/golden` records again; a row that has only a request gets its answer then.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from golden.recording import Names, differences, load, save
from support.demo_org import Running, log_in
from support.processes import BEDSTONE, Listening, bedstone, listening

ROOT = Path(__file__).resolve().parents[2]
DATA_FOLDER = Path(__file__).parent / "data_folder" / "data.zip"
IS_UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))
MAX_SHOWN = 30
MAX_WAIT_SECONDS = 60
WATCHED_FILES = 4
LONG = {"«x*5000»": "x" * 5_000, "«x*100000»": "x" * 100_000}
OLD_FILES = {
    "anvils.md": ("how heavy is an anvil", "60 kilograms"),
    "first.txt": ("when does the ferry leave", "ferry leaves at seven"),
    "lamps.html": ("lamp in the shed", "40 watts"),
    "second.txt": ("lighthouse keeper", "feeds the gulls"),
    "third.txt": ("compass north", "points to the north"),
    "tulips.txt": ("when to plant tulip bulbs", "in autumn"),
}
OLD_TASKS = {  # by the ids in the archive: finished, failed, interrupted, queued
    "a38bfc2e-bf09-4a92-8897-6711129565a2": ("completed", "tulips.txt"),
    "cb45687e-b875-4703-bba8-6575ad8f4e58": ("failed", "broken.pdf"),
    "ee9f81cf-80dd-4950-92d5-2fa51fcb1a31": ("completed", "first.txt"),
    "b086eee4-680b-467d-a532-a99b3230767a": ("completed", "second.txt"),
    "c0409850-370a-4bc1-95c0-8ea9ed53edb2": ("completed", "third.txt"),
}
MESSAGE = ("type", "code", "clause", "line", "column", "message", "original", "corrected")


@dataclass(frozen=True)
class Demo:
    """The demo server, and the names of what differs in each run."""

    server: Listening
    names: Names

    def send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer: dict[str, Any] = json.loads(self.server.post(f"/mcp/{method}", request)[1])
        return {"error": answer["error"]} if "error" in answer else {"result": answer["result"]}

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool; of structured content only what the text does not already hold."""
        answer = self.send("tools/call", {"name": tool, "arguments": arguments})
        if "error" in answer:
            return answer
        result = answer["result"]
        (block,) = result["content"]
        try:
            said = json.loads(block["text"])
        except ValueError:
            said = block["text"]
        structured = result.get("structuredContent")
        told = {"answer": said, "is_error": result["isError"]}
        return told | ({} if structured == said else {"structured": structured})

    def wait(self, tool: str, arguments: dict[str, Any], status: str) -> dict[str, Any]:
        """Call a tool until it tells of this status."""
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        while (told := self.call(tool, arguments))["answer"].get("status") != status:
            assert time.monotonic() < deadline, told
            time.sleep(0.1)
        return told


@pytest.fixture(scope="module")
def demo_server(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """What `make run` serves, from a copy, with every tool; the org runs in a process of its own."""
    folder = tmp_path_factory.mktemp("golden")
    shutil.copytree(ROOT / "demo", folder / "demo", copy_function=shutil.copyfile)
    (folder / "broken.pdf").write_text("%PDF-1.4 without anything that belongs into one")
    config = folder / "demo" / "bedstone.toml"
    served = config.read_text().replace('"../.data/demo"', '"../data"')
    served = served.replace("demo_port = 3001\nsync_minutes = 60", 'more_tools = ["all"]')
    config.write_text(served)
    log_in(demo, folder / "data")
    described = ("--description", "Kestrel Fleet API (demo content)")
    for command in (
        ("docs", "build", folder / "demo" / "docs", *described),
        ("salesforce", "sync-schema"),
        ("salesforce", "sync-knowledge"),
    ):
        done = bedstone(*command, "--config", config)
        assert done.returncode == 0, done.stderr
    with listening("--config", config, log=folder / "log") as server:
        places = {"command": str(BEDSTONE), "folder": str(folder)}
        addresses = {"org": f"localhost:{demo.port}", "page": f"localhost:{server.port}"}
        names = Names(**places, **addresses, server=f"127.0.0.1:{server.port}")
        started = Demo(server, names)
        _wait_for_documents(started)
        yield started


def _wait_for_documents(demo: Demo) -> None:
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while _completed_documents(demo) < WATCHED_FILES:
        assert time.monotonic() < deadline, demo.server.log.read_text()
        time.sleep(0.2)
    demo.names.learn(demo.call("knowledge-show", {})["answer"])


def _completed_documents(demo: Demo) -> int:
    facts = demo.call("knowledge-status", {})["answer"]["knowledge_base"]
    return int(facts["document_count"]) - int(facts.get("pending_count", 0))


def _check(name: str, rows: list[dict[str, Any]], found: list[str]) -> None:
    """Fail for what differs, or record it."""
    if IS_UPDATE:
        save(name, rows)
    else:
        assert not found, f"{len(found)} differences:\n" + "\n".join(found[:MAX_SHOWN])


def test_reports_on_queries_are_as_recorded(demo_server: Demo) -> None:
    rows, found = [], []
    for row in load("soql.json"):
        query = row["query"]
        for short, long in LONG.items():
            query = query.replace(short, long)
        report = demo_server.call("validate-soql", {"query": query})["answer"]
        assert all(set(MESSAGE).issuperset(item) for item in report["messages"]), report
        made = {
            "valid": report["valid"],
            "messages": [[item.get(key) for key in MESSAGE] for item in report["messages"]],
            "corrected": report.get("correctedQuery"),
        }
        rows.append({"query": row["query"], **made})
        found += differences({**row}, rows[-1], row["query"][:100])
    assert len(rows) >= 700
    _check("soql.json", rows, found)


def test_questions_are_read_as_recorded(demo_server: Demo) -> None:
    rows, found = [], []
    for row in load("questions.json"):
        made = demo_server.call("natural-language-to-soql", {"question": row["question"]})
        meant = demo_server.call("mediate-query-intent", {"query": row["question"]})
        rows.append({"question": row["question"], "soql": made, "intent": meant})
        rows[-1] = demo_server.names.clean(rows[-1])
        found += differences({**row}, rows[-1], row["question"])
    assert len(rows) >= 115
    _check("questions.json", rows, found)


def test_calls_are_answered_as_recorded(demo_server: Demo) -> None:
    """The last test with this server: some of the calls change what it holds."""
    rows, found = [], []
    for number, row in enumerate(load("calls.json")):
        asked = {key: row[key] for key in ("method", "tool", "arguments", "until") if key in row}
        arguments = demo_server.names.fill(row["arguments"])
        if "method" in row:
            answer = demo_server.send(row["method"], arguments)
        elif "until" in row:
            answer = demo_server.wait(row["tool"], arguments, row["until"])
        else:
            answer = demo_server.call(row["tool"], arguments)
        demo_server.names.learn(answer)
        rows.append(asked | demo_server.names.clean(answer))
        found += differences({**row}, rows[-1], f"{number} {row.get('tool', row.get('method'))} {row['arguments']} ")
    assert len(rows) >= 200
    _check("calls.json", rows, found)


@pytest.fixture(scope="module")
def old_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A server on a copy of the data folder that data_folder/write.py wrote, without the org."""
    folder = tmp_path_factory.mktemp("old")
    shutil.unpack_archive(DATA_FOLDER, folder / "data")
    config = folder / "bedstone.toml"
    config.write_text('data_dir = "data"\n[salesforce]\narticle_source = "mirror"\n')
    with listening("--config", config, log=folder / "log") as server:
        yield Demo(server, Names(folder=str(folder)))


def test_documents_and_tasks_of_an_old_folder_are_there(old_folder: Demo) -> None:
    """What was done is found; what was queued or interrupted is done now; what failed stays failed."""
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while True:
        shown = old_folder.call("knowledge-show", {"sort_by": "filename", "sort_order": "asc"})["answer"]
        states = {row["filename"]: row["processing_status"] for row in shown["documents"]}
        if not {"pending", "processing", "queued", "running"} & set(states.values()):
            break
        assert time.monotonic() < deadline, states
        time.sleep(0.1)
    assert states.pop("broken.pdf") == "failed"
    assert states == dict.fromkeys(OLD_FILES, "completed")
    for filename, (query, passage) in OLD_FILES.items():
        (hit,) = old_folder.call("knowledge-search", {"query": query, "top_k": 1})["answer"]["results"]
        assert (hit["filename"], passage in hit["chunk_text"]) == (filename, True)
        whole = old_folder.call("knowledge-get", {"document_id": hit["document_id"]})
        assert passage in json.dumps(whole["answer"])
    for task, (status, filename) in OLD_TASKS.items():
        told = old_folder.call("knowledge-task-status", {"task_id": task})["answer"]
        assert (told["status"], filename in json.dumps(told)) == (status, status == "completed")


def test_the_context_of_an_old_folder_is_there(old_folder: Demo) -> None:
    shown = old_folder.call("knowledge-context-show", {"name": "garden"})["answer"]
    assert "tulips.txt" in json.dumps(shown)
    found = old_folder.call("knowledge-search", {"query": "anvil", "context": "garden"})["answer"]["results"]
    assert {row["filename"] for row in found} <= {"tulips.txt"}


def test_docs_articles_and_schema_of_an_old_folder_answer(old_folder: Demo) -> None:
    """The documentation is not there and the org does not run: all comes from the folder."""
    (hit,) = old_folder.call("search_docs", {"query": "rate limits", "limit": 1})["answer"]["hits"]
    assert hit["chunk_id"] == "guides/errors-and-retries.md#errors-and-retries/rate-limits"
    assert "100 requests a minute" in old_folder.call("get_doc", {"chunk_id": hit["chunk_id"]})["answer"]
    article = old_folder.call("get_article_by_id", {"article_id": "ka000000000000NAAQ"})["answer"]
    assert (article["article"]["title"], article["source"]) == ("Battery lost its capacity", "mirror")
    found = old_folder.call("search_articles", {"query": "battery lost capacity", "limit": 3})["answer"]["articles"]
    assert "ka000000000000NAAQ" in [row["id"] for row in found]
    report = old_folder.call("validate-soql", {"query": "SELECT Nmae FROM Bike__c LIMIT 1", "orgId": "kestrel"})
    assert report["answer"]["correctedQuery"] == "SELECT Name FROM Bike__c LIMIT 1"
    likely = {"query": "warranty claims", "orgId": "kestrel", "topK": 1}
    assert [row["apiName"] for row in old_folder.call("semantic-search", likely)["answer"]] == ["Warranty_Claim__c"]


def test_commands_read_an_old_folder(tmp_path: Path) -> None:
    shutil.unpack_archive(DATA_FOLDER, tmp_path / "data")
    listed = bedstone("knowledge", "list", "--json", "--data-dir", tmp_path / "data")
    names = {row["filename"] for row in json.loads(listed.stdout)["documents"]}
    assert names == {*OLD_FILES, "broken.pdf"}
    inspected = bedstone("docs", "inspect", "--json", "--data-dir", tmp_path / "data")
    assert (inspected.returncode, '"total_chunks": 28' in inspected.stdout) == (0, True), inspected
