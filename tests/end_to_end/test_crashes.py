"""A server that is killed loses nothing it acknowledged; hostile files cost it nothing. `make soak` goes further."""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from soak.knowledge import call, soak
from support.hostile import SECRET, write_hostile_files
from support.processes import Listening, listening

GROWTH_MB = 60  # what caches and arenas may have taken; one hostile file would take a multiple


def test_a_killed_server_loses_nothing() -> None:
    soak(kills=4, seed=3)


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
