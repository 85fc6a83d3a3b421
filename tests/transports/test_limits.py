"""Limits on connections, sessions and attempts to log in, at a real server."""

import json
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

import pytest
from websockets.sync.client import connect

from bedstone.transports.attempts import FORGET_SECONDS, Attempts
from support.processes import BEDSTONE, Listening, listening

TOKEN = "a-long-made-up-token"
HALF_REQUEST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-"
HALF_BODY = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
ANSWERS = 20
BOTH = "application/json, text/event-stream"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process open more sockets than the server's process is allowed to."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def limited_files() -> tuple[str, ...]:
    """The command with the usual limit of open files."""
    return ("sh", "-c", 'ulimit -n 1024; exec "$0" "$@"', str(BEDSTONE))


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("start", [b"", HALF_REQUEST, HALF_BODY])
def test_a_newcomer_is_served_among_1100_half_requests(start: bytes, log: Path) -> None:
    with (
        listening(
            "--toolsets", "kb", log=log, program=limited_files(), BEDSTONE_LIMITS__HEADER_SECONDS="600"
        ) as server,
        ExitStack() as sockets,
    ):
        for _ in range(1100):
            half = sockets.enter_context(closing(socket.create_connection(("127.0.0.1", server.port), timeout=10)))
            half.sendall(start)
        assert server.request("GET", "/healthz")[0] == 200
        assert server.post("/mcp", LIST)[0] == 200


@pytest.mark.usefixtures("many_files")
def test_open_streams_do_not_shut_anyone_out(log: Path) -> None:
    with (
        listening("--toolsets", "kb", log=log, BEDSTONE_LIMITS__MAX_CONNECTIONS="40") as server,
        ExitStack() as sockets,
    ):
        for _ in range(60):
            sockets.enter_context(connect(f"ws://127.0.0.1:{server.port}/mcp", close_timeout=0.1))
        assert server.post("/mcp", LIST)[0] == 200
        with connect(f"ws://127.0.0.1:{server.port}/mcp") as newest:
            newest.send(json.dumps(INITIALIZE))
            assert json.loads(newest.recv(timeout=10))["id"] == 1


@pytest.mark.parametrize("parts", [(HALF_REQUEST,), (b"GET /healthz HTTP/1.1\r\n", *[b"X-A: b\r\n"] * 30)])
def test_slow_headers_end_the_connection(parts: tuple[bytes, ...], log: Path) -> None:
    """The limit is for all headers: sending one at a time does not extend it."""
    with (
        listening("--toolsets", "kb", log=log, BEDSTONE_LIMITS__HEADER_SECONDS="1") as server,
        closing(socket.create_connection(("127.0.0.1", server.port), timeout=10)) as slow,
    ):
        answer = b""
        slow.settimeout(0.1)
        deadline = time.monotonic() + 10
        queue = list(parts)
        while time.monotonic() < deadline:
            try:
                if queue:
                    slow.sendall(queue.pop(0))
                part = slow.recv(1000)
            except TimeoutError:
                continue
            except ConnectionError:
                break
            if not part:
                break
            answer += part
        else:
            raise AssertionError("the connection is still open")
        assert answer.startswith(b"HTTP/1.1 408")
        assert server.request("GET", "/healthz")[0] == 200


def test_a_body_that_does_not_come_ends_the_connection(log: Path) -> None:
    with (
        listening("--toolsets", "kb", log=log, BEDSTONE_LIMITS__STALL_SECONDS="1") as server,
        closing(socket.create_connection(("127.0.0.1", server.port), timeout=10)) as slow,
    ):
        slow.sendall(HALF_BODY)
        with suppress(ConnectionResetError):
            assert slow.recv(1000) == b""


def test_a_client_that_does_not_read_is_closed(log: Path, tmp_path: Path) -> None:
    text = tmp_path / "kb.txt"
    text.write_text("word " * 100_000)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_kb_content", "arguments": {}}}
    body = json.dumps(call).encode()
    head = HALF_BODY.removesuffix(b"{").replace(b"100", str(len(body)).encode())
    with (
        listening("--toolsets", "kb", "--kb-file", text, log=log, BEDSTONE_LIMITS__STALL_SECONDS="1") as server,
        closing(socket.socket()) as lazy,
    ):
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect(("127.0.0.1", server.port))
        lazy.settimeout(20)
        lazy.sendall((head + body) * ANSWERS)
        time.sleep(3)
        received = 0
        with suppress(ConnectionResetError):
            while part := lazy.recv(2**20):
                received += len(part)
        assert received < ANSWERS * text.stat().st_size
        assert server.request("GET", "/healthz")[0] == 200


def open_session(server: Listening) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    with closing(connection):
        headers = {"content-type": "application/json", "accept": BOTH}
        connection.request("POST", "/mcp", json.dumps(INITIALIZE), headers)
        response = connection.getresponse()
        response.read()
        return response.status, response.headers.get("mcp-session-id", "")


def use_session(server: Listening, name: str) -> int:
    return server.post("/mcp", LIST, accept=BOTH, mcp_session_id=name, mcp_protocol_version="2025-06-18")[0]


