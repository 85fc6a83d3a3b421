"""Several servers and workers on one PostgreSQL, without a balancer in front of them."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode

import anyio
import httpx2
import mcp_types as wire
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.subscriptions import ToolsListChanged

from bedstone.search.embedders.hashing import HashingEmbedder
from support.cluster import BEARER, TOKEN, Cluster, call, files_found, wait_for
from support.doors import HANDSHAKE, MODERN, websocket_client
from support.postgres import PostgresServer
from support.processes import Listening
from support.scans import scanned_pdf

FORM = {"content-type": "application/x-www-form-urlencoded"}
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
STREAMS = {"accept": "application/json, text/event-stream"}


@pytest.fixture
def cluster(postgres: PostgresServer, tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster.on(postgres, tmp_path)
    try:
        yield found
    finally:
        found.close()


def write(folder: Path, name: str, text: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return str(folder / name)


def log_in(server: Listening) -> dict[str, str]:
    """Return the headers of a browser that has logged in."""
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        connection.request("POST", "/login", urlencode({"token": TOKEN}), FORM)
        response = connection.getresponse()
        assert response.status == 303
        return {"cookie": response.headers["set-cookie"].partition(";")[0], "accept": "text/html"}


def form_token(server: Listening, browser: dict[str, str]) -> str:
    page = server.request("GET", "/", headers=browser)[1].decode()
    return page.partition('name="csrf" content="')[2].partition('"')[0]


def opens(server: Listening, browser: dict[str, str]) -> bool:
    return server.request("GET", "/tools", headers=browser)[0] == 200


def page_of(server: Listening, cursor: str | None) -> Any:
    arguments = {"query": "charge", "limit": 1} | ({"cursor": cursor} if cursor else {})
    answer = server.post("/docs/mcp/tools/call", {"name": "search_docs", "arguments": arguments}, **BEARER)[1]
    return json.loads(json.loads(answer)["result"]["content"][0]["text"])


def test_one_login_one_form_one_cursor_and_one_session_for_all(cluster: Cluster, tmp_path: Path) -> None:
    """Each server built its own index of the same documentation."""
    for number in range(3):
        write(tmp_path / "pages", f"{number}.md", f"# Page {number}\n\nHow to charge battery {number} of a kite.")
    options = ("--toolsets", "docs,knowledge", "--docs-dir", tmp_path / "pages")
    first, second = cluster.server(*options), cluster.server(*options)
    browser, other = log_in(first), log_in(second)
    assert opens(second, browser)
    assert opens(first, other)
    token = form_token(first, browser)
    body = urlencode({"csrf": token}).encode()
    assert second.request("POST", "/logout", urlencode({"csrf": "0" * 64}).encode(), browser | FORM)[0] == 403
    assert second.request("POST", "/logout", body, browser | FORM)[0] == 303
    assert not opens(second, browser)
    wait_for(lambda: not opens(first, browser), 5)
    assert opens(first, other)
    begun = page_of(first, None)
    continued = page_of(second, begun["next_cursor"])
    assert len(continued["hits"]) == 1, continued
    assert continued["hits"][0]["chunk_id"] != begun["hits"][0]["chunk_id"]
    # A client of the handshake era is answered by any server, and is told that there is no stream to open.
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    status, answer = first.post("/mcp", message, **BEARER, **STREAMS)
    assert (status, b"serverInfo" in answer) == (200, True)
    version = {"mcp-protocol-version": "2025-06-18"}
    started = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert second.post("/mcp", started, **BEARER, **STREAMS, **version)[0] == 202
    listed = second.post("/mcp", {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, **BEARER, **STREAMS, **version)
    assert (listed[0], b"search_docs" in listed[1]) == (200, True)
    assert first.request("GET", "/mcp", headers=BEARER | version | {"accept": "text/event-stream"})[0] == 405


async def test_a_change_of_the_tools_reaches_the_clients_of_all_servers(cluster: Cluster) -> None:
    options = ("--toolsets", "conformance,knowledge", "--role", "answers")
    with anyio.fail_after(60):
        first, second = [await anyio.to_thread.run_sync(lambda: cluster.server(*options)) for _ in range(2)]
        change = {"name": "test_trigger_tool_change", "arguments": {}}
        heard = anyio.Event()

        async def hear(message: Any) -> None:
            if isinstance(message, wire.ToolListChangedNotification):
                heard.set()

        http = httpx2.AsyncClient(headers=BEARER)
        socket = websocket_client(f"{second.base}/mcp".replace("http", "ws"), headers=BEARER)
        async with (
            Client(streamable_http_client(f"{second.base}/mcp", http_client=http), mode=MODERN) as client,
            client.listen(tools_list_changed=True) as stream,
            Client(socket, mode=HANDSHAKE, message_handler=hear) as older,
        ):
            await older.list_tools()
            status, _ = await anyio.to_thread.run_sync(lambda: first.post("/mcp/tools/call", change, **BEARER))
            assert status == 200
            async for event in stream:
                assert event == ToolsListChanged()
                break
            await heard.wait()


def ended(server: Listening, task: Any) -> Any:
    """Return the state of a task once it has ended."""

    def find() -> Any:
        state = call(server, "task-status", {"task_id": task["task_id"]})
        return state if state["status"] not in ("pending", "queued", "running", "processing") else None

    return wait_for(find)


def finds_only(server: Listening, query: str, name: str) -> None:
    wait_for(lambda: files_found(server, query) == [name])


def test_a_file_added_where_nothing_is_read_is_read_by_a_worker(cluster: Cluster, tmp_path: Path) -> None:
    options = ("--toolsets", "knowledge", "--role", "answers")
    first, second = cluster.server(*options), cluster.server(*options)
    added = call(first, "add", {"file_path": write(tmp_path, "gulls.txt", "feed gulls at dawn")})
    issues = wait_for(lambda: call(second, "status", {})["health"].get("issues"))
    assert issues == ["1 file waits to be read, and no server reads files: start `bedstone work`"]
    assert cluster.status()["queue"] == {"queued": 1, "running": 0, "failed": 0}
    cluster.worker()
    done = [ended(server, added) for server in (first, second)]
    assert [item["status"] for item in done] == ["completed"] * 2
    reader = cluster.server("--toolsets", "knowledge", "--read-only")
    for server in (first, second, reader):
        finds_only(server, "gulls", "gulls.txt")
    wait_for(lambda: len(cluster.status()["servers"]) == 4)
    wait_for(lambda: {item["behind"] for item in cluster.status()["servers"] if item["role"] == "answers"} == {0})
    found = cluster.status()
    assert sorted(item["role"] for item in found["servers"]) == ["answers", "answers", "answers", "work"]
    assert found["works"]
    browser = log_in(first)

    def activity() -> str:
        return first.request("GET", "/activity", headers=browser)[1].decode()

    page = wait_for(lambda: text if "Works" in (text := activity()) else "")
    assert page.count('<td class="fixed">Answers</td>') >= 2
    assert not list(tmp_path.rglob("*.sqlite"))
    assert call(second, "remove", {"document_id": done[0]["result"]["document_id"], "confirm": True})["success"]
    wait_for(lambda: files_found(first, "gulls") == [])


@contextmanager
def embedding_service() -> Iterator[tuple[str, "Counter[str]"]]:
    """A service with OpenAI's protocol; yield its address, and how often it has embedded each text."""
    embedded: Counter[str] = Counter()
    model = HashingEmbedder()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
            embedded.update(texts)
            vectors = model.embed(texts).tolist()
            data = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
            content = json.dumps({"data": data}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as service:
        thread = Thread(target=service.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{service.server_port}/v1", embedded
        finally:
            service.shutdown()
            thread.join()


def test_no_passage_is_embedded_twice(cluster: Cluster, tmp_path: Path) -> None:
    """Each server and each worker has a cache of its own, as on a machine of its own."""
    names = [f"{number}.txt" for number in range(8)]
    with embedding_service() as (address, embedded):

        def settings(cache: str) -> dict[str, str]:
            return {
                "BEDSTONE_EMBEDDING__PROVIDER": "openai",
                "BEDSTONE_EMBEDDING__BASE_URL": address,
                "BEDSTONE_STORAGE__MODEL_CACHE_PATH": str(tmp_path / "caches" / cache),
                "BEDSTONE_PROCESSING__MAX_CONCURRENT_TASKS": "1",
            }

        def passages() -> dict[str, int]:
            return {text: count for text, count in embedded.items() if "subject" in text and "words" in text}

        def finds(server: Listening) -> None:
            wait_for(lambda: files_found(server, "what says subject3x")[:1] == ["3.txt"])
            assert embedded["what says subject3x"], "its index has the vectors"

        options = ("--toolsets", "knowledge", "--role", "answers")
        server = cluster.server(*options, **settings("first"))
        tasks = [
            call(server, "add", {"file_path": write(tmp_path, name, f"subject{name[0]}x " * 20 + "words")})
            for name in names
        ]
        workers = [cluster.worker(**settings("one")), cluster.worker(**settings("two"))]
        assert [ended(server, task)["status"] for task in tasks] == ["completed"] * len(names)
        finds(server)
        assert sorted(passages().values()) == [1] * len(names)
        for worker in workers:
            worker.terminate()
            worker.wait(20)
        cluster.worker(**settings("three"))
        later = cluster.server(*options, **settings("second"))
        finds(later)
        again = call(later, "add", {"file_path": write(tmp_path / "again", "3.txt", "subject3x " * 20 + "words")})
        assert ended(later, again)["status"] == "completed"
        fresh = call(later, "add", {"file_path": write(tmp_path, "new.txt", "subject9x " * 20 + "words")})
        assert ended(later, fresh)["status"] == "completed"
        assert sorted(passages().values()) == [1] * (len(names) + 1)


def test_what_a_killed_worker_did_is_done_by_another_one(cluster: Cluster, tmp_path: Path) -> None:
    """Files, their tasks, and a watched folder, which one worker at a time keeps in sync."""
    watched = tmp_path / "watched"
    write(watched, "0.txt", "subject0w " * 20)
    watching = {"BEDSTONE_STORAGE__WATCH": str(watched), "BEDSTONE_PROCESSING__MAX_CONCURRENT_TASKS": "1"}
    server = cluster.server("--toolsets", "knowledge", "--role", "answers")
    workers = [cluster.worker(**watching), cluster.worker(**watching)]
    finds_only(server, "subject0w", "0.txt")
    tasks = [
        call(server, "add", {"file_path": write(tmp_path, f"{number}.md", f"# Title\n\nsubject{number}x " * 4000)})
        for number in range(8)
    ]
    (watching_now,) = wait_for(lambda: [item for item in cluster.status()["servers"] if item["jobs"]])
    assert watching_now["jobs"] == [f"watch {watched}"]
    doomed = next(item for item in workers if item.pid == watching_now["process"])
    os.kill(doomed.pid, 9)
    doomed.wait(10)
    assert [ended(server, task)["status"] for task in tasks] == ["completed"] * 8
    for number in range(8):
        finds_only(server, f"subject{number}x", f"{number}.md")
    write(watched, "1.txt", "subject1w " * 20)
    finds_only(server, "subject1w", "1.txt")
    assert call(server, "status", {})["knowledge_base"]["document_count"] == 10
    wait_for(lambda: len(cluster.status()["servers"]) == 2)


def test_a_watched_folder_is_looked_at_again_from_any_server(cluster: Cluster, tmp_path: Path) -> None:
    watched = tmp_path / "watched"
    write(watched, "0.txt", "subject0w " * 20)
    servers = [cluster.server("--toolsets", "knowledge", BEDSTONE_STORAGE__WATCH=str(watched)) for _ in range(2)]
    browser = log_in(servers[0])

    def show(text: str) -> bool:
        pages = [server.request("GET", "/activity", headers=browser)[1].decode() for server in servers]
        return all(text in page for page in pages)

    wait_for(lambda: show("1 added"))
    (holder,) = wait_for(lambda: [item for item in cluster.status()["servers"] if item["jobs"]])
    other = next(server for server in servers if server.process.pid != holder["process"])
    body = urlencode({"csrf": form_token(other, browser)}).encode()
    assert other.request("POST", "/activity/sync/knowledge", body, browser | FORM)[0] == 303
    wait_for(lambda: show("Nothing changed"))


def test_progress_is_the_same_at_every_server(cluster: Cluster, tmp_path: Path) -> None:
    """Who asks one server and then another one never sees it go back."""
    servers = [cluster.server("--toolsets", "knowledge", "--role", role) for role in ("all", "answers")]
    (tmp_path / "scan.pdf").write_bytes(scanned_pdf(*[f"Tide table {page}" for page in range(10)]))
    task = call(servers[0], "add", {"file_path": str(tmp_path / "scan.pdf")})
    states = []
    for server in cycle(servers):
        states.append(call(server, "task-status", {"task_id": task["task_id"]}))
        if states[-1]["status"] not in ("queued", "running"):
            break
    shares = [state["progress"] for state in states if state["status"] == "running"]
    assert len(set(shares)) > 2
    assert shares == sorted(shares)


def test_a_task_is_watched_and_cancelled_from_another_server(cluster: Cluster, tmp_path: Path) -> None:
    server = cluster.server("--toolsets", "knowledge", "--role", "answers")
    cluster.worker()
    text = "\n\n".join(f"# Part {number}\n\n" + "words of a long text " * 400 for number in range(2000))
    long = call(server, "add", {"file_path": write(tmp_path, "long.md", text)})
    state = wait_for(
        lambda: (found := call(server, "task-status", {"task_id": long["task_id"]}))["status"] != "queued" and found
    )
    assert state["status"] == "running", state
    browser = log_in(server)
    headers = browser | {"x-csrf": form_token(server, browser)}
    status, answer = server.request("POST", f"/tasks/{long['task_id']}/cancel", headers=headers)
    assert (status, json.loads(answer)) == (200, {"cancelled": True})
    assert ended(server, long)["status"] == "cancelled"
    assert call(server, "status", {})["knowledge_base"]["document_count"] == 0
    assert not [path for path in (tmp_path / "documents").iterdir() if path.is_dir()]
