"""Roles without a shared database: one process answers, another one of the same data folder works."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.cluster import wait_for, working
from support.processes import Listening, bedstone, listening

NO_MODEL = {"BEDSTONE_EMBEDDING__PROVIDER": "none"}
SECRET = "a-long-made-up-secret-4711"


def status(folder: Path) -> dict[str, Any]:
    done = bedstone("status", "--json", "--data-dir", folder)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def call(server: Listening, tool: str, **arguments: Any) -> Any:
    message = {"name": f"knowledge-{tool}", "arguments": arguments}
    answer = json.loads(server.post("/knowledge/mcp/tools/call", message)[1])
    return json.loads(answer["result"]["content"][0]["text"])


def test_a_server_that_answers_leaves_the_work_to_a_worker_of_its_folder(tmp_path: Path) -> None:
    data = tmp_path / "data"
    nothing = {"queue": {"queued": 0, "running": 0, "failed": 0}, "works": False, "shared": False, "servers": []}
    assert status(data).items() >= nothing.items()
    (tmp_path / "gulls.txt").write_text("feed gulls at dawn")
    options = ("--toolsets", "knowledge", "--role", "answers", "--data-dir", data)
    with listening(*options, log=tmp_path / "log", **NO_MODEL) as server:
        task = call(server, "add", file_path=str(tmp_path / "gulls.txt"))["task_id"]
        assert call(server, "task-status", task_id=task)["status"] == "queued"
        assert status(data)["queue"]["queued"] == 1
        assert "No process reads files.\nFiles: 1 wait" in bedstone("status", "--data-dir", data).stdout
        with working(data, tmp_path / "worker.log", **NO_MODEL) as worker:
            wait_for(lambda: call(server, "task-status", task_id=task)["status"] == "completed")
            assert [hit["filename"] for hit in call(server, "search", query="gulls")["results"]] == ["gulls.txt"]
            assert status(data)["works"]
            assert "A process of this machine reads files." in bedstone("status", "--data-dir", data).stdout
        assert worker.returncode == 0
        assert not status(data)["works"]


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (("serve", "--role", "work"), {}, "Start it with `bedstone work`"),
        (("work",), {"BEDSTONE_READ_ONLY": "true"}, "A worker changes documents, and read_only is set."),
        (
            ("serve", "--transport", "http"),
            {"BEDSTONE_MCP__SECRET": "short"},
            "The secret in mcp.secret is easy to guess",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(
    arguments: tuple[str, ...], environment: dict[str, str], message: str, tmp_path: Path
) -> None:
    done = bedstone(*arguments, "--data-dir", tmp_path / "data", **dict[str, Any](environment))
    assert done.returncode != 0
    assert message in done.stderr


def test_a_secret_is_for_its_owner_only_and_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    file.chmod(0o644)
    given = ("serve", "--transport", "http", "--data-dir", tmp_path / "data")
    refused = bedstone(*given, BEDSTONE_MCP__SECRET_FILE=str(file))
    assert f"Other users of this machine can read the secret file {file}." in refused.stderr
    shown = bedstone("settings", BEDSTONE_MCP__SECRET=SECRET)
    assert "mcp.secret" in shown.stdout
    assert SECRET not in shown.stdout + shown.stderr + refused.stderr
    file.chmod(0o600)
    options = ("--toolsets", "kb", "--data-dir", tmp_path / "data", "--log-level", "debug")
    with listening(*options, log=tmp_path / "log", BEDSTONE_MCP__SECRET_FILE=str(file)) as server:
        assert server.request("GET", "/", headers={"accept": "text/html"})[0] == 200
    assert SECRET not in (tmp_path / "log").read_text()


def test_a_worker_ends_at_once_when_it_is_told_to(tmp_path: Path) -> None:
    with working(tmp_path / "data", tmp_path / "log", **NO_MODEL) as worker:
        wait_for(lambda: "Working on" in (tmp_path / "log").read_text())
        worker.terminate()
        try:
            assert worker.wait(10) == 0
        except subprocess.TimeoutExpired:
            pytest.fail("It did not end.")


def test_a_worker_that_cannot_work_says_why_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "data" / "index" / "knowledge.sqlite"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"not a store" * 1000)
    done = bedstone("work", "--data-dir", tmp_path / "data", BEDSTONE_EMBEDDING__PROVIDER="none")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"Error: The store {file} is damaged")
    assert "Traceback" not in done.stderr
