"""Several servers and workers on one PostgreSQL, each with a data folder of its own."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from support.postgres import PASSWORD, PostgresServer
from support.processes import BEDSTONE, Listening, bedstone, clean_environment, listening

TOKEN = "a-long-made-up-token"
BEARER = {"authorization": f"Bearer {TOKEN}"}
WAIT_SECONDS = 60
T = TypeVar("T")


@dataclass
class Cluster:
    """Starts servers and workers; ends those that are left."""

    folder: Path
    environment: Mapping[str, str]
    _stack: ExitStack = field(default_factory=ExitStack)
    _arguments: dict[int, tuple[str | Path, ...]] = field(default_factory=dict)  # of the server at a port
    _count: int = 0

    @classmethod
    def on(cls, postgres: PostgresServer, folder: Path, **environment: str) -> "Cluster":
        """Use a new schema. Originals are in one folder; everything else is each server's own."""
        given = {
            "BEDSTONE_STORAGE__DATABASE": postgres.network_address(password=""),
            "PGPASSWORD": PASSWORD,
            "BEDSTONE_STORAGE__DOCUMENTS_PATH": str(folder / "documents"),
            "BEDSTONE_EMBEDDING__PROVIDER": "none",
            "BEDSTONE_MCP__TOKEN": TOKEN,
        }
        return cls(folder, given | environment)

    def server(self, *arguments: str | Path, **environment: str) -> Listening:
        """Start a server, and wait until it listens."""
        name = self._name("server")
        given = ("--data-dir", self.folder / name, *arguments)
        server = self._stack.enter_context(
            listening(*given, log=self.folder / f"{name}.log", **{**self.environment, **environment})
        )
        self._arguments[server.port] = given
        return server

    def again(self, server: Listening) -> Listening:
        """Start a server again that has ended, at its port and with its data folder."""
        given, log = self._arguments[server.port], server.log.with_suffix(".again.log")
        port = ("--port", str(server.port))
        return self._stack.enter_context(listening(*given, *port, log=log, **dict[str, Any](self.environment)))

    def worker(self, **environment: str) -> "subprocess.Popen[bytes]":
        """Start a worker."""
        name = self._name("worker")
        return self._stack.enter_context(
            working(self.folder / name, self.folder / f"{name}.log", **{**self.environment, **environment})
        )

    def status(self) -> dict[str, Any]:
        """Return what `bedstone status` says."""
        done = bedstone("status", "--json", "--data-dir", self.folder / "command", **dict[str, Any](self.environment))
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def close(self) -> None:
        self._stack.close()

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._count}"


@contextmanager
def working(
    folder: Path, log: Path, program: Sequence[str | Path] = (BEDSTONE,), **environment: str
) -> "Iterator[subprocess.Popen[bytes]]":
    """`bedstone work`, ended at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*program, "work", "--data-dir", folder],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=clean_environment() | environment,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(20)


def call(server: Listening, tool: str, arguments: Mapping[str, Any]) -> Any:
    """Call a tool of the knowledge toolset."""
    message = {"name": f"knowledge-{tool}", "arguments": dict(arguments)}
    status, answer = server.post("/knowledge/mcp/tools/call", message, **BEARER)
    assert status == 200, answer
    return json.loads(json.loads(answer)["result"]["content"][0]["text"])


def files_found(server: Listening, query: str) -> list[str]:
    """Return the files that a search finds, each once."""
    results = call(server, "search", {"query": query}).get("results", [])
    return list(dict.fromkeys(hit["filename"] for hit in results))


def wait_for(find: Callable[[], T], seconds: float = WAIT_SECONDS) -> T:
    """Return the first true answer."""
    deadline = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.1)
    return found
