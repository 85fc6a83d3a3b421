"""Measure an MCP server over stdio or HTTP: latency, CPU time and memory.

The client speaks only the part of the protocol that an evaluation needs, so that its own cost stays small.
"""

import http.client
import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from bedstone import __version__
from bedstone.errors import Unavailable

PROTOCOL = "2025-06-18"
PROC = Path("/proc")
TIMEOUT_SECONDS = 120
EXITED = "The server exited before it answered. Run its command by itself to see why."


class Connection(Protocol):
    """A connection to a server; `pid` is the process of the server, if known."""

    pid: int | None

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return the reply."""

    def notify(self, method: str) -> None:
        """Send a notification."""

    def close(self) -> None:
        """Close the connection."""


class StdioServer:
    """A server started as a child process."""

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the command comes from the user
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise Unavailable(f"Cannot start {command[0]}: {error.strerror}.") from None
        self.pid: int | None = self._process.pid
        self._last_id = 0

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        assert self._process.stdout
        for line in self._process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict) and message.get("id") == self._last_id:
                return message
        raise Unavailable(EXITED)

    def notify(self, method: str) -> None:
        self._send({"jsonrpc": "2.0", "method": method})

    def close(self) -> None:
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        if self._process.stdout:
            self._process.stdout.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Unavailable(EXITED) from None


class HttpServer:
    """A running server with a streamable HTTP endpoint."""

    def __init__(self, url: str, pid: int | None = None, token: str | None = None) -> None:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._http = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS)
        self._path = parts.path or "/mcp"
        self._token = token
        self._session: str | None = None
        self._last_id = 0
        self.pid = pid

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        body = self._post(message)
        texts = [line[5:] for line in body.splitlines() if line.startswith("data:")] or [body]
        for text in texts:
            reply = json.loads(text) if text.strip().startswith("{") else None
            if isinstance(reply, dict) and reply.get("id") == self._last_id:
                return reply
        raise Unavailable(f"The server did not answer {method}.")

    def notify(self, method: str) -> None:
        self._post({"jsonrpc": "2.0", "method": method})

    def close(self) -> None:
        self._http.close()

    def _post(self, message: Mapping[str, Any]) -> str:
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if self._session:
            headers |= {"mcp-session-id": self._session, "mcp-protocol-version": PROTOCOL}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        try:
            self._http.request("POST", self._path, json.dumps(message), headers)
            response = self._http.getresponse()
            body = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"Cannot reach the server: {error}. Check --url.") from None
        self._session = response.getheader("mcp-session-id") or self._session
        return body


class Probe:
    """An initialized session with a server, and what it costs the server."""

    def __init__(self, connection: Connection) -> None:
        started = time.perf_counter()
        self._connection = connection
        hello = {
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "eval", "version": __version__},
        }
        connection.request("initialize", hello)
        connection.notify("notifications/initialized")
        tools = connection.request("tools/list", {}).get("result", {}).get("tools", [])
        self.tools: list[str] = [tool["name"] for tool in tools]
        self.last_error = ""
        self.ready_ms = (time.perf_counter() - started) * 1000

    def call(self, tool: str, arguments: Mapping[str, Any]) -> tuple[str | None, float]:
        """Return the text of the reply, or None for an error, and the elapsed milliseconds."""
        started = time.perf_counter()
        reply = self._connection.request("tools/call", {"name": tool, "arguments": arguments})
        elapsed = (time.perf_counter() - started) * 1000
        result = reply.get("result") or {}
        if "error" in reply or result.get("isError"):
            texts = [item.get("text", "") for item in result.get("content", [])]
            self.last_error = str(reply.get("error", {}).get("message") or " ".join(texts))
            return None, elapsed
        return str(result["content"][0]["text"]), elapsed

    def cpu_ms(self) -> float | None:
        """Return the CPU time of the server and its children, or None where the system does not report it."""
        totals = [
            sum(map(int, fields[11:13])) * 1000 / os.sysconf("SC_CLK_TCK")
            for pid in self._process_tree()
            if (fields := _read_stat(pid))
        ]
        return sum(totals) if totals else None

    def peak_rss_mb(self) -> float | None:
        """Return the peak memory of the server and its children."""
        totals = []
        for pid in self._process_tree():
            try:
                status = (PROC / str(pid) / "status").read_text()
            except OSError:
                continue
            totals += [int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")]
        return sum(totals) if totals else None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _process_tree(self) -> list[int]:
        if self._connection.pid is None or not PROC.is_dir():
            return []
        children: dict[int, list[int]] = {}
        for entry in PROC.iterdir():
            if entry.name.isdigit() and (fields := _read_stat(int(entry.name))):
                children.setdefault(int(fields[1]), []).append(int(entry.name))
        pids = [self._connection.pid]
        for pid in pids:  # the loop appends children
            pids += children.get(pid, [])
        return pids


def _read_stat(pid: int) -> list[str] | None:
    """Return the fields of a process that follow its name."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
