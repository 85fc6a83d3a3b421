"""A server that is killed loses nothing it acknowledged; hostile files cost it nothing. `make soak` goes further."""

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from soak.knowledge import call, soak
from support.hostile import SECRET, write_hostile_files
from support.processes import Listening, listening
from support.scans import scanned_pdf

GROWTH_MB = 60  # what caches and arenas may have taken; one hostile file would take a multiple


def test_a_killed_server_loses_nothing() -> None:
    soak(kills=4, seed=3)


def test_a_file_outlives_kills_of_its_reader_and_of_the_server(tmp_path: Path) -> None:
    """Its reader is killed once, the server twice: none of that is the file's fault."""
    path = tmp_path / "scan.pdf"
    path.write_bytes(scanned_pdf(*[f"Chapter {number}\nThe tide of day {number}" for number in range(1, 7)]))
    options = ("--toolsets", "knowledge", "--data-dir", tmp_path / "data")
    with listening(*options, log=tmp_path / "log") as server:
        task = call(server, "add", {"file_path": str(path)})["task_id"]
        os.kill(wait_for_reader(server, task), signal.SIGKILL)
        assert "SIGKILL" in wait_for(lambda: call(server, "task-status", {"task_id": task}).get("message"))
        kill_while_reading(server, task)
    with listening(*options, log=tmp_path / "log") as server:
        kill_while_reading(server, task)
    with listening(*options, log=tmp_path / "log") as server:
        state = wait_for(lambda: ended(call(server, "task-status", {"task_id": task})))
        assert state["status"] == "completed"
        text = call(server, "get", {"document_id": state["result"]["document_id"]})["text"]
        assert text.count("The tide of day") == 6


def kill_while_reading(server: Listening, task: str) -> None:
    wait_for_reader(server, task)
    server.process.kill()
    server.process.wait(10)


def ended(state: Any) -> Any:
    return state if state["status"] not in ("queued", "running") else None


def wait_for(find: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60
    while not (found := find()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def wait_for_reader(server: Listening, task: str) -> int:
    """Return the process that reads the file of a running task."""

    def find() -> int | None:
        if call(server, "task-status", {"task_id": task})["status"] != "running":
            return None
        threads = Path(f"/proc/{server.process.pid}/task").iterdir()
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
        return next(iter(children), None)

    found: int = wait_for(find)
    return found


def memory_mb(server: Listening) -> float:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def test_hostile_files_leave_the_server_as_it_was(tmp_path: Path) -> None:
    files = write_hostile_files(tmp_path / "hostile")
    (tmp_path / "plain.txt").write_text("tulips")
    options = ("--toolsets", "knowledge", "--data-dir", tmp_path / "data")
    with listening(*options, log=tmp_path / "log") as server:
        call(server, "add", {"file_path": str(tmp_path / "plain.txt"), "async": False})
        call(server, "search", {"query": "tulips"})
        before = memory_mb(server)
        answers = [call(server, "add", {"file_path": str(path)}) for path in files]
        tasks = [answer["task_id"] for answer in answers if answer["success"]]
        assert len(tasks) > len(files) / 2
        deadline = time.monotonic() + 240
        states: list[Any] = []
        for task in tasks:
            while (state := call(server, "task-status", {"task_id": task})).get("status") in ("queued", "running"):
                assert time.monotonic() < deadline
                time.sleep(0.1)
            states.append(state)
        assert all(state["status"] in ("completed", "failed") for state in states)
        assert all(state.get("message") for state in states if state["status"] == "failed")
        while memory_mb(server) >= before + GROWTH_MB:  # it is given back just after the last task
            assert time.monotonic() < deadline
            time.sleep(0.1)
        found = call(server, "search", {"query": SECRET})
        assert SECRET not in json.dumps(found["results"])
        leftovers = list(Path(tempfile.gettempdir()).glob(f"bedstone-read-{server.process.pid}-*"))
        assert leftovers == []
