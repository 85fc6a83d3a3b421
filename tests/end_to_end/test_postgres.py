"""The whole product on PostgreSQL: one server, with restarts and crashes of the server and of the database."""

import json
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from bedstone.store.opening import open_store
from soak.knowledge import call, soak
from support.postgres import ENCODED_PASSWORD, PASSWORD, PostgresServer
from support.processes import Listening, bedstone, listening

Serve = Callable[[], AbstractContextManager[Listening]]
START_SECONDS = 60


@pytest.fixture
def environment(postgres: PostgresServer) -> dict[str, Any]:
    """A new schema; the password is where libpq looks for it."""
    return {"BEDSTONE_STORAGE__DATABASE": postgres.network_address(password=""), "PGPASSWORD": PASSWORD}


@pytest.fixture
def serve(environment: dict[str, Any], tmp_path: Path) -> Serve:
    """Start a server on that schema, with one data folder."""
    options = ("--toolsets", "knowledge", "--data-dir", tmp_path / "data")
    return lambda: listening(*options, log=tmp_path / "log", **environment)


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def wait_for(find: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + START_SECONDS
    while not (found := find()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def ended(server: Listening, task: str) -> Any:
    def find() -> Any:
        state = call(server, "task-status", {"task_id": task})
        return state if state.get("status") not in ("queued", "running", None) else None

    return wait_for(find)


def is_ready(server: Listening) -> bool:
    return server.request("GET", "/readyz")[0] == 200


def best(server: Listening, query: str) -> str | None:
    """Return the file that a search finds first."""
    results = call(server, "search", {"query": query}).get("results")
    return results[0]["filename"] if results else None


def test_documents_are_added_searched_and_removed(serve: Serve, environment: dict[str, Any], tmp_path: Path) -> None:
    data = ("--data-dir", tmp_path / "data")
    with serve() as server:
        tulips = write(tmp_path, "tulips.txt", "plant tulips in autumn")
        added = call(server, "add", {"file_path": tulips, "async": False, "metadata": {"author": "Ada"}})
        later = call(server, "add", {"file_path": write(tmp_path, "gulls.md", "# Gulls\n\nfeed gulls at dawn")})
        assert added["success"]
        assert ended(server, later["task_id"])["status"] == "completed"
        assert best(server, "flowers of the autumn") == "tulips.txt"
        assert best(server, "gulls") == "gulls.md"
        found = call(server, "search", {"query": "dawn autumn", "filters": {"author": "Ada"}})
        assert [hit["filename"] for hit in found["results"]] == ["tulips.txt"]
        # Another process passes its work to the server, and sees what it did.
        other = write(tmp_path, "boats.txt", "boats leave at noon")
        assert bedstone("knowledge", "add", other, *data, **environment).returncode == 0
        assert best(server, "boats") == "boats.txt"
        assert call(server, "remove", {"document_id": added["document_id"], "confirm": True})["success"]
        assert is_ready(server)
        status = call(server, "status", {})
        assert (status["health"]["status"], status["knowledge_base"]["document_count"]) == ("healthy", 2)
    assert not list((tmp_path / "data").rglob("*.sqlite"))
    with serve() as server:  # a restart finds all of it
        assert best(server, "gulls") == "gulls.md"
        assert call(server, "get", {"document_id": added["document_id"]})["success"] is False
    assert bedstone("knowledge", "verify", *data, **environment).stdout.strip() == "No problems found."
    # The documents are not taken for those of another store.
    address = f"{environment['BEDSTONE_STORAGE__DATABASE']}_other"
    refused = bedstone("knowledge", "list", *data, **environment | {"BEDSTONE_STORAGE__DATABASE": address})
    place = address.replace("bedstone@", "")
    assert (
        f"The store {place} is missing or empty, but {tmp_path / 'data' / 'documents'} holds 2 documents"
        in refused.stderr
    )


def test_the_password_is_not_shown(postgres: PostgresServer, tmp_path: Path) -> None:
    address = postgres.network_address()
    config = tmp_path / "bedstone.toml"
    config.write_text(f'[storage]\ndatabase = "{address}&options=-csearch_path%3Dx"\n[log]\nlevel = "debug"\n')
    config.chmod(0o644)
    printed = [bedstone("settings", *more, "--config", config) for more in ((), ("--json",))]
    assert all("********@127.0.0.1" in item.stdout.replace("\n", "") for item in printed)
    assert f"Other users can read storage.database in {config}" in printed[0].stderr
    by_query = address.replace(f":{ENCODED_PASSWORD}", "") + f"&password={ENCODED_PASSWORD}"
    printed.append(bedstone("settings", "--json", BEDSTONE_STORAGE__DATABASE=by_query))
    path = write(tmp_path, "a.txt", "plant tulips in autumn")
    wrong = address.replace(ENCODED_PASSWORD, "wrong-tulip")
    for value, command in (
        (by_query, ("knowledge", "add", path)),
        (wrong, ("knowledge", "status")),
        (wrong, ("doctor",)),
    ):
        environment: dict[str, Any] = {"BEDSTONE_STORAGE__DATABASE": value, "BEDSTONE_LOG__LEVEL": "debug"}
        printed.append(
            bedstone(*command, "--data-dir", tmp_path / "data", BEDSTONE_EMBEDDING__PROVIDER="none", **environment)
        )
    text = "".join(item.stdout + item.stderr for item in printed)
    assert "password authentication failed" in text
    assert not [secret for secret in (PASSWORD, ENCODED_PASSWORD, "wrong-tulip") if secret in text]


def test_a_killed_server_loses_nothing(postgres: PostgresServer) -> None:
    soak(kills=2, seed=5, database=postgres.address())


def unfinished_tasks(postgres: PostgresServer, schema: str) -> bool:
    store = open_store(postgres.address(schema), read_only=True)
    try:
        return bool(store.count_tasks({"queued", "running"}))
    finally:
        store.close()


def test_a_database_that_crashes_costs_no_document(
    serve: Serve, environment: dict[str, Any], postgres: PostgresServer, tmp_path: Path
) -> None:
    """Meanwhile the server says what is wrong; it goes on by itself, also if it was started without its database."""
    acknowledged: dict[str, str] = {}
    (tmp_path / "watched").mkdir()
    environment |= {"BEDSTONE_STORAGE__WATCH": str(tmp_path / "watched"), "BEDSTONE_EMBEDDING__PROVIDER": "none"}
    schema = environment["BEDSTONE_STORAGE__DATABASE"].rpartition("=")[2]
    try:
        with serve() as server:
            for number in range(6):
                path = write(tmp_path, f"{number}.txt", f"subject{number}x " * 50)
                acknowledged[f"{number}.txt"] = call(server, "add", {"file_path": path})["task_id"]
            postgres.stop()
            status, answer = server.request("GET", "/readyz")
            assert status == 503
            assert f"PostgreSQL at 127.0.0.1:{postgres.port}/postgres" in json.loads(answer)["problems"][0]
            refused = call(server, "add", {"file_path": write(tmp_path, "late.txt", "late")})
            assert refused["success"] is False
            assert f"PostgreSQL at 127.0.0.1:{postgres.port}" in json.dumps(refused)
            write(tmp_path / "watched", "8.txt", "subject8x " * 50)
            time.sleep(3)  # so that the watcher looks at it, without a store
            postgres.start()
            wait_for(lambda: is_ready(server))
            wait_for(lambda: best(server, "subject8x") == "8.txt")
            for name, task in acknowledged.items():
                assert ended(server, task)["status"] == "completed"
                assert best(server, f"subject{name[0]}x") == name
            queued = call(server, "add", {"file_path": write(tmp_path, "9.txt", "subject9x " * 50)})
            os.kill(server.process.pid, 9)
            server.process.wait(10)
        postgres.stop()
        with serve() as server:
            time.sleep(1)
            postgres.start()
            wait_for(lambda: not unfinished_tasks(postgres, schema))  # before any call opens the knowledge base
            assert ended(server, queued["task_id"])["status"] == "completed"
            assert best(server, "subject9x") == "9.txt"
            assert call(server, "status", {})["knowledge_base"]["document_count"] == 8
    finally:
        postgres.stop()
        postgres.start()
