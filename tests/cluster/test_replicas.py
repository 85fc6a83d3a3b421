"""Servers and workers behind the load balancers of docs/scaling.md: contracts, page journeys, kills under load.

`make test-cluster` runs this; it needs HAProxy and nginx.
"""

import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from support.balancer import haproxy, nginx
from support.cluster import TOKEN, Cluster, call, files_found, wait_for
from support.postgres import PostgresServer
from support.processes import Listening

ROOT = Path(__file__).parents[2]
FORM = {"content-type": "application/x-www-form-urlencoded"}
ANSWERS = ("--toolsets", "knowledge,kb", "--role", "answers")
KILLS = 6
MIN_PASSED = 4
OVER_HTTP = "not memory and not stdio"
# Parts of `make test-balancer`, which takes a quarter of an hour.
JOURNEYS = "dropped or removal or hostile or watched"


@pytest.fixture
def cluster(postgres: PostgresServer, tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "kb.txt").write_text("A line of the knowledge file")
    found = Cluster.on(postgres, tmp_path, BEDSTONE_KB__FILE_PATH=str(tmp_path / "kb.txt"))
    try:
        yield found
    finally:
        found.close()


def behind(base: str, server: Listening) -> Listening:
    """Return the balancer as if it were a server."""
    return replace(server, port=int(base.rpartition(":")[2]))


