"""Run the demo on a cluster on this machine: PostgreSQL, two servers, two workers, and HAProxy in front.

`make cluster` starts it; Ctrl-C ends every process and deletes their folders.
"""

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.balancer import haproxy
from support.cluster import working
from support.postgres import PASSWORD, postgres_server
from support.processes import Listening, bedstone, listening

DEMO = Path(__file__).parents[1] / "demo"
LOAD_SECONDS = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=3000, help="port of the balancer; 0 takes a free one")
    parser.add_argument("--folder", type=Path, help="where the data folders are; default: a new one")
    options = parser.parse_args()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with ExitStack() as started:
        try:
            run(options.port, options.folder, started, stop)
        except pytest.skip.Exception as missing:
            sys.exit(f"Cannot start the cluster: {missing}")
        stop.wait()
        print("Stopping ...", flush=True)


def run(port: int, folder: Path | None, started: ExitStack, stop: threading.Event) -> None:
    """Start everything, load the demo, and print the address."""
    root = folder or Path(started.enter_context(tempfile.TemporaryDirectory(prefix="bedstone-cluster-")))
    root.mkdir(exist_ok=True)
    database = started.enter_context(postgres_server())
    say("PostgreSQL", f"127.0.0.1:{database.port}", database.process_id)
    # Nodes of a search cluster start here; `environment` tells servers and workers of them.
    environment: dict[str, Any] = {
        "BEDSTONE_STORAGE__DATABASE": database.network_address("cluster", password=""),
        "PGPASSWORD": PASSWORD,
        "BEDSTONE_STORAGE__DOCUMENTS_PATH": str(root / "documents"),
    }
    watching = environment | {"BEDSTONE_STORAGE__WATCH": str(DEMO / "files")}
    servers = [start_server(root / f"server-{number}", started, environment) for number in (1, 2)]
    for number in (1, 2):
        place = root / f"worker-{number}"
        process = started.enter_context(working(place, root / f"worker-{number}.log", **watching))
        say("worker", place.name, process.pid)
    base = started.enter_context(haproxy([server.port for server in servers], port=port))
    wait_for_demo(servers[0], stop)
    print(bedstone("status", "--data-dir", root / "command", **environment).stdout, flush=True)
    print(f"The cluster is at {base}/ (agents: {base}/mcp).\nPress Ctrl-C to stop.", flush=True)


def start_server(folder: Path, started: ExitStack, environment: dict[str, Any]) -> Listening:
    options = ("--toolsets", "knowledge,docs,kb", "--docs-dir", DEMO / "docs", "--kb-file", DEMO / "handbook.txt")
    log = folder.with_suffix(".log")
    server = started.enter_context(
        listening("--data-dir", folder, "--role", "answers", *options, log=log, **environment)
    )
    say("server", server.base, server.process.pid)
    return server


def wait_for_demo(server: Listening, stop: threading.Event) -> None:
    """Wait until the workers have read the watched files of the demo."""
    wanted = sum(path.is_file() and not path.name.startswith(".") for path in (DEMO / "files").rglob("*"))
    deadline = time.monotonic() + LOAD_SECONDS
    print(f"Reading {wanted} files of the demo ...", flush=True)
    while not stop.wait(0.5) and time.monotonic() < deadline:
        answer = server.post("/mcp/tools/call", {"name": "knowledge-status", "arguments": {}})[1]
        if f'\\"document_count\\":{wanted},'.encode() in answer and b"pending_count" not in answer:
            return


def say(what: str, where: str, process: int) -> None:
    print(f"{what:10}  {where}  process {process}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
