"""`bedstone migrate-data --blobs-to`: originals and texts move to a bucket and back, alone or with the store."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import pytest

from bedstone.errors import BedstoneError
from bedstone.services.knowledge.moving import move_base
from bedstone.settings import load_settings
from bedstone.settings.sections import StorageSettings
from bedstone.store.blobs import BlobDamaged
from bedstone.store.opening import open_blobs
from soak.knowledge import call
from support.bucket import SECRET, BucketServer
from support.postgres import ENCODED_PASSWORD, PASSWORD, PostgresServer
from support.processes import BEDSTONE, Listening, bedstone, clean_environment, listening

MANUAL = Path(__file__).parents[2] / "demo" / "files" / "porter-workshop-manual.pdf"
WITHOUT_MODEL: dict[str, Any] = {"BEDSTONE_EMBEDDING__PROVIDER": "none"}
COMPLETE = "all counts and digests agree"
FILES = 48
SECONDS = 60


def tree(folder: Path) -> dict[str, str]:
    """Return the digest of every file of a base."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".store-id.lock"]
    return {path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest() for path in files}


def stored(address: str, cache: Path) -> dict[str, str]:
    """Return the same of a bucket."""
    blobs = open_blobs(address, cache)
    return {blob.key: sha256(blobs.read(blob.key)).hexdigest() for blob in blobs.list()}


def settings_of(output: str, config: Path) -> str:
    assert COMPLETE in output
    config.write_text(output.rpartition("before you start a server:\n\n")[2])
    return config.read_text()