@pytest.mark.parametrize(
    ("balancer", "file", "chosen"),
    [
        ("haproxy-sticky", "contracts/test_mcp.py", OVER_HTTP),
        ("haproxy", "contracts/test_mcp.py", f"{OVER_HTTP} and not websocket and not sse"),
        ("nginx", "contracts/test_mcp.py", f"{OVER_HTTP} and (every_door or cancelled or hear or task or large)"),
        ("haproxy", "contracts/test_knowledge.py", "plain and (queued or filters or removing or pages or contexts)"),
        ("haproxy", "contracts/test_docs.py", "plain and (cursors or pages or meaning or chunk)"),
        ("haproxy", "browser/test_documents.py", JOURNEYS),
    ],
)
def test_the_contracts_hold_behind_a_balancer(balancer: str, file: str, chosen: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", f"tests/{file}", "--balancer", balancer]
    done = subprocess.run(
        [*command, "-k", chosen, "-p", "no:cacheprovider"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) >= MIN_PASSED


@pytest.mark.parametrize("run", [haproxy, nginx])
def test_a_visit_goes_to_all_servers(run: Any, cluster: Cluster) -> None:
    """Log in, add a file, find it and log out, each request at another server."""
    servers = [cluster.server(*ANSWERS), cluster.server(*ANSWERS)]
    cluster.worker()
    with run([server.port for server in servers]) as base:
        site = behind(base, servers[0])
        with closing(HTTPConnection("127.0.0.1", site.port, timeout=20)) as connection:
            connection.request("POST", "/login", urlencode({"token": TOKEN}), FORM)
            response = connection.getresponse()
            assert response.status == 303
            cookie = response.headers["set-cookie"].partition(";")[0]
        browser = {"cookie": cookie, "accept": "text/html"}
        page = site.request("GET", "/documents", headers=browser)[1].decode()
        token = page.partition('name="csrf" content="')[2].partition('"')[0]
        for number in range(4):
            headers = browser | {"x-csrf": token, "x-filename": f"{number}.txt"}
            status, answer = site.request("POST", "/documents", f"visit{number}x of the gulls".encode(), headers)
            assert status == 202, answer
            watched = site.request("GET", f"/tasks?ids={json.loads(answer)['task_id']}", headers=browser)[1]
            assert b"completed" in watched
        for number in range(4):
            finds_only(site, f"visit{number}x", f"{number}.txt")
        for _ in range(4):
            assert b"3.txt" in site.request("GET", "/documents", headers=browser)[1]
        assert site.request("POST", "/logout", urlencode({"csrf": token}).encode(), browser | FORM)[0] == 303
        time.sleep(1)
        assert {site.request("GET", "/documents", headers=browser)[0] for _ in range(4)} == {303}


def finds_only(server: Listening, query: str, name: str) -> None:
    wait_for(lambda: files_found(server, query) == [name])


class Load:
    """Adds files and searches through a balancer, and remembers what was acknowledged."""

    def __init__(self, site: Listening, folder: Path) -> None:
        self._site = site
        self._folder = folder
        self._stop = threading.Event()
        self.acknowledged: dict[str, str] = {}  # word -> task
        self.answered = 0
        self.failed: list[str] = []
        self._threads = [threading.Thread(target=work) for work in (self._add, self._search, self._search)]
        folder.mkdir()

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _add(self) -> None:
        number = 0
        while not self._stop.wait(0.15):
            number += 1
            word = f"subject{number}x"
            path = self._folder / f"{word}.md"
            path.write_text(f"# About {word}\n\n" + f"{word} is told at length. " * random.randint(1, 2000))
            with suppress(OSError, HTTPException, AssertionError, ValueError):  # not acknowledged
                answer = call(self._site, "add", {"file_path": str(path)})
                if answer.get("success"):
                    self.acknowledged[word] = answer["task_id"]

    def _search(self) -> None:
        while not self._stop.wait(0.05):
            try:
                found = call(self._site, "search", {"query": "told at length"})
            except (OSError, HTTPException, AssertionError, ValueError) as error:
                self.failed.append(repr(error)[:200])
            else:
                self.answered += "results" in found or "error" in found


def test_kills_under_load_lose_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """Replicas and workers are killed one after the other; one replica lives at any time."""
    chance = random.Random(7)
    with ExitStack() as started:
        replicas = [_fixed_server(cluster, started) for _ in range(2)]
        workers = [cluster.worker() for _ in range(2)]
        site = behind(started.enter_context(haproxy([item[0].port for item in replicas])), replicas[0][0])
        with Load(site, tmp_path / "load") as load:
            for number in range(KILLS):
                time.sleep(chance.uniform(1.5, 3.0))
                if number % 2:
                    place = chance.randrange(2)
                    os.kill(replicas[place][0].process.pid, 9)
                    replicas[place][0].process.wait(10)
                    time.sleep(1)
                    replicas[place] = (replicas[place][1](), replicas[place][1])
                else:
                    place = chance.randrange(2)
                    os.kill(workers[place].pid, 9)
                    workers[place].wait(10)
                    workers[place] = cluster.worker()
        wait_for(lambda: cluster.status()["queue"]["queued"] + cluster.status()["queue"]["running"] == 0, 180)
        assert len(load.acknowledged) > 20
        assert cluster.status()["queue"]["failed"] == 0
        for server, _ in replicas:
            for word in load.acknowledged:
                finds_only(server, word, f"{word}.md")
        counts = {call(server, "status", {})["knowledge_base"]["document_count"] for server, _ in replicas}
        assert len(counts) == 1
        assert counts.pop() >= len(load.acknowledged)
        # A request that was at the server which was killed is lost, and no other one.
        assert load.answered > 50
        assert len(load.failed) <= 2 * KILLS, load.failed


def _fixed_server(cluster: Cluster, started: ExitStack) -> tuple[Listening, Callable[[], Listening]]:
    """Start a server that can be started again on its port, with its data folder."""
    server = cluster.server(*ANSWERS)
    return server, lambda: cluster.again(server)


def test_make_cluster_starts_everything_and_ends_everything(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(ROOT / "scripts" / "cluster.py"),
        "--port",
        "0",
        "--folder",
        str(tmp_path / "cluster"),
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("Press Ctrl-C"):
                    break
            text = "".join(lines)
            port = int(re.findall(r"http://127\.0\.0\.1:(\d+)/", text)[0])
            site = Listening(process, port, tmp_path)  # type: ignore[arg-type]
            answer = site.post(
                "/mcp/tools/call", {"name": "knowledge-search", "arguments": {"query": "winter test of the battery"}}
            )[1]
            assert b"results" in answer, answer
            pids = [int(pid) for pid in re.findall(r"process (\d+)", text)]
            assert len(pids) >= (9 if "search  " in text else 6), text
            assert text.count("up to date") == 4, text
        finally:
            process.send_signal(2)
            process.wait(60)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
