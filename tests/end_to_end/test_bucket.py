"""The whole product with its files in a bucket: servers with folders of their own see the same documents."""

import json
import signal
import sqlite3
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import closing, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from bedstone.services.knowledge.tidying import TIDIED
from bedstone.store.opening import open_blobs, open_store
from soak.knowledge import call, kill
from support.bucket import SECRET, BucketServer
from support.postgres import PostgresServer
from support.processes import Listening, bedstone, listening

MANUAL = Path(__file__).parents[2] / "demo" / "files" / "porter-workshop-manual.pdf"
START_SECONDS = 60
MAX_FILES = 12  # between two kills: each is read by a process of its own
WITHOUT_MODEL: dict[str, Any] = {"BEDSTONE_EMBEDDING__PROVIDER": "none"}


def wait_for(find: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + START_SECONDS
    while not (found := find()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def is_ready(server: Listening) -> bool:
    return server.request("GET", "/readyz")[0] == 200


@pytest.fixture
def environment(bucket: BucketServer, postgres: PostgresServer) -> dict[str, Any]:
    """A new schema of a database, and a new prefix in a bucket."""
    places = {"BEDSTONE_STORAGE__DATABASE": postgres.address(), "BEDSTONE_STORAGE__BLOBS": bucket.address()}
    return {**bucket.environment, **WITHOUT_MODEL, **places}


def test_a_second_server_has_every_file_that_the_first_one_stored(
    environment: dict[str, Any], bucket: BucketServer, tmp_path: Path
) -> None:
    one, two = (("--toolsets", "knowledge", "--data-dir", tmp_path / name) for name in ("one", "two"))
    with listening(*one, log=tmp_path / "log1", **environment) as server:
        tulips = write(tmp_path, "tulips.txt", "plant tulips in autumn")
        added = call(server, "add", {"file_path": tulips, "async": False})
        manual = call(server, "add", {"file_path": str(MANUAL), "async": False})
        assert is_ready(server)
        assert (
            call(server, "status", {})["knowledge_base"]["storage_path"]
            == environment["BEDSTONE_STORAGE__BLOBS"].partition("?")[0]
        )
        with closing(open_store(environment["BEDSTONE_STORAGE__DATABASE"], read_only=True)) as store:
            wait_for(lambda: store.get_value(TIDIED))
    assert not (tmp_path / "one" / "documents").exists()
    with listening(*two, log=tmp_path / "log2", **environment) as server:
        got = call(server, "get", {"document_id": added["document_id"]})
        assert "plant tulips in autumn" in json.dumps(got)
        page = f"/documents/{manual['document_id']}"
        assert server.request("GET", f"{page}/original")[1] == MANUAL.read_bytes()
        status, picture = server.request("GET", f"{page}/pages/1.webp?width=640")
        assert (status, picture[:4]) == (200, b"RIFF")
        wait_for(lambda: call(server, "search", {"query": "tulips"}).get("results"))
        # The other server removes what the first one added.
        assert call(server, "remove", {"document_id": added["document_id"], "confirm": True})["success"]
    reader = ("--toolsets", "knowledge", "--read-only", "--data-dir", tmp_path / "reader")
    with listening(*reader, log=tmp_path / "log3", **environment) as server:
        assert is_ready(server)
        assert server.request("GET", f"{page}/original")[1] == MANUAL.read_bytes()
    data = ("--data-dir", tmp_path / "two")
    exported = bedstone("knowledge", "export", tmp_path / "all.zip", *data, **environment)
    assert exported.returncode == 0, exported.stderr
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert archive.read(f"documents/{manual['document_id']}/content.pdf") == MANUAL.read_bytes()
    verified = bedstone("knowledge", "verify", "--data-dir", tmp_path / "one", **environment)
    assert "No problems found." in verified.stdout, verified.stdout
    blobs = open_blobs(environment["BEDSTONE_STORAGE__BLOBS"], tmp_path / "cache")
    assert {blob.key.partition("/")[0] for blob in blobs.list()} == {".store-id", manual["document_id"]}
    # An import goes through the bucket as well.
    other = environment | {"BEDSTONE_STORAGE__BLOBS": bucket.address()}
    other["BEDSTONE_STORAGE__DATABASE"] += "_imported"
    data = ("--data-dir", tmp_path / "three")
    imported = bedstone("knowledge", "import", tmp_path / "all.zip", *data, **other)
    assert imported.returncode == 0, imported.stderr
    verified = bedstone("knowledge", "verify", *data, **other)
    assert "No problems found." in verified.stdout, verified.stdout


def test_a_file_that_one_server_accepted_is_read_by_another_one(environment: dict[str, Any], tmp_path: Path) -> None:
    one, two = (("--toolsets", "knowledge", "--data-dir", tmp_path / name) for name in ("one", "two"))
    path = write(tmp_path, "tulips.txt", "plant tulips in autumn " * 2_000)
    with listening(*one, log=tmp_path / "log1", **environment) as server:
        call(server, "status", {})
        task = call(server, "add", {"file_path": path})["task_id"]
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(10)
    Path(path).unlink()  # only the bucket has it now
    with listening(*two, log=tmp_path / "log2", **environment) as server:
        wait_for(lambda: call(server, "task-status", {"task_id": task}).get("status") == "completed")


def test_a_bucket_that_is_away_costs_no_document(bucket: BucketServer, tmp_path: Path) -> None:
    """With SQLite: the server says what is wrong, and goes on by itself; also one that is started meanwhile."""
    with bucket.gate() as gate:
        address = bucket.address(endpoint=f"http://127.0.0.1:{gate.port}")
        environment: dict[str, Any] = {**bucket.environment, **WITHOUT_MODEL, "BEDSTONE_STORAGE__BLOBS": address}
        data = ("--data-dir", tmp_path / "data")
        with listening("--toolsets", "knowledge", *data, log=tmp_path / "log", **environment) as server:
            first = call(server, "add", {"file_path": write(tmp_path, "a.txt", "plant tulips"), "async": False})
            assert first["success"]
            gate.close()
            refused = call(server, "add", {"file_path": write(tmp_path, "b.txt", "feed gulls"), "async": False})
            assert refused["success"] is False
            assert f"http://127.0.0.1:{gate.port} does not answer" in json.dumps(refused)
            status, body = server.request("GET", "/readyz")
            assert (status, b"does not answer" in body) == (503, True)
            found = call(server, "search", {"query": "tulips"})["results"]
            assert [hit["filename"] for hit in found] == ["a.txt"]  # searching needs no files
            checked = bedstone("doctor", *data, "--toolsets", "knowledge", **environment)
            assert "does not answer" in checked.stdout.replace("\n", " ")
            gate.open()
            wait_for(lambda: is_ready(server))
            assert call(server, "add", {"file_path": str(tmp_path / "b.txt"), "async": False})["success"]
        gate.close()
        with listening("--toolsets", "knowledge", *data, log=tmp_path / "log", **environment) as server:
            assert not is_ready(server)
            gate.open()
            wait_for(lambda: is_ready(server))
            assert call(server, "search", {"query": "gulls"})["results"]
    printed = bedstone("settings", "--json", *data, **environment).stdout + (tmp_path / "log").read_text()
    assert SECRET not in printed


def test_documents_left_in_the_folder_are_not_forgotten(bucket: BucketServer, tmp_path: Path) -> None:
    data = ("--data-dir", tmp_path / "data")
    path = write(tmp_path, "a.txt", "plant tulips in autumn")
    assert bedstone("knowledge", "add", path, *data, **WITHOUT_MODEL).returncode == 0
    address = bucket.address()
    environment: dict[str, Any] = {**bucket.environment, **WITHOUT_MODEL, "BEDSTONE_STORAGE__BLOBS": address}
    refused = bedstone("knowledge", "list", *data, **environment)
    assert refused.returncode != 0
    assert "holds 1 document, and" in refused.stderr.replace("\n", " ")
    blobs = open_blobs(address, tmp_path / "cache")
    for file in (tmp_path / "data" / "documents").rglob("*"):  # as any tool for buckets copies a folder
        if file.is_file() and file.suffix != ".lock":
            blobs.write(file.relative_to(tmp_path / "data" / "documents").as_posix(), file.read_bytes())
    verified = bedstone("knowledge", "verify", *data, **environment)
    assert "No problems found." in verified.stdout, verified.stdout


def test_a_store_that_was_lost_is_rebuilt_from_the_bucket(bucket: BucketServer, tmp_path: Path) -> None:
    environment: dict[str, Any] = {**bucket.environment, **WITHOUT_MODEL, "BEDSTONE_STORAGE__BLOBS": bucket.address()}
    data = ("--data-dir", tmp_path / "data")
    path = write(tmp_path, "a.txt", "plant tulips in autumn")
    assert bedstone("knowledge", "add", path, *data, **environment).returncode == 0
    fresh = ("--data-dir", tmp_path / "fresh")
    refused = bedstone("knowledge", "list", *fresh, **environment)
    assert "missing or empty" in refused.stderr
    rebuilt = bedstone("knowledge", "rebuild", *fresh, **environment)
    assert rebuilt.returncode == 0, rebuilt.stderr + rebuilt.stdout
    with closing(sqlite3.connect(tmp_path / "fresh" / "index" / "knowledge.sqlite")) as store:
        assert store.execute("SELECT count(*) FROM document").fetchone() == (1,)


def test_a_server_killed_while_files_are_added_loses_none_it_acknowledged(
    environment: dict[str, Any], tmp_path: Path
) -> None:
    acknowledged: list[str] = []
    for number in range(3):
        data = tmp_path / f"data{number % 2}"
        with listening("--toolsets", "knowledge", "--data-dir", data, log=tmp_path / "log", **environment) as server:
            call(server, "status", {})
            killer = threading.Thread(target=kill, args=(server, time.monotonic() + 0.1 + 0.1 * number))
            killer.start()
            with suppress(OSError, HTTPException, ValueError):  # it is dead
                for file in range(MAX_FILES):
                    name = f"{number}-{file}.txt"
                    path = write(tmp_path, name, f"subject{name} " * 50)
                    if call(server, "add", {"file_path": path})["success"]:
                        acknowledged.append(name)
                        Path(path).unlink()
            killer.join()
    assert acknowledged
    with listening(
        "--toolsets", "knowledge", "--data-dir", tmp_path / "last", log=tmp_path / "log", **environment
    ) as server:

        def names() -> Any:
            listed = call(server, "show", {"limit": 1_000})["documents"]
            found = {item["filename"] for item in listed if item["processing_status"] == "completed"}
            return found if set(acknowledged) <= found else None

        wait_for(names)
    verified = bedstone("knowledge", "verify", "--data-dir", tmp_path / "last", **environment)
    problems = [line for line in verified.stdout.splitlines() if "has a folder, but no document" not in line]
    assert verified.returncode == 0, problems
