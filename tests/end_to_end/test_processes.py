"""Whole processes: how they start, serve and end."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from support.doors import HANDSHAKE, payload
from support.processes import BEDSTONE, bedstone, clean_environment, free_port, listening, piped

ROOT = Path(__file__).resolve().parents[2]
HANDBOOK = ROOT / "demo" / "handbook.txt"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.mark.parametrize(
    "command",
    [
        [str(BEDSTONE), "--toolsets", "kb"],
        [sys.executable, "-m", "bedstone", "--toolsets", "kb"],
        [sys.executable, "-m", "bedstone.mcp_servers.kb.server"],
        [sys.executable, str(ROOT / "mcp_servers" / "kb" / "server.py")],
    ],
)
async def test_every_entry_point_serves_the_toolset_under_its_name(command: list[str]) -> None:
    arguments = [*command[1:], "--kb-file", str(HANDBOOK)]
    process = StdioServerParameters(command=command[0], args=arguments, env=clean_environment())
    async with Client(process, mode=HANDSHAKE) as client:
        assert client.server_info
        assert client.server_info.name == "kb"
        assert payload(await client.call_tool("get_kb_content"))["content"] == HANDBOOK.read_text()


@pytest.mark.parametrize("command", [["-m", "bedstone.mcp_servers.docs.server"], ["mcp_servers/docs/server.py"]])
async def test_the_docs_server_starts_alone(command: list[str], tmp_path: Path) -> None:
    bedstone("docs", "build", ROOT / "demo" / "docs", "--out", tmp_path / "index", "--embedding-provider", "none")
    arguments = [*command, "--docs-index", str(tmp_path / "index")]
    process = StdioServerParameters(command=sys.executable, args=arguments, env=clean_environment(), cwd=ROOT)
    async with Client(process, mode=HANDSHAKE) as client:
        assert client.server_info
        assert client.server_info.name == "docs"
        assert payload(await client.call_tool("search_docs", {"query": "rate limit"}))["hits"]


@pytest.mark.parametrize(
    "command", [["-m", "bedstone.mcp_servers.knowledge.server"], ["mcp_servers/knowledge/server.py"]]
)
async def test_the_knowledge_server_starts_alone(command: list[str], tmp_path: Path) -> None:
    arguments = [*command, "--data-dir", str(tmp_path)]
    process = StdioServerParameters(command=sys.executable, args=arguments, env=clean_environment(), cwd=ROOT)
    async with Client(process, mode=HANDSHAKE) as client:
        assert client.server_info
        assert client.server_info.name == "knowledge-server"
        assert payload(await client.call_tool("knowledge-show"))["message"] == "Knowledge base is empty"


def test_the_hub_has_its_own_name_and_an_alias_for_every_label(tmp_path: Path) -> None:
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    with listening("--kb-file", HANDBOOK, log=tmp_path / "log") as server:
        hub = json.loads(server.post("/mcp/initialize", initialize)[1])
        alone = json.loads(server.post("/kb/mcp/initialize", initialize)[1])
    assert hub["result"]["serverInfo"]["name"] == "bedstone"
    assert alone["result"]["serverInfo"]["name"] == "kb"


def test_a_listening_server_tells_a_person_where_it_is(tmp_path: Path) -> None:
    with listening("--kb-file", HANDBOOK, log=tmp_path / "log") as server:
        text = server.log.read_text()
        assert f"http://localhost:{server.port}/mcp" in text
        assert json.loads(text[text.index("{\n") : text.rindex("}") + 1])["mcpServers"]["bedstone"]["type"] == "http"
        status, page = server.request("GET", "/")
    assert status == 200
    assert b"Knowledge file" in page


@pytest.mark.parametrize(("transport", "open_path", "closed_path"), [("sse", "/messages/", "/mcp"), ("ws", "", "/sse")])
def test_single_network_transports_leave_the_others_out(
    tmp_path: Path, transport: str, open_path: str, closed_path: str
) -> None:
    with listening("--transport", transport, "--kb-file", HANDBOOK, log=tmp_path / "log") as server:
        assert server.post(closed_path, LIST)[0] == 404
        address = "/sse" if transport == "sse" else "/mcp"
        assert f"{'http' if transport == 'sse' else 'ws'}://localhost:{server.port}{address}" in server.log.read_text()
        if open_path:
            assert server.post(open_path, LIST)[0] == 400


def test_stdio_and_network_can_be_served_together() -> None:
    port = free_port()
    with piped("serve", "--transport", "all", "--port", str(port), "--kb-file", HANDBOOK) as client:
        client.say(PING)
        assert json.loads(client.stdout.readline())["result"] == {}
        _wait_for(port)
        client.stdin.close()
        assert client.process.wait(15) == 0


def test_without_an_input_all_serves_the_network(tmp_path: Path) -> None:
    with listening("--transport", "all", "--kb-file", HANDBOOK, log=tmp_path / "log") as server:
        assert server.post("/mcp/tools/list", LIST)[0] == 200
        busy = bedstone("serve", "--transport", "all", "--port", str(server.port), "--kb-file", HANDBOOK)
        assert busy.returncode == 1
        assert busy.stderr.count("\n") < 6
        assert "Cannot listen on" in busy.stderr


def test_a_client_that_is_gone_is_one_line_in_the_log() -> None:
    with piped("serve", "--kb-file", HANDBOOK) as client:
        client.stdout.close()
        client.say(PING)
        client.stdin.close()
        assert client.process.wait(15) == 0
        assert b"Traceback" not in client.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_server_with_open_streams(tmp_path: Path, number: signal.Signals) -> None:
    with listening("--kb-file", HANDBOOK, log=tmp_path / "log") as server:
        with socket.create_connection(("127.0.0.1", server.port)) as stream:
            stream.sendall(f"GET /sse HTTP/1.1\r\nHost: localhost:{server.port}\r\n\r\n".encode())
            assert b"200 OK" in stream.recv(200)
            server.process.send_signal(number)
            server.process.wait(10)
        assert "Traceback" not in server.log.read_text()
        assert "ERROR" not in server.log.read_text()


def test_ctrl_c_ends_a_stdio_server_at_once() -> None:
    with piped("serve", "--kb-file", HANDBOOK) as client:
        client.say(PING)
        client.stdout.readline()
        client.process.send_signal(signal.SIGINT)
        client.process.wait(10)
        assert b"Traceback" not in client.stderr.read()


def test_make_run_serves_the_demo() -> None:
    port = free_port()
    with subprocess.Popen(
        ["make", "-C", str(ROOT), "run", f"PORT={port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=clean_environment(),
        start_new_session=True,
    ) as process:
        try:
            _wait_for(port)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as page:
                assert "Knowledge file" in page.read().decode()
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(15)


def test_a_toolset_is_closed_before_the_process_ends(tmp_path: Path) -> None:
    """Whatever ends us: a toolset of another package writes a line when it is let go of."""
    package = tmp_path / "site"
    package.mkdir()
    (package / "diary.py").write_text(DIARY)
    info = package / "diary-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: diary\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[bedstone.toolsets]\nmy_diary = diary:Diary\n")
    page = tmp_path / "page"
    environment = {"PYTHONPATH": str(package), "DIARY": str(page)}
    for number in (signal.SIGTERM, signal.SIGINT):
        page.unlink(missing_ok=True)
        with listening("--toolsets", "my-diary", "--name", "secret", log=tmp_path / "log", **environment) as server:
            initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
            names = [
                json.loads(server.post(f"{prefix}/mcp/initialize", initialize)[1])["result"]["serverInfo"]["name"]
                for prefix in ("", "/my-diary", "/my_diary")
            ]
            assert names == ["secret", "diary", "diary"]
            assert json.loads(server.request("GET", "/readyz")[1])["servers"] == ["secret", "diary"]
            server.process.send_signal(number)
            server.process.wait(10)
        assert page.read_text() == "closed"
        page.unlink()
        with piped("--toolsets", "my_diary", **environment) as client:
            client.say(PING)
            client.stdout.readline()
            client.process.send_signal(number)
            client.process.wait(10)
        assert page.read_text() == "closed"


DIARY = """
import os
from contextlib import asynccontextmanager
from pathlib import Path

