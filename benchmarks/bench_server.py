"""Start-up and CPU per call beside a bare SDK server in the same run: `make bench-server`.

The two servers take turns, and the medians are compared: machines are shared and noisy, CPU time and ratios are steady.
"""

import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.processes import BEDSTONE, clean_environment, free_port

HERE = Path(__file__).parent
HANDBOOK = HERE.parent / "demo" / "handbook.txt"
ROUNDS, CALLS = 7, 400
TARGET_START, TARGET_CALL = 1.15, 1.3
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
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


class Stdio:
    """A server on pipes."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=clean_environment()
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
        [*SERVERS[name], *extra], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment()
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
    """Wall and CPU time from the start of the process to the answer of tools/list."""
    began = time.perf_counter()
    server = Stdio(SERVERS[name])
    assert b"get_kb_info" in server.ask("tools/list", {})
    wall, cpu = time.perf_counter() - began, cpu_seconds(server.pid)
    server.close()
    return wall * 1000, cpu * 1000


def milliseconds_per_call(pid: int, call: Callable[[], bytes]) -> tuple[float, float]:
    """Wall and CPU time of the server for one call."""
    for _ in range(50):
        assert b"available" in call()
    began, before = time.perf_counter(), cpu_seconds(pid)
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - began) / CALLS * 1000, (cpu_seconds(pid) - before) / CALLS * 1000


def stdio_call(name: str) -> tuple[float, float]:
    server = Stdio(SERVERS[name])
    try:
        return milliseconds_per_call(server.pid, lambda: server.ask("tools/call", CALL))
    finally:
        server.close()


def modern_http_call(name: str) -> tuple[float, float]:
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

        return milliseconds_per_call(pid, call)


def session_http_call(name: str) -> tuple[float, float]:
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

        return milliseconds_per_call(pid, call)


def memory(name: str) -> tuple[float]:
    server = Stdio(SERVERS[name])
    server.ask("tools/call", CALL)
    peak = peak_megabytes(server.pid)
    server.close()
    return (peak,)


def report(label: str, units: list[str], target: float, measurement: Callable[[str], tuple[float, ...]]) -> int:
    """Print a row per unit; the number of rows that miss their target."""
    samples: dict[str, list[tuple[float, ...]]] = {name: [] for name in SERVERS}
    for _ in range(ROUNDS):
        for name in SERVERS:
            samples[name].append(measurement(name))
    missed = 0
    for index, unit in enumerate(units):
        bare, ours = (statistics.median(sample[index] for sample in samples[name]) for name in SERVERS)
        missed += ours / bare > target
        print(f"| {label}, {unit} | {bare:.2f} | {ours:.2f} | {ours / bare:.2f} | {target} |", flush=True)
    return missed


def main() -> int:
    for name in SERVERS:
        start(name)  # writes the byte code
    print("| what | bare SDK | Bedstone | ratio | at most |\n|---|---|---|---|---|")
    times = ["wall ms", "CPU ms"]
    missed = report("start to tools/list", times, TARGET_START, start)
    missed += report("call over stdio", times, TARGET_CALL, stdio_call)
    missed += report("call over HTTP 2026-07-28", times, TARGET_CALL, modern_http_call)
    missed += report("call over HTTP 2025-06-18", times, TARGET_CALL, session_http_call)
    return missed + report("peak memory over stdio", ["MB"], TARGET_START, memory)


if __name__ == "__main__":
    sys.exit(main())
