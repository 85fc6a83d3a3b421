"""`bedstone migrate-data`: a base moves to PostgreSQL and back, and a server answers as before."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from soak.knowledge import call
from support.postgres import ENCODED_PASSWORD, PASSWORD, PostgresServer
from support.processes import BEDSTONE, Listening, bedstone, clean_environment, listening

SUBJECTS = {"tulips": "plant tulips in autumn", "gulls": "feed the gulls at dawn", "boats": "boats leave at noon"}
QUERIES = ("flowers of the autumn", "gulls", "when do the boats leave", "dawn")
MAX_KILLS = 30


def answers(server: Listening) -> dict[str, Any]:
    """Return what callers see: hits, collections, documents, figures."""
    seen = {
        "hits": {query: call(server, "search", {"query": query})["results"] for query in QUERIES},
        "contexts": call(server, "context-list", {}),
        "documents": call(server, "show", {})["documents"],
        "status": call(server, "status", {})["knowledge_base"],
    }
    same: dict[str, Any] = json.loads(json.dumps(seen).replace(f"localhost:{server.port}", "localhost"))
    return same


def add_documents(server: Listening, folder: Path) -> None:
    assert call(server, "context-create", {"name": "harbour", "description": "Boats"})["success"]
    for name, text in SUBJECTS.items():
        (folder / f"{name}.txt").write_text(text)
        contexts = {"contexts": ["harbour"]} if name == "boats" else {}
        added = call(server, "add", {"file_path": str(folder / f"{name}.txt"), "async": False} | contexts)
        assert added["success"], added


def moved(output: str) -> str:
    assert "all counts and digests agree" in output
    return output.rpartition("before you start a server:\n\n")[2]


def test_a_base_moves_to_postgresql_and_back(postgres: PostgresServer, tmp_path: Path) -> None:
    data, config = ("--data-dir", tmp_path / "data"), tmp_path / "bedstone.toml"
    options = ("--toolsets", "knowledge", *data)
    with listening(*options, log=tmp_path / "log") as server:
        add_documents(server, tmp_path)
        before = answers(server)
        # The server owns the store.
        refused = bedstone("migrate-data", "--to", postgres.address("early"), *data)
        assert "uses the store" in refused.stderr
        assert "Stop it, and run the command again" in refused.stderr
    assert before["hits"]["gulls"][0]["filename"] == "gulls.txt"
    address = postgres.network_address()
    done = bedstone("migrate-data", "--to", address, *data)
    assert done.returncode == 0, done.stderr
    assert f"Originals and texts of documents stay in {tmp_path / 'data' / 'documents'}" in done.stdout
    assert not [text for text in (PASSWORD, ENCODED_PASSWORD) if text in done.stdout + done.stderr]
    config.write_text(moved(done.stdout))
    settings: Any = {"PGPASSWORD": PASSWORD}
    with listening(*options, "--config", config, log=tmp_path / "log", **settings) as server:
        assert answers(server) == before
        (tmp_path / "later.txt").write_text("later the lighthouse is lit")
        assert call(server, "add", {"file_path": str(tmp_path / "later.txt"), "async": False})["success"]
        assert call(server, "search", {"query": "lighthouse"})["results"][0]["filename"] == "later.txt"
        before = answers(server)
        early = bedstone(
            "migrate-data", "--to", f"sqlite:{tmp_path / 'early.sqlite'}", *data, "--config", config, **settings
        )
        assert "uses the store" in early.stderr
        assert not (tmp_path / "early.sqlite").exists()
    verified = bedstone("knowledge", "verify", *data, "--config", config, **settings)
    assert verified.stdout.strip() == "No problems found."
    # Back: into a new file, because the old one is not empty.
    refused = bedstone("migrate-data", "--to", "sqlite:", *data, "--config", config, **settings)
    assert "is not empty: it has 3 documents" in refused.stderr
    back = tmp_path / "back" / "base.sqlite"
    done = bedstone("migrate-data", "--to", f"sqlite:{back}", *data, "--config", config, **settings)
    assert done.returncode == 0, done.stderr
    config.write_text(moved(done.stdout))
    with listening(*options, "--config", config, log=tmp_path / "log") as server:
        assert answers(server) == before
    # The first store is as it was; the documents folder would say so if it were another base.
    listed = json.loads(bedstone("knowledge", "list", "--json", *data).stdout)
    assert len(listed["documents"]) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="kills with SIGKILL")
def test_a_command_that_is_killed_is_repeated(postgres: PostgresServer, tmp_path: Path) -> None:
    data = ("--data-dir", tmp_path / "data")
    text = "\n\n".join(f"# Part {part}\n\nThe tulip number{part} flowers." * 3 for part in range(400))
    (tmp_path / "long.md").write_text(text)
    added = bedstone("knowledge", "add", tmp_path / "long.md", *data, BEDSTONE_EMBEDDING__PROVIDER="none")
    assert added.returncode == 0, added.stderr
    address, kills, finished = postgres.address(), 0, None
    for attempt in range(MAX_KILLS):
        command: list[str | Path] = [BEDSTONE, "migrate-data", "--to", address, *map(str, data)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment()
        )
        time.sleep(0.3 + attempt * 0.15)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        output, problems = process.communicate(timeout=60)
        if process.returncode == 0:
            finished = output
            break
        assert "Error" not in problems, problems
    assert kills
    assert finished is not None
    moved(finished)
    listed = bedstone("knowledge", "list", "--json", *data, BEDSTONE_STORAGE__DATABASE=address)
    assert [item["filename"] for item in json.loads(listed.stdout)["documents"]] == ["long.md"]


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        (
            "sqlite:other.sqlite",
            "The base is in sqlite already, and it can be moved between SQLite and PostgreSQL only",
        ),
        ("memory:", "A base can be moved from and to sqlite:… or postgresql:…, not from or to 'memory'"),
        ("postgresql://ann:se/cret@host/kb", "is not a valid address"),
        ("postgresql://127.0.0.1:1/kb", "does not exist, so there is nothing to move"),
    ],
)
def test_what_cannot_be_moved_is_refused(to: str, expected: str, tmp_path: Path) -> None:
    done = bedstone("migrate-data", "--to", to, "--data-dir", tmp_path / "data", cwd=tmp_path)
    assert done.returncode == 1
    assert expected in done.stderr
    assert "cret" not in done.stderr
    assert not list(tmp_path.rglob("*.sqlite"))