from bedstone.toolkit import Toolset


class Diary(Toolset):
    label, title, server_name = "my_diary", "Diary", "diary"

    @asynccontextmanager
    async def opened(self):
        yield
        Path(os.environ["DIARY"]).write_text("closed")
"""


def test_a_port_in_use_is_said_in_words(tmp_path: Path) -> None:
    with listening("--kb-file", HANDBOOK, log=tmp_path / "log") as server:
        second = bedstone("serve", "--transport", "http", "--port", str(server.port), "--kb-file", HANDBOOK)
    assert second.returncode == 1
    assert f"Cannot listen on 127.0.0.1, port {server.port}: Address already in use" in second.stderr
    assert "--port (make run PORT=...)" in second.stderr


def test_a_demo_org_whose_port_is_in_use_takes_a_free_one(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        options = ("--toolsets", "salesforce_graph", "--data-dir", tmp_path / "data")
        with listening(*options, log=tmp_path / "log", BEDSTONE_SALESFORCE__DEMO_PORT=str(port)) as server:
            body = {"name": "execute-soql", "arguments": {"query": "SELECT COUNT() FROM Account"}}
            status, answer = server.post("/mcp/tools/call", body)
    printed = (tmp_path / "log").read_text()
    (url,) = re.findall(r"demo org +(http://localhost:\d+)", printed)
    assert url != f"http://localhost:{port}"
    assert "The demo org uses a free port" in printed
    assert url in (tmp_path / "data" / "salesforce" / "orgs.json").read_text()
    assert status == 200, answer


def _wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"nothing listens on {port}")