def check_answers(server: Listening, manual: str) -> None:
    """The server has keywords, text and original of a document."""
    deadline = time.monotonic() + SECONDS
    while not (hits := call(server, "search", {"query": "tulips"}).get("results")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert hits[0]["filename"] == "tulips.txt"
    assert "plant tulips in autumn" in json.dumps(call(server, "get", {"document_id": hits[0]["document_id"]}))
    assert server.request("GET", f"/documents/{manual}/original")[1] == MANUAL.read_bytes()


def test_a_base_moves_with_its_files_to_postgresql_and_a_bucket_and_back(
    postgres: PostgresServer, bucket: BucketServer, tmp_path: Path
) -> None:
    data, config = ("--data-dir", tmp_path / "data"), tmp_path / "bedstone.toml"
    documents, address = tmp_path / "data" / "documents", bucket.address()
    (tmp_path / "tulips.txt").write_text("plant tulips in autumn")
    with listening("--toolsets", "knowledge", *data, log=tmp_path / "log", **WITHOUT_MODEL) as server:
        assert call(server, "add", {"file_path": str(tmp_path / "tulips.txt"), "async": False})["success"]
        manual = call(server, "add", {"file_path": str(MANUAL), "async": False})["document_id"]
        refused = bedstone("migrate-data", "--blobs-to", address, *data)
        assert "uses the store" in refused.stderr
    (documents / "notes.txt").write_text("mine")
    before = tree(documents)
    database = postgres.network_address()
    done = bedstone("migrate-data", "--to", database, "--blobs-to", address, *data)
    assert done.returncode == 0, done.stderr
    assert not [text for text in (PASSWORD, ENCODED_PASSWORD, SECRET) if text in done.stdout + done.stderr]
    assert f"moved from {documents} to {unquote(address.partition('?')[0])}; {COMPLETE}" in done.stdout
    assert "Not copied: 1 file, such as notes.txt" in done.stdout
    assert f'blobs = "{address}"' in settings_of(done.stdout, config)
    assert tree(documents) == before
    del before["notes.txt"]
    assert stored(address, tmp_path / "cache") == before
    assert not list((tmp_path / "data" / "index" / "blobs").rglob("*.pdf"))  # no copies that nobody asked for
    # A machine that has nothing but the printed settings.
    other: Any = ("--data-dir", tmp_path / "other", "--config", config)
    settings: Any = {**WITHOUT_MODEL, "PGPASSWORD": PASSWORD}
    with listening("--toolsets", "knowledge", *other, log=tmp_path / "log", **settings) as server:
        check_answers(server, manual)
        (tmp_path / "later.txt").write_text("later the lighthouse is lit")
        assert call(server, "add", {"file_path": str(tmp_path / "later.txt"), "async": False})["success"]
    # The store alone: the command says that the files are in the bucket.
    alone = bedstone("migrate-data", "--to", f"sqlite:{tmp_path / 'alone.sqlite'}", *other, **settings)
    assert f"Originals and texts of documents stay in {address.partition('?')[0]}." in alone.stdout
    assert f'blobs = "{address}"' in alone.stdout
    # Back: the old places are not overwritten.
    refused = bedstone("migrate-data", "--blobs-to", documents, *other, **settings)
    assert "has files of this base already, and they differ" in refused.stderr
    back = tmp_path / "back"
    targets = ("--to", f"sqlite:{back / 'base.sqlite'}", "--blobs-to", back / "files")
    done = bedstone("migrate-data", *targets, *other, **settings)
    assert done.returncode == 0, done.stderr
    assert "blobs" not in settings_of(done.stdout, config).partition("[storage]")[2]
    assert tree(back / "files") == stored(address, tmp_path / "cache")
    with listening("--toolsets", "knowledge", *other, log=tmp_path / "log", **WITHOUT_MODEL) as server:
        check_answers(server, manual)
    verified = bedstone("knowledge", "verify", *other, **WITHOUT_MODEL)
    assert verified.stdout.strip() == "No problems found."


@pytest.mark.skipif(sys.platform == "win32", reason="kills with SIGKILL")
def test_a_move_of_files_that_is_killed_goes_on(postgres: PostgresServer, bucket: BucketServer, tmp_path: Path) -> None:
    data, documents, address = ("--data-dir", tmp_path / "data"), tmp_path / "data" / "documents", bucket.address()
    added = bedstone("knowledge", "add", MANUAL, *data, **WITHOUT_MODEL)
    assert added.returncode == 0, added.stderr
    for number in range(FILES):
        folder = documents / str(UUID(int=number))
        folder.mkdir()
        (folder / "content.tmp").write_bytes(os.urandom(200_000))
        (folder / "removed").touch()
    database, blobs = postgres.address(), open_blobs(address, tmp_path / "cache")
    command: list[str | Path] = [BEDSTONE, "migrate-data", "--to", database, "--blobs-to", address, *map(str, data)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=clean_environment())
    deadline = time.monotonic() + SECONDS
    while sum(1 for _ in blobs.list()) < FILES // 4:
        assert process.poll() is None
        assert time.monotonic() < deadline
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=SECONDS)
    at_kill = {blob.key: blob.modified for blob in blobs.list()}
    assert FILES // 4 <= len(at_kill) < 2 * FILES
    # Neither half is used, and both say what to do.
    for name, value in {"DATABASE": database, "BLOBS": address}.items():
        setting: Any = {f"BEDSTONE_STORAGE__{name}": value, **WITHOUT_MODEL}
        used = bedstone("knowledge", "list", *data, **setting)
        assert used.returncode != 0
        assert "has not ended. Repeat `bedstone migrate-data`" in used.stderr
    # Meanwhile the source loses a file that was copied, and another one changes.
    lost, changed = (documents / str(UUID(int=number)) for number in (0, 1))
    (lost / "content.tmp").unlink()
    (changed / "content.tmp").write_bytes(os.urandom(200_000))
    time.sleep(1.1)  # times in the bucket are whole seconds
    done = bedstone(*map(str, command[1:]))
    assert done.returncode == 0, done.stderr
    assert stored(address, tmp_path / "cache") == tree(documents)
    now = {blob.key: blob.modified for blob in blobs.list()}
    again = {key for key, modified in at_kill.items() if key in now and now[key] != modified}
    assert again == {".store-id", f"{changed.name}/content.tmp"}
    # Repeated after its end it compares, and changes nothing.
    repeated = bedstone(*map(str, command[1:]))
    assert COMPLETE in repeated.stdout, repeated.stderr
    assert {key: modified for key, modified in now.items() if key != ".store-id"} == {
        blob.key: blob.modified for blob in blobs.list() if blob.key != ".store-id"
    }


