"""Add files that try to take more than they give to a real server, and measure what they take: `make bombs`.

    soak/bombs.py [--size 1000000] [--hostile make_hostile.py] [NAME ...]

Each file ends as completed or with an error of its own within its time; the memory of the server and the disk stay
bounded; the server still answers a search while it works.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.bombs import BOMBS, REFUSED
from support.processes import Listening, listening

SIZE = 1_000_000
MAX_RATIO = 20  # bytes on disk for each byte of the file
MIN_FILE_BYTES = 64 * 2**10  # a smaller file counts as so much
MAX_SECONDS = 240
MAX_MEMORY_GROWTH_MB = 300
MAX_SEARCH_SECONDS = 5.0
MEGABYTE = 2**20


@dataclass(frozen=True)
class Outcome:
    """What one file took."""

    status: str
    seconds: float
    slowest_search: float
    memory_mb: float
    disk_ratio: float

    @property
    def problems(self) -> list[str]:
        """Return which limits it exceeded."""
        checks = {
            "no end": self.status in ("running", "queued"),
            "time": self.seconds > MAX_SECONDS,
            "search": self.slowest_search > MAX_SEARCH_SECONDS,
            "memory": self.memory_mb > MAX_MEMORY_GROWTH_MB,
            "disk": self.disk_ratio > MAX_RATIO,
        }
        return [name for name, is_exceeded in checks.items() if is_exceeded]


def call(server: Listening, tool: str, **arguments: Any) -> Any:
    """Call a tool, and return its answer."""
    params = {"name": f"knowledge-{tool}", "arguments": arguments}
    answer = json.loads(
        server.post("/mcp/tools/call", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})[1]
    )
    return json.loads(answer["result"]["content"][0]["text"])


@contextmanager
def warm_server(folder: Path, provider: str) -> Iterator[Listening]:
    """A server that has added and found a small file, so that everything is loaded before it is measured."""
    small = folder / "small.txt"
    small.write_text("The tide tables of the harbour are in the office.")
    settings = {"BEDSTONE_DATA_DIR": str(folder / "data"), "BEDSTONE_EMBEDDING__PROVIDER": provider}
    with listening("--toolsets", "knowledge", log=folder / "log.txt", **settings) as server:
        assert call(server, "add", **{"file_path": str(small), "async": False})["success"]
        assert call(server, "search", query="tide tables")["results"]
        yield server


def add(server: Listening, path: Path) -> tuple[str, float, float]:
    """Add a file; return how it ended, after how many seconds, and how many of them a search took at most."""
    started, slowest = time.monotonic(), 0.0
    answer = call(server, "add", file_path=str(path))
    status = answer.get("error") or "running"
    while status in ("queued", "running") and time.monotonic() - started < MAX_SECONDS:
        asked = time.monotonic()
        call(server, "search", query="tide tables of the harbour")
        slowest = max(slowest, time.monotonic() - asked)
        state = call(server, "task-status", task_id=answer["task_id"])
        status = state.get("status") or state["error"]
        time.sleep(0.05)
    return status, time.monotonic() - started, slowest


def measure(path: Path, folder: Path, provider: str) -> Outcome:
    """Add a file to a fresh server, and measure what it takes."""
    with warm_server(folder, provider) as server:
        before, memory = disk_bytes(folder / "data"), peak_memory(server.process.pid)
        status, seconds, slowest = add(server, path)
        growth = (peak_memory(server.process.pid) - memory) / MEGABYTE
    added = disk_bytes(folder / "data") - before
    return Outcome(status, seconds, slowest, growth, added / max(path.stat().st_size, MIN_FILE_BYTES))


def peak_memory(process: int) -> int:
    """Return the largest resident size a process has had, in bytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def disk_bytes(folder: Path) -> int:
    """Return the size of everything in a folder, without what SQLite has not moved into its file yet."""
    written = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))
    return sum(path.stat().st_size for path in written)


def files(folder: Path, size: int, hostile: Path | None, names: list[str]) -> list[Path]:
    """Write the files to add."""
    for name, make in BOMBS.items():
        (folder / name).write_bytes(make(size))
    found = [folder / name for name in BOMBS]
    if hostile is not None:
        more = folder / "hostile"
        subprocess.run([sys.executable, hostile, more], check=True, capture_output=True)
        expected = json.loads((more / "expected.json").read_text())
        found += [more / name for name in sorted(expected)]
    return [path for path in found if not names or path.name in names]


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Add every file, and say what each took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--hostile", type=Path, help="program that writes further files into a folder")
    parser.add_argument("--provider", default="hash")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "files").mkdir()
        for number, path in enumerate(files(Path(name) / "files", given.size, given.hostile, given.names)):
            folder = Path(name) / str(number)
            folder.mkdir()
            outcome = measure(path, folder, given.provider)
            problems = outcome.problems
            if path.name in BOMBS and given.size == SIZE and (outcome.status == "failed") != (path.name in REFUSED):
                problems.append("outcome")
            failures += bool(problems)
            say(
                f"{path.name:26} {path.stat().st_size:>9,} bytes  {outcome.status:20} {outcome.seconds:5.1f} s  "
                f"search {outcome.slowest_search:4.1f} s  memory +{outcome.memory_mb:4.0f} MB  "
                f"disk {outcome.disk_ratio:5.1f}x  {', '.join(problems)}"
            )
    say(f"{failures} exceeded their limits" if failures else "All within their limits")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
