"""A full disk delays what was acknowledged, and loses nothing. `make soak` goes further."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soak.knowledge import call
from support.disks import SmallDisk, small_disk
from support.processes import Listening, bedstone, listening

FILES = 24
MAX_SECONDS = 60


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 48) as disk:
        yield disk


def states(server: Listening, tasks: dict[str, str]) -> dict[str, Any]:
    return {name: call(server, "task-status", {"task_id": task}) for name, task in tasks.items()}


def wait_for_end(server: Listening, tasks: dict[str, str]) -> dict[str, str]:
    """Return how each task ended, by its file."""
    deadline = time.monotonic() + MAX_SECONDS
    while True:
        ended = {name: state["status"] for name, state in states(server, tasks).items()}
        if not {"queued", "running"} & set(ended.values()):
            return ended
        assert time.monotonic() < deadline, ended
        time.sleep(0.1)


def wait_for_reason(server: Listening, tasks: dict[str, str]) -> str:
    """Return why a task waits for another attempt."""
    deadline = time.monotonic() + MAX_SECONDS
    while True:
        for state in states(server, tasks).values():
            if "message" in state:
                return str(state["message"])
        assert time.monotonic() < deadline
        time.sleep(0.1)


def health_of(server: Listening) -> Any:
    return call(server, "status", {})["health"]


def wait_for_health(server: Listening, expected: Any) -> None:
    """Wait until the server has noticed that there is room again."""
    deadline = time.monotonic() + MAX_SECONDS
    while (health := health_of(server)) != expected:
        assert time.monotonic() < deadline, health
        time.sleep(0.1)


def test_acknowledged_files_are_added_when_the_disk_has_room_again(disk: SmallDisk, tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.txt" for number in range(FILES)]
    for number, path in enumerate(files):
        path.write_text(f"subject{number}x " + "about the harbour and its ships. " * 400)
    options = ("--toolsets", "knowledge", "--data-dir", disk.folder / "data")
    with listening(*options, log=tmp_path / "log") as server:
        healthy = health_of(server)
        assert healthy["status"] == "healthy"
        assert server.request("GET", "/readyz")[0] == 200
        tasks = {path.name: call(server, "add", {"file_path": str(path)})["task_id"] for path in files[:-1]}
        disk.fill()
        refused = call(server, "add", {"file_path": str(files[-1])})
        assert not refused["success"]
        assert "No space left on device" in refused["message"]
        assert "for another attempt" in wait_for_reason(server, tasks)
        assert all(state["status"] != "failed" for state in states(server, tasks).values())
        sick = health_of(server)
        assert (sick["status"], sick["storage_accessible"]) == ("degraded", False)
        assert "Storage directory not accessible: No space left on device" in sick["issues"]
        assert any("to be read again" in issue for issue in sick["issues"])
        status, answer = server.request("GET", "/readyz")
        assert status == 503
        assert any("No space left" in problem for problem in json.loads(answer)["problems"])
        disk.free()
        assert set(wait_for_end(server, tasks).values()) == {"completed"}
        documents = call(server, "show", {})["documents"]
        assert {row["filename"] for row in documents} == set(tasks)
        assert {path.name for path in (disk.folder / "data" / "documents").glob("[!.]*")} == {
            row["id"] for row in documents
        }
        found = call(server, "search", {"query": f"subject{FILES - 2}x", "top_k": 1})
        assert found["results"][0]["filename"] == files[-2].name
        wait_for_health(server, healthy)
        assert "Traceback" not in server.log.read_text()


def test_little_room_is_told_before_it_is_none(disk: SmallDisk, tmp_path: Path) -> None:
    data = disk.folder / "data"
    (tmp_path / "a.txt").write_text("tide tables")
    assert bedstone("knowledge", "add", tmp_path / "a.txt", "--data-dir", data).returncode == 0
    disk.fill(but=2**20)
    health = json.loads(bedstone("knowledge", "status", "--data-dir", data).stdout)["health"]
    assert health["status"] == "degraded"
    assert health["issues"][0].startswith("Disk space is low: ")
    doctor = bedstone("doctor", "--data-dir", data)
    assert doctor.returncode == 1
    assert "Disk space is low" in " ".join(doctor.stdout.split())
