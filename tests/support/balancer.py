"""The load balancers of docs/scaling.md, as it prints them, in front of servers on loopback."""

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import pytest

from support.processes import free_port, report_missing

DOCUMENT = Path(__file__).parents[2] / "docs" / "scaling.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SERVER = re.compile(r"^(\s*server )(?:(\w+) )?10\.0\.0\.(\d+):3000(.*)$", re.MULTILINE)
START_SECONDS = 20
NGINX = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{config}
}}
"""


@dataclass(frozen=True)
class Choice:
    """A balancer, and whether sessions of the handshake era exist behind it."""

    name: str

    @property
    def is_stateless(self) -> bool:
        return not self.name.endswith("-sticky")

    def run(self, ports: Sequence[int], port: int | None = None) -> AbstractContextManager[str]:
        """Run it in front of two servers."""
        if self.name == "nginx":
            return nginx(ports, port=port)
        return haproxy(ports, sticky=not self.is_stateless, port=port)


CHOICES = ("haproxy", "haproxy-sticky", "nginx")
chosen: Choice | None = None  # by --balancer


def choose(name: str | None) -> None:
    """Put all servers of tests behind a balancer, two each (support/replicas.py)."""
    global chosen  # noqa: PLW0603 - an option of the whole run
    chosen = Choice(name) if name else None


def server_count() -> int:
    """Return how many servers answer a test."""
    return 1 if chosen is None else 2


def printed(language: str) -> list[str]:
    """Return the configurations of a language that the documentation prints."""
    return [text for name, text in BLOCK.findall(DOCUMENT.read_text("utf-8")) if name == language]


@contextmanager
def haproxy(ports: Sequence[int], *, sticky: bool = False, port: int | None = None) -> Iterator[str]:
    """Run HAProxy; `sticky` adds what keeps sessions at their servers. Yield its address."""
    config, stickiness = printed("haproxy")
    if sticky:
        config = config.replace("backend any\n", f"backend any\n{stickiness}")
    port = port or free_port()
    config = _on_loopback(config, ports).replace("bind :8080", f"bind 127.0.0.1:{port}")
    with _folder() as folder:
        (folder / "haproxy.cfg").write_text(config)
        with _running(["haproxy", "-db", "-f", str(folder / "haproxy.cfg")], folder, port) as base:
            yield base


@contextmanager
def nginx(ports: Sequence[int], *, port: int | None = None) -> Iterator[str]:
    """Run nginx; yield its address."""
    (config,) = printed("nginx")
    port = port or free_port()
    config = _on_loopback(config, ports).replace("listen 8080", f"listen 127.0.0.1:{port}")
    with _folder() as folder:
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, config=config))
        with _running(["nginx", "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"], folder, port) as base:
            yield base


def _on_loopback(config: str, ports: Sequence[int]) -> str:
    """Replace the two servers of a configuration by those at some ports."""
    numbers = sorted(set(SERVER.findall(config)), key=lambda found: found[2])
    assert {number for _, _, number, _ in numbers} == {"11", "12"}

    def here(found: re.Match[str]) -> str:
        name = f"{found[2]} " if found[2] else ""
        return f"{found[1]}{name}127.0.0.1:{ports[int(found[3]) - 11]}{found[4]}"

    return SERVER.sub(here, config)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="bedstone-lb-"))
    folder.chmod(0o755)  # workers of nginx are another user's
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(command: list[str], folder: Path, port: int) -> Iterator[str]:
    program = shutil.which(command[0]) or shutil.which(command[0], path="/usr/sbin:/usr/local/sbin")
    if program is None:
        report_missing("load balancer", f"{command[0]} is not installed")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, *command[1:]], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not _answers(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"{command[0]} did not start:\n{(folder / 'log').read_text()}")
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
            if process.poll() is None:
                process.kill()
                process.wait(5)


def _answers(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
