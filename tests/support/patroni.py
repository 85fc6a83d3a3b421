"""A PostgreSQL primary and its synchronous standby: Patroni and etcd on loopback, started from packages.

A killed primary is replaced by the standby; what was confirmed is on both.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import yaml

from support.postgres import OTHER_USER, USER, find_programs, give_away, is_root, other_group
from support.processes import free_port, report_missing

CACHE = Path(__file__).parents[2] / ".cache" / "etcd"
ETCD_PACKAGE = "etcd-server"
START_SECONDS = 60
LEASE_SECONDS = 20  # the shortest that Patroni takes: how long a machine that is gone stays the primary
HOST_ACCESS = ("all", "replication")
PARAMETERS = {
    "fsync": "off",  # processes are killed here, not machines
    "wal_log_hints": "on",  # a primary that was killed can become the standby
    "max_connections": 150,
    "shared_buffers": "64MB",
    "autovacuum_naptime": 10,
    "wal_keep_size": "256MB",
}


@dataclass
class Member:
    """A Patroni with its PostgreSQL; both keep their ports after a kill."""

    name: str
    folder: Path
    port: int
    control_port: int
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def postmaster(self) -> int:
        """The process of PostgreSQL, or 0."""
        with suppress(OSError, ValueError, IndexError):
            return int((self.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        return 0


@dataclass
class DatabasePair:
    """Two members, of which one is the primary."""

    folder: Path
    members: Sequence[Member]
    programs: Path
    etcd_port: int
    _etcd: "subprocess.Popen[bytes] | None" = None
    _logs: list[Any] = field(default_factory=list)

    def address(self, schema: str) -> str:
        """Return an address that leads to the primary, whichever member that is."""
        hosts = ",".join(f"127.0.0.1:{member.port}" for member in self.members)
        return f"postgresql://{USER}@{hosts}/postgres?target_session_attrs=read-write&schema={schema}"

    def primary(self) -> Member | None:
        """Return the primary while a synchronous standby follows it, so that it can be replaced."""
        for member in self.members:
            state = {item["role"]: item for item in self._ask(member)}
            if {"leader", "sync_standby"} <= state.keys() and state["sync_standby"]["state"] == "streaming":
                return next(item for item in self.members if item.name == state["leader"]["name"])
        return None

    def kill(self, member: Member, *, with_patroni: bool) -> None:
        """End PostgreSQL at once; with its Patroni it is as if the machine had gone."""
        postmaster = member.postmaster
        if with_patroni and member.process is not None:
            member.process.kill()
            member.process.wait(10)
        with suppress(ProcessLookupError):
            if postmaster:
                os.kill(postmaster, 9)

    def start(self, member: Member) -> None:
        """Start a Patroni, which starts its PostgreSQL."""
        member.process = self._run([sys.executable, "-m", "patroni", str(member.folder / "patroni.yml")], member.name)

    def wait(self, seconds: float = START_SECONDS) -> None:
        """Wait until there is a primary with a standby."""
        deadline = time.monotonic() + seconds
        while self.primary() is None:
            if time.monotonic() > deadline:
                logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.log"))
                raise RuntimeError(f"There is no primary with a standby:\n{logs}")
            time.sleep(0.2)

    def start_all(self) -> None:
        """Start etcd, then the members."""
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, free_port()))
        options = ["--data-dir", str(self.folder / "etcd"), "--unsafe-no-fsync"]
        options += ["--listen-client-urls", client, "--advertise-client-urls", client]
        options += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        options += ["--initial-cluster", f"default={peer}"]
        self._etcd = self._run([find_etcd(), *options], "etcd")
        for member in self.members:
            self._configure(member)
            self.start(member)
        self.wait()

    def stop(self) -> None:
        """End everything at once."""
        for member in self.members:
            self.kill(member, with_patroni=True)
        if self._etcd is not None:
            self._etcd.kill()
            self._etcd.wait(10)

    def _configure(self, member: Member) -> None:
        member.folder.mkdir()
        give_away(member.folder)
        settings = {
            "scope": "soak",
            "name": member.name,
            "restapi": {
                "listen": f"127.0.0.1:{member.control_port}",
                "connect_address": f"127.0.0.1:{member.control_port}",
            },
            "etcd3": {"host": f"127.0.0.1:{self.etcd_port}"},
            "bootstrap": {
                "dcs": {
                    "ttl": LEASE_SECONDS,
                    "loop_wait": 1,
                    "retry_timeout": 3,
                    "primary_start_timeout": 0,  # a primary that crashed is replaced, not awaited
                    "synchronous_mode": True,
                    "postgresql": {"use_pg_rewind": True, "use_slots": True, "parameters": PARAMETERS},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "no-sync"],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{member.port}",
                "connect_address": f"127.0.0.1:{member.port}",
                "data_dir": str(member.folder / "data"),
                "bin_dir": str(self.programs),
                "pgpass": str(member.folder / "pgpass"),
                "parameters": {"unix_socket_directories": str(member.folder)},
                "pg_hba": ["local all all trust", *(f"host {what} all 127.0.0.1/32 trust" for what in HOST_ACCESS)],
                "authentication": {"superuser": {"username": USER}, "replication": {"username": "replicator"}},
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": True,
            },
        }
        (member.folder / "patroni.yml").write_text(yaml.safe_dump(settings))

    def _ask(self, member: Member) -> list[dict[str, Any]]:
        connection = HTTPConnection("127.0.0.1", member.control_port, timeout=3)
        try:
            connection.request("GET", "/cluster")
            found: list[dict[str, Any]] = json.loads(connection.getresponse().read())["members"]
        except (OSError, HTTPException, ValueError, KeyError):
            return []
        else:
            return found
        finally:
            connection.close()

    def _run(self, command: list[str], name: str) -> "subprocess.Popen[bytes]":
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [*_as_other_user(), *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )


@contextmanager
def database_pair() -> Iterator[DatabasePair]:
    """Run a primary and a standby until the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="bedstone-ha-"))
    give_away(folder)
    try:
        members = [Member(name, folder / name, free_port(), free_port()) for name in ("one", "two")]
        pair = DatabasePair(folder, members, find_programs(folder), free_port())
        try:
            pair.start_all()
            yield pair
        finally:
            pair.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def find_etcd() -> str:
    """Return the program; from Debian's package, unpacked, if it is not installed."""
    if installed := shutil.which("etcd"):
        return installed
    program = CACHE / "usr" / "bin" / "etcd"
    if not program.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        if shutil.which("apt-get") is None:
            report_missing("etcd", "it is not installed")
        done = subprocess.run(
            ["apt-get", "download", ETCD_PACKAGE], cwd=CACHE, capture_output=True, text=True, check=False
        )
        archives = sorted(CACHE.glob(f"{ETCD_PACKAGE}_*.deb"))
        if done.returncode or not archives:
            report_missing("etcd", f"it is not installed, and its package cannot be fetched: {done.stderr[-500:]}")
        subprocess.run(["dpkg", "-x", archives[-1], CACHE], check=True)
    return str(program)


def _as_other_user() -> list[str]:
    """Return what runs a program as the other user, who may read Python's packages wherever they are."""
    if not is_root():
        return []
    rights = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return ["setpriv", f"--reuid={OTHER_USER}", f"--regid={other_group()}", "--clear-groups", *rights]
