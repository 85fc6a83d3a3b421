"""The real product in processes of its own."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import pytest

BEDSTONE = Path(sys.executable).with_name("bedstone")
START_SECONDS = 30


@dataclass(frozen=True)
class Listening:
    """A server that listens."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """One HTTP exchange."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def post(self, path: str, message: object, **headers: str) -> tuple[int, bytes]:
        """Post JSON."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("POST", path, body, {"content-type": "application/json"} | named)


@dataclass(frozen=True)
class Pipes:
    """A server on pipes."""

    process: subprocess.Popen[bytes]
    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]

    def say(self, message: object) -> None:
        """Send one message."""
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()


def clean_environment() -> dict[str, str]:
    """The environment without anybody's Bedstone settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("BEDSTONE_")}


def bedstone(
    *arguments: str | Path, cwd: Path | None = None, program: Sequence[str | Path] = (BEDSTONE,), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; with `--balancer`, on the base that the servers share."""
    environment = _base_of(arguments) | environment
    return subprocess.run(
        [*program, *map(str, arguments)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        cwd=cwd,
        check=False,
        env=clean_environment() | environment,
    )


def listening(*arguments: str | Path, log: Path, **options: Any) -> AbstractContextManager[Listening]:
    """`bedstone serve --transport http` on a free port, or on the one that is given, ended at the end.

    With `--balancer`, two of them behind it.
    """
    from support import balancer, replicas  # noqa: PLC0415 - they start processes, too

    start = one_listening if balancer.chosen is None else replicas.two_listening
    return start(*arguments, log=log, **options)


@contextmanager
def one_listening(
    *arguments: str | Path, log: Path, program: Sequence[str | Path] = (BEDSTONE,), **environment: str
) -> Iterator[Listening]:
    """The one server."""
    environment = _base_of(arguments) | environment
    port = int(str(arguments[arguments.index("--port") + 1])) if "--port" in arguments else free_port()
    transport = [] if "--transport" in arguments else ["--transport", "http"]
    command: list[str | Path] = [*program, "serve", *transport, "--port", str(port), *map(str, arguments)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=clean_environment() | environment
        )
        try:
            server = Listening(process, port, log)
            _wait_until_healthy(server)
            yield server
        finally:
            process.terminate()
            process.wait(10)


@contextmanager
def piped(*arguments: str | Path, **environment: str) -> Iterator[Pipes]:
    """`bedstone` on pipes of ours, spoken to line by line; waited for at the end."""
    with subprocess.Popen(
        [BEDSTONE, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment() | environment,
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        yield Pipes(process, process.stdin, process.stdout, process.stderr)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def report_missing(what: str, problem: str) -> NoReturn:
    """Fail in CI, which has everything; skip elsewhere."""
    stop = pytest.fail if os.environ.get("CI") else pytest.skip
    stop(f"There is no {what} to test with: {problem}")


def _base_of(arguments: Sequence[object]) -> dict[str, str]:
    from support import balancer, replicas  # noqa: PLC0415 - they start processes, too

    return {} if balancer.chosen is None else replicas.environment(arguments)


def _wait_until_healthy(server: Listening) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            break
        try:
            if server.request("GET", "/healthz")[0] == http.client.OK:
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"The server did not start:\n{server.log.read_text()}")
