"""Run the demo on a cluster on this machine.

PostgreSQL, a bucket, three nodes of a search cluster, two servers, two workers, and HAProxy in front. `make cluster`
starts it; Ctrl-C ends every process and deletes their folders.
"""

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.balancer import haproxy
from support.bucket import bucket_server
from support.cluster import working
from support.opensearch import search_cluster
from support.postgres import PASSWORD, postgres_server
from support.processes import Listening, bedstone, listening

DEMO = Path(__file__).parents[1] / "demo"
LOAD_SECONDS = 300
STATUS_SECONDS = 30  # servers tell how far they are every three seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=3000, help="port of the balancer; 0 takes a free one")
    parser.add_argument("--folder", type=Path, help="where the data folders are; default: a new one")
    parser.add_argument("--without", default="", help="parts to leave out, separated by commas: bucket, search")
    options = parser.parse_args()
    left_out = {name.strip() for name in options.without.split(",")} - {""}
    if unknown := left_out - set(PARTS):
        parser.error(f"Unknown part {', '.join(sorted(unknown))}; --without takes {', '.join(PARTS)}.")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with ExitStack() as started:
        try:
            run(options.port, options.folder, left_out, started, stop)
        except pytest.skip.Exception as missing:
            sys.exit(f"Cannot start the cluster: {missing}")
        stop.wait()
        print("Stopping ...", flush=True)


def run(port: int, folder: Path | None, left_out: set[str], started: ExitStack, stop: threading.Event) -> None:
    """Start everything, load the demo, and print the address."""
    root = folder or Path(started.enter_context(tempfile.TemporaryDirectory(prefix="bedstone-cluster-")))
    root.mkdir(exist_ok=True)
    database = started.enter_context(postgres_server())
    say("PostgreSQL", f"127.0.0.1:{database.port}", database.process_id)
    environment: dict[str, Any] = {
        "BEDSTONE_STORAGE__DATABASE": database.network_address("cluster", password=""),
        "PGPASSWORD": PASSWORD,
    }
    for name, start in PARTS.items():
        if name not in left_out and not stop.is_set():
            environment |= start_part(name, start, started)
    if stop.is_set():
        return
    if "BEDSTONE_STORAGE__BLOBS" not in environment:
        environment["BEDSTONE_STORAGE__DOCUMENTS_PATH"] = str(root / "documents")
    watching = environment | {"BEDSTONE_STORAGE__WATCH": str(DEMO / "files")}
    servers = [start_server(root / f"server-{number}", started, environment) for number in (1, 2)]
    for number in (1, 2):
        place = root / f"worker-{number}"
        process = started.enter_context(working(place, root / f"worker-{number}.log", **watching))
        say("worker", place.name, process.pid)
    base = started.enter_context(haproxy([server.port for server in servers], port=port))
    wait_for_demo(servers[0], stop)
    deadline = time.monotonic() + STATUS_SECONDS
    while "behind" in (status := tell_status(root, environment)) and time.monotonic() < deadline:
        stop.wait(1)
    print(status, flush=True)
    print(f"The cluster is at {base}/ (agents: {base}/mcp).\nPress Ctrl-C to stop.", flush=True)


def start_bucket(started: ExitStack) -> dict[str, str]:
    """Start an S3 server; return what servers and workers need to know of it."""
    bucket = started.enter_context(bucket_server())
    say("bucket", bucket.endpoint, bucket.process_id)
    return {"BEDSTONE_STORAGE__BLOBS": bucket.address(prefix="demo"), **bucket.environment}


def start_search(started: ExitStack) -> dict[str, str]:
    """Start the nodes of a search cluster; return what servers and workers need to know of it."""
    cluster = started.enter_context(search_cluster())
    for node in cluster.nodes:
        say("search", node.address, node.process.pid if node.process is not None else 0)
    return {"BEDSTONE_SEARCH__INDEX": "opensearch", "BEDSTONE_OPENSEARCH__HOSTS": ",".join(cluster.addresses)}


PARTS: dict[str, Callable[[ExitStack], dict[str, str]]] = {"bucket": start_bucket, "search": start_search}
INSTEAD = {"bucket": "Originals are in a folder", "search": "Each server has its own index"}


def start_part(name: str, start: Callable[[ExitStack], dict[str, str]], started: ExitStack) -> dict[str, str]:
    """Start a part, or say in a line why the cluster does without it."""
    try:
        return start(started)
    except (pytest.skip.Exception, pytest.fail.Exception) as missing:
        print(f"{INSTEAD[name]}: {missing}", flush=True)
        return {}


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


def tell_status(root: Path, environment: dict[str, Any]) -> str:
    return bedstone("status", "--data-dir", root / "command", **environment).stdout


def say(what: str, where: str, process: int) -> None:
    print(f"{what:10}  {where}  process {process}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