def test_sessions_that_idle_make_room_for_newcomers(log: Path) -> None:
    with listening("--toolsets", "kb", log=log, BEDSTONE_LIMITS__MAX_SESSIONS="50") as server:
        opened = [open_session(server) for _ in range(50)]
        assert {status for status, _ in opened} == {200}
        names = [name for _, name in opened]
        assert use_session(server, names[0]) == 200
        before = memory(server)
        later = [open_session(server)[0] for _ in range(2_000)]
        assert set(later) == {200}
        assert memory(server) - before < 20_000  # kilobytes; a session takes about 38
        assert use_session(server, open_session(server)[1]) == 200
        assert use_session(server, names[1]) == 404


def test_the_session_in_use_stays(log: Path) -> None:
    with listening("--toolsets", "kb", log=log, BEDSTONE_LIMITS__MAX_SESSIONS="5") as server:
        _, mine = open_session(server)
        for _ in range(20):
            assert open_session(server)[0] == 200
            assert use_session(server, mine) == 200


def test_a_session_that_listens_goes_after_idle_ones(log: Path) -> None:
    with listening("--toolsets", "kb", log=log, BEDSTONE_LIMITS__MAX_SESSIONS="3") as server:
        _, listener = open_session(server)
        with closing(HTTPConnection("127.0.0.1", server.port, timeout=30)) as stream:
            headers = {"accept": BOTH, "mcp-session-id": listener, "mcp-protocol-version": "2025-06-18"}
            stream.request("GET", "/mcp", headers=headers)
            assert stream.getresponse().status == 200
            for _ in range(10):
                assert open_session(server)[0] == 200
            assert use_session(server, listener) == 200


def memory(server: Listening) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


def log_in(server: Listening, token: str) -> tuple[int, str | None]:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
        headers = {"content-type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/login", urlencode({"token": token}), headers)
        response = connection.getresponse()
        response.read()
        return response.status, response.headers.get("retry-after")


def test_guesses_must_wait(log: Path) -> None:
    with listening("--toolsets", "kb", log=log, BEDSTONE_MCP__TOKEN=TOKEN) as server:
        statuses = [log_in(server, f"guess-{number}")[0] for number in range(20)]
        assert statuses[:5] == [401] * 5
        assert 429 in statuses
        status, wait = log_in(server, TOKEN)
        assert status == 429  # nothing is compared: a right guess would not be seen
        assert server.request("GET", "/healthz")[0] == 200
        time.sleep(int(wait or 0))
        assert log_in(server, TOKEN)[0] == 303


def test_tokens_of_agents_must_wait_too(log: Path) -> None:
    with listening("--toolsets", "kb", log=log, BEDSTONE_MCP__TOKEN=TOKEN) as server:
        for number in range(5):
            assert server.post("/mcp", LIST, authorization=f"Bearer guess-{number}")[0] == 401
        status, body = server.post("/mcp", LIST, authorization=f"Bearer {TOKEN}")
        assert (status, json.loads(body)["error"]["code"]) == (429, -32000)
        assert server.post("/mcp", LIST)[0] == 401  # without a token it does not count
        time.sleep(1)
        assert server.post("/mcp", LIST, authorization=f"Bearer {TOKEN}")[0] == 200


def test_a_client_with_an_old_token_does_not_stop_its_neighbours(log: Path) -> None:
    with listening("--toolsets", "kb", log=log, BEDSTONE_MCP__TOKEN=TOKEN) as server:
        for _ in range(30):
            assert server.post("/mcp", LIST, authorization="Bearer the-token-of-last-year")[0] == 401
        assert server.post("/mcp", LIST, authorization=f"Bearer {TOKEN}")[0] == 200


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_the_wait_doubles_up_to_a_limit_and_is_forgotten() -> None:
    clock = Clock()
    attempts = Attempts(free=3, max_wait_seconds=60, clock=clock)
    waits = []
    for number in range(12):
        clock.now += attempts.wait_seconds("192.0.2.1")
        attempts.record_failure("192.0.2.1", f"guess {number}")
        waits.append(attempts.wait_seconds("192.0.2.1"))
    assert waits == [0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
    assert attempts.wait_seconds("192.0.2.2") == 0
    clock.now += FORGET_SECONDS + 1
    attempts.record_failure("192.0.2.1", "guess")
    assert attempts.wait_seconds("192.0.2.1") == 0


def test_guesses_from_many_addresses_do_not_stop_those_that_know_the_token() -> None:
    clock = Clock()
    attempts = Attempts(clock=clock)
    attempts.record_success("192.0.2.1")
    for number in range(100):
        attempts.record_failure(f"198.51.100.{number}", f"guess {number}")
    assert attempts.wait_seconds("203.0.113.1") > 0
    assert attempts.wait_seconds("192.0.2.1") == 0
    clock.now += 61
    assert attempts.wait_seconds("203.0.113.1") == 0


def test_a_network_of_version_6_is_one_address() -> None:
    attempts = Attempts(free=2)
    attempts.record_failure("2001:db8::1", "one")
    attempts.record_failure("2001:db8::ffff:2", "two")
    assert attempts.wait_seconds("2001:db8::3") > 0
    assert attempts.wait_seconds("2001:db8:0:1::3") == 0
