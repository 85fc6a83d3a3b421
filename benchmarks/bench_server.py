"""Start-up and CPU per call compared with a bare SDK server in the same run: `make bench-server`.

The two servers take turns, and medians are compared: on a shared machine, ratios are steadier than times.
"""

import http.client
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from support.processes import BEDSTONE, clean_environment, free_port

HERE = Path(__file__).parent
HANDBOOK = HERE.parent / "demo" / "handbook.txt"
ROUNDS = 11
BLOCKS = 60
CALLS_PER_BLOCK = 40
MAX_START = 1.05  # CPU ratios to the bare SDK
MAX_CALL = 1.15
MAX_WALL = 1.3  # finds added waiting; on a busy machine wall time is too noisy for a tighter limit
MAX_MEMORY = 1.15
# Installed packages have byte code, so the servers must be able to write theirs.
ENVIRONMENT = {name: value for name, value in clean_environment().items() if name != "PYTHONDONTWRITEBYTECODE"}
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
CALL = {"name": "get_kb_info", "arguments": {}}

SERVERS = {
    "bare": [sys.executable, str(HERE / "bare_server.py")],
    "bedstone": [str(BEDSTONE), "serve", "--toolsets", "kb", "--kb-file", str(HANDBOOK), "--log-level", "error"],
}


def message(number: int, method: str, params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all threads, also of those that ended; /proc/PID/stat would count in steps of 10 ms."""
    return time.clock_gettime((~pid << 3) | 2)  # the clock that Linux numbers so for a process


def peak_megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


class Stdio:
    """A server over stdio."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT
        )
        self.pid = self.process.pid
        self.ask("initialize", INITIALIZE)
        self._send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')

    def ask(self, method: str, params: object) -> bytes:
        assert self.process.stdout
        self._send(message(1, method, params))
        return self.process.stdout.readline()

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(10)

    def _send(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line)
        self.process.stdin.flush()


@contextmanager
def over_http(name: str) -> Iterator[tuple[int, http.client.HTTPConnection]]:
    port = free_port()
    extra = [str(port)] if name == "bare" else ["--transport", "http", "--port", str(port)]
    process = subprocess.Popen(
        [*SERVERS[name], *extra], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT
    )
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for _ in range(600):
            try:
                connection.connect()
                break
            except OSError:
                time.sleep(0.05)
        yield process.pid, connection
    finally:
        process.terminate()
        process.wait(10)


def start(name: str) -> tuple[float, float]:
    """Return wall and CPU milliseconds from the start of the process to the answer of tools/list."""
    began = time.perf_counter()
    server = Stdio(SERVERS[name])
    assert b"get_kb_info" in server.ask("tools/list", {})
    wall, cpu = time.perf_counter() - began, cpu_seconds(server.pid)
    server.close()
    return wall * 1000, cpu * 1000


def memory(name: str) -> tuple[float]:
    server = Stdio(SERVERS[name])
    server.ask("tools/call", CALL)
    peak = peak_megabytes(server.pid)
    server.close()
    return (peak,)


@contextmanager
def stdio_calls(name: str) -> Iterator[tuple[int, Callable[[], bytes]]]:
    server = Stdio(SERVERS[name])
    try:
        yield server.pid, lambda: server.ask("tools/call", CALL)
    finally:
        server.close()


@contextmanager
def modern_http_calls(name: str) -> Iterator[tuple[int, Callable[[], bytes]]]:
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "get_kb_info",
    }
    with over_http(name) as (pid, connection):

        def call() -> bytes:
            connection.request("POST", "/mcp", message(1, "tools/call", CALL | {"_meta": META}), headers)
            return connection.getresponse().read()

        yield pid, call


@contextmanager
def session_http_calls(name: str) -> Iterator[tuple[int, Callable[[], bytes]]]:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    with over_http(name) as (pid, connection):
        connection.request("POST", "/mcp", message(1, "initialize", INITIALIZE), headers)
        response = connection.getresponse()
        response.read()
        headers |= {"mcp-session-id": response.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        connection.request("POST", "/mcp", b'{"jsonrpc": "2.0", "method": "notifications/initialized"}', headers)
        connection.getresponse().read()

        def call() -> bytes:
            connection.request("POST", "/mcp", message(2, "tools/call", CALL), headers)
            return connection.getresponse().read()

        yield pid, call


Samples = dict[str, list[tuple[float, ...]]]


def sample_runs(measure: Callable[[str], tuple[float, ...]]) -> Samples:
    """Measure processes that are started for each sample."""
    samples: Samples = {name: [] for name in SERVERS}
    for round_number in range(ROUNDS):
        for name in list(SERVERS)[:: 1 if round_number % 2 else -1]:
            samples[name].append(measure(name))
    return samples


def sample_calls(open_server: Callable[[str], AbstractContextManager[tuple[int, Callable[[], bytes]]]]) -> Samples:
    """Measure wall and CPU milliseconds of a call, with both servers running."""
    samples: Samples = {name: [] for name in SERVERS}
    with ExitStack() as running:
        servers = {name: running.enter_context(open_server(name)) for name in SERVERS}
        for _, call in servers.values():
            for _ in range(200):
                assert b"available" in call()
        for _ in range(BLOCKS):
            for name, (pid, call) in servers.items():
                samples[name].append(_measure_block(pid, call))
    return samples


def _measure_block(pid: int, call: Callable[[], bytes]) -> tuple[float, float]:
    began, before = time.perf_counter(), cpu_seconds(pid)
    for _ in range(CALLS_PER_BLOCK):
        call()
    wall, cpu = time.perf_counter() - began, cpu_seconds(pid) - before
    return wall / CALLS_PER_BLOCK * 1000, cpu / CALLS_PER_BLOCK * 1000


def report(label: str, limits: dict[str, float], samples: Samples) -> int:
    """Print a row per unit; return how many exceed their limit."""
    exceeded = 0
    for index, (unit, limit) in enumerate(limits.items()):
        bare, ours = (statistics.median(sample[index] for sample in samples[name]) for name in SERVERS)
        exceeded += ours / bare > limit
        print(f"| {label}, {unit} | {bare:.2f} | {ours:.2f} | {ours / bare:.2f} | {limit} |", flush=True)
    return exceeded


def main() -> int:
    for name in SERVERS:
        start(name)  # writes the byte code
    print("| what | bare SDK | Bedstone | ratio | at most |\n|---|---|---|---|---|")
    limits = {"wall ms": MAX_WALL, "CPU ms": MAX_CALL}
    exceeded = report("start to tools/list", limits | {"CPU ms": MAX_START}, sample_runs(start))
    exceeded += report("call over stdio", limits, sample_calls(stdio_calls))
    exceeded += report("call over HTTP 2026-07-28", limits, sample_calls(modern_http_calls))
    exceeded += report("call over HTTP 2025-06-18", limits, sample_calls(session_http_calls))
    return exceeded + report("peak memory over stdio", {"MB": MAX_MEMORY}, sample_runs(memory))


if __name__ == "__main__":
    sys.exit(main())