def test_places_that_have_something_else_are_refused(tmp_path: Path) -> None:
    data, places = ("--data-dir", tmp_path / "data"), tmp_path / "places"
    (tmp_path / "tulips.txt").write_text("plant tulips in autumn")
    added = bedstone("knowledge", "add", tmp_path / "tulips.txt", *data, **WITHOUT_MODEL)
    assert added.returncode == 0, added.stderr
    documents = tmp_path / "data" / "documents"
    (places / "foreign").mkdir(parents=True)
    (places / "foreign" / "letter.txt").write_text("Dear aunt")
    for name, owner in {"other": "0123", "part": "moving 0123"}.items():
        (places / name).mkdir()
        (places / name / ".store-id").write_text(owner)
    before = tree(tmp_path)
    expected = {
        str(places / "foreign"): "is not empty: it has letter.txt",
        f"folder:{places / 'other'}": "has the files of another base",
        str(places / "part"): "has a part of another base",
        str(documents): "already. Name a place outside of it",
        f"folder:{documents / 'inside'}": "already. Name a place outside of it",
        "gs://bucket": "Unknown name in blobs: 'gs'",
        "s3://ann:cret@bucket": "Credentials do not belong into the address",
    }
    settings = load_settings(environ={"BEDSTONE_DATA_DIR": str(tmp_path / "data")}).settings
    for place, message in expected.items():
        with pytest.raises(BedstoneError, match=re.escape(message)) as refused:
            move_base(settings, None, place)
        assert "cret" not in refused.value.message
    assert "Name a target" in bedstone("migrate-data", *data).stderr
    # Files of another base are not moved under the name of this one.
    wrong = settings.model_copy(update={"storage": StorageSettings(documents_path=places / "other")})
    with pytest.raises(BedstoneError, match="do not belong to this store"):
        move_base(wrong, None, str(places / "new"))
    after = {key: digest for key, digest in tree(tmp_path).items() if not key.startswith("data/index/")}
    assert after == {key: digest for key, digest in before.items() if not key.startswith("data/index/")}


def test_a_damaged_file_is_not_moved_as_if_it_were_whole(bucket: BucketServer, tmp_path: Path) -> None:
    import obstore  # noqa: PLC0415 - the tool that damages it
    from obstore.store import S3Store  # noqa: PLC0415

    data, address = ("--data-dir", tmp_path / "data"), bucket.address(prefix="damaged")
    assert bedstone("knowledge", "add", MANUAL, *data, **WITHOUT_MODEL, BEDSTONE_STORAGE__BLOBS=address).returncode == 0
    blobs = open_blobs(address, tmp_path / "cache")
    key = next(blob.key for blob in blobs.list() if blob.key.endswith("content.pdf"))
    digest = sha256(MANUAL.read_bytes()).hexdigest()
    config = {"endpoint": bucket.endpoint, "region": "us-east-1"}
    tool = S3Store("bedstone", prefix="damaged", config=config, client_options={"allow_http": True})  # type: ignore[arg-type]
    obstore.put(tool, key, b"forged", attributes={"sha256": digest})
    environ = {"BEDSTONE_DATA_DIR": str(tmp_path / "data"), "BEDSTONE_STORAGE__BLOBS": address}
    settings = load_settings(environ=environ).settings
    with pytest.raises(BlobDamaged, match=f"{key} .* is not what was stored there"):
        move_base(settings, None, str(tmp_path / "files"))
    assert (tmp_path / "files" / ".store-id").read_text().startswith("moving ")
    blobs.put(key, io.BytesIO(MANUAL.read_bytes()))
    moved = move_base(settings, None, str(tmp_path / "files"))
    assert tree(tmp_path / "files") == stored(address, tmp_path / "cache")
    assert (moved.files.count, moved.files.left) == (3, 0) if moved.files else False
