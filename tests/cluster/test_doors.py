"""A base whose index is in a cluster, through the doors of the product: the command, and servers that die."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cluster import Cluster, call, files_found, wait_for
from support.opensearch import SearchCluster
from support.postgres import PostgresServer
from support.processes import BEDSTONE, Listening, bedstone

HANG_SECONDS = 3
BEATS_SECONDS = 15  # servers tell how far they are every three seconds
DEATHS = 3


@pytest.fixture
def environment(cluster: SearchCluster, tmp_path: Path) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("BEDSTONE_")},
        "BEDSTONE_DATA_DIR": str(tmp_path / "data"),
        "BEDSTONE_SEARCH__INDEX": "opensearch",
        "BEDSTONE_OPENSEARCH__HOSTS": ",".join(cluster.addresses),
        "BEDSTONE_OPENSEARCH__PREFIX": tmp_path.name.lower().replace("_", "-")[:40],
        "BEDSTONE_OPENSEARCH__USER": "reader",
        "BEDSTONE_OPENSEARCH__PASSWORD": "hidden-word",
    }


def run(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [BEDSTONE, *arguments], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hidden-word" not in done.stdout + done.stderr
    return done.stdout


def test_documents_are_added_found_and_checked(environment: dict[str, str], tmp_path: Path) -> None:
    for name, text in {"tulips": "Tulips are planted in autumn.", "boats": "A boat needs paint every spring."}.items():
        (tmp_path / f"{name}.txt").write_text(text)
        run(environment, "knowledge", "add", str(tmp_path / f"{name}.txt"))
    assert "tulips.txt" in run(environment, "knowledge", "search", "when are tulips planted")
    assert "is damaged" not in run(environment, "knowledge", "verify")
    status = json.loads(run(environment, "knowledge", "status"))
    assert "cluster" not in json.dumps(status.get("problems", ""))
    assert not (tmp_path / "data" / "index" / "words").exists()
    run(environment, "settings")


@pytest.fixture
def servers(cluster: SearchCluster, postgres: PostgresServer, tmp_path: Path) -> Iterator[Cluster]:
    """Servers on one PostgreSQL and one index, without a model."""
    hosts, prefix = ",".join(cluster.addresses), tmp_path.name.lower().replace("_", "-")[:40]
    settings = {"SEARCH__INDEX": "opensearch", "OPENSEARCH__HOSTS": hosts, "OPENSEARCH__PREFIX": prefix}
    found = Cluster.on(postgres, tmp_path, **{f"BEDSTONE_{name}": value for name, value in settings.items()})
    try:
        yield found
    finally:
        found.close()


def add_files(server: Listening, folder: Path, *names: str) -> None:
    for name in names:
        (folder / f"{name}.txt").write_text(f"All about {name}x, and nothing else.")
        assert call(server, "add", {"file_path": str(folder / f"{name}.txt")})["success"]


def finds(server: Listening, name: str) -> bool:
    return files_found(server, f"{name}x") == [f"{name}.txt"]


def test_another_server_writes_the_index_when_the_writer_is_gone(servers: Cluster, tmp_path: Path) -> None:
    """First it only hangs and keeps its lock: changes wait. Then it dies, and the other server takes over."""
    writer = servers.server("--toolsets", "knowledge")  # the first one takes the lock
    add_files(writer, tmp_path, "tulip")
    wait_for(lambda: finds(writer, "tulip"))
    other = servers.server("--toolsets", "knowledge")
    wait_for(lambda: finds(other, "tulip"))
    writer.process.send_signal(signal.SIGSTOP)
    add_files(other, tmp_path, "heron")
    time.sleep(HANG_SECONDS)
    assert not finds(other, "heron")
    assert finds(other, "tulip")
    writer.process.kill()
    writer.process.wait(10)
    wait_for(lambda: finds(other, "heron"))
    again = servers.server("--toolsets", "knowledge")
    wait_for(lambda: finds(again, "heron"))
    servers.worker()  # which writes and searches nothing, and so is not behind
    add_files(other, tmp_path, "plover")
    wait_for(lambda: finds(other, "plover"))
    wait_for(lambda: [item["role"] for item in servers.status()["servers"]].count("work") == 1)
    wait_for(lambda: not any(item["behind"] for item in servers.status()["servers"]), BEATS_SECONDS)


def test_writers_that_die_one_after_the_other_lose_nothing(servers: Cluster, tmp_path: Path) -> None:
    """Each dies at a random moment while files arrive; every file is found once at the end, by the last ones."""
    chance, added = random.Random(3), []
    alive = [servers.server("--toolsets", "knowledge") for _ in range(2)]
    for turn in range(DEATHS):
        names = [f"n{turn}part{number}" for number in range(8)]
        add_files(alive[1], tmp_path, *names)
        added += names
        time.sleep(chance.random())
        dying = alive.pop(0)
        dying.process.kill()
        dying.process.wait(10)
        alive.append(servers.server("--toolsets", "knowledge"))
    for server in alive:
        for name in added:
            wait_for(lambda server=server, name=name: finds(server, name))  # type: ignore[misc]
        assert call(server, "status", {})["knowledge_base"]["document_count"] == len(added)
    verified = bedstone(
        "knowledge", "verify", "--data-dir", tmp_path / "command", **dict[str, Any](servers.environment)
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
