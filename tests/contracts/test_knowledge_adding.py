"""What knowledge-add does with files that were added before, with odd paths, and with files of the server itself."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from bedstone.app import build_toolset
from bedstone.settings import Settings, load_settings
from contracts.test_knowledge import call, write
from ingest.test_reader import pdf, picture
from support.doors import DOORS, Door
from support.processes import bedstone
from support.replicas import shared
from support.scans import scanned_pdf
from support.site import open_site

Open = Callable[..., AbstractAsyncContextManager[Door]]
OPEN_FILES = Path("/proc/self/fd")
OCR_OFF = "OCR is switched off (ocr.enabled)"


@pytest.fixture
def open_door(tmp_path: Path) -> Open:
    """A client of a knowledge base without vectors, in the folder `data`."""

    @asynccontextmanager
    async def open_door(**settings: Any) -> AsyncIterator[Door]:
        given = {"data_dir": tmp_path / "data", "embedding": {"provider": "none"}, **settings}
        toolset = build_toolset("knowledge", shared(Settings.model_validate(given)))
        async with toolset.opened(), DOORS["memory-2026"]([toolset]) as door:
            yield door

    return open_door


async def add(door: Door, path: str | Path, **arguments: Any) -> Any:
    return await call(door, "add", **{"file_path": str(path), "async": False, **arguments})


async def rows(door: Door) -> list[Any]:
    return list((await call(door, "show"))["documents"])


# Adding again


async def test_adding_again_applies_what_is_new(open_door: Open, tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "tide tables")
    async with open_door() as door:
        await call(door, "context-create", name="sea")
        first = await add(door, path, metadata={"author": "Ada", "year": 1})
        again = await add(door, path, metadata={"year": 2, "tags": ["sea"]}, contexts=["sea"])
        assert (again["document_id"], again["duplicate"]) == (first["document_id"], True)
        assert again["updated"] == ["contexts", "metadata"]
        (hit,) = (await call(door, "search", query="tide", context="sea"))["results"]
        known = {key: hit["metadata"][key] for key in ("author", "year", "tags")}
        assert known == {"author": "Ada", "year": 2, "tags": ["sea"]}
        same = await add(door, path)
        assert (same["duplicate"], "updated" in same) == (True, False)
        task = (await call(door, "add", file_path=path, metadata={"year": 3}))["task_id"]
        assert (await call(door, "task-status", task_id=task))["result"]["updated"] == ["metadata"]


async def test_force_ocr_reads_again_what_was_not_recognized(open_door: Open, tmp_path: Path) -> None:
    path = write(tmp_path, "a.pdf", pdf("Whales: They sing at night."))
    async with open_door() as door:
        first = await add(door, path, metadata={"author": "Ada"})
        forced = await add(door, path, force_ocr=True)
        assert (first["processing_method"], forced["processing_method"]) == ("text_extraction", "ocr")
        assert (forced["replaced"], forced["replaced_document_id"]) == (True, first["document_id"])
        assert [row["id"] for row in await rows(door)] == [forced["document_id"]]
        read = await call(door, "get", document_id=forced["document_id"])
        assert (read["metadata"]["author"], read["metadata"]["ocr_pages"]) == ("Ada", 1)
        assert (await add(door, path, force_ocr=True))["duplicate"]  # there is nothing left to recognize


async def test_a_changed_file_replaces_its_earlier_version(open_door: Open, tmp_path: Path) -> None:
    path = write(tmp_path, "prices.txt", "The price is 10 EUR.")
    async with open_door() as door:
        old = await add(door, path, metadata={"author": "Ada"})
        write(tmp_path, "prices.txt", "The price is 12 EUR.")
        new = await add(door, path)
        assert (new["replaced"], new["replaced_document_id"]) == (True, old["document_id"])
        (hit,) = (await call(door, "search", query="price"))["results"]
        assert hit["chunk_text"] == "The price is 12 EUR."
        assert (hit["metadata"]["source"], hit["metadata"]["author"]) == (path, "Ada")
        write(tmp_path, "prices.txt", "")
        failed = await add(door, path)
        assert failed["error"] == "extraction_failed"
        assert failed["message"].endswith("The version that was added earlier is kept.")
        assert (await call(door, "search", query="price"))["results"] == [hit]
    write(tmp_path, "prices.txt", "The price is 14 EUR.")
    said = bedstone("knowledge", "add", path, "--data-dir", tmp_path / "data").stdout
    assert "replaces the earlier version" in said


async def test_two_files_of_the_same_name_are_told_apart(open_door: Open, tmp_path: Path) -> None:
    paths = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        paths.append(write(tmp_path / name, "readme.html", f"<p>Walrus {name}</p>"))
    async with open_door() as door:
        for path in paths:
            await add(door, path, metadata={"source": "mine", "other_sources": 1})
        hits = (await call(door, "search", query="walrus"))["results"]
        assert {hit["metadata"]["source"] for hit in hits} == {row["source"] for row in await rows(door)} == set(paths)
        assert hits[0]["metadata"]["user"] == {"source": "mine", "other_sources": 1}
        read = await call(door, "get", document_id=hits[0]["document_id"])
        assert read["metadata"]["source"] == hits[0]["metadata"]["source"]
    listed = bedstone("knowledge", "list", "--data-dir", tmp_path / "data", COLUMNS="400").stdout
    found = bedstone("knowledge", "search", "walrus", "--data-dir", tmp_path / "data").stdout
    assert all(path in listed and path in found for path in paths)
    async with open_door(storage={"allowed_roots": [tmp_path / "one"]}) as door:  # paths elsewhere are not shown
        assert {row["source"] for row in await rows(door)} == {paths[0], "readme.html"}


async def test_uploads_show_no_path_and_keep_each_other(tmp_path: Path) -> None:
    roots = {"storage": {"allowed_roots": [tmp_path / "in"]}}
    given = {"data_dir": tmp_path / "data", "toolsets": ["knowledge"], "embedding": {"provider": "none"}, **roots}
    async with open_site(Settings.model_validate(given)) as site:
        ids = [await site.add("notes.txt", f"walrus {number}".encode()) for number in range(2)]
        assert len(set(ids)) == 2
        for page in ("/documents", f"/documents/{ids[0].upper()}"):
            text = await site.text(page)
            assert "notes.txt" in text
            assert "uploads" not in text


# OCR that is switched off


async def test_ocr_that_is_switched_off_is_never_used_and_said(open_door: Open, tmp_path: Path) -> None:
    async with open_door(ocr={"enabled": False, "force_ocr": True}) as door:
        text = write(tmp_path, "a.pdf", pdf("Whales: They sing at night."))
        refused = await add(door, text, force_ocr=True)
        assert (refused["error"], refused["parameter"]) == ("invalid_parameter", "force_ocr")
        assert refused["message"].startswith(OCR_OFF)
        assert (await add(door, text))["processing_method"] == "text_extraction"
        scan = await add(door, write(tmp_path, "scan.pdf", scanned_pdf("Lighthouse")))
        assert scan["error"] == "ocr_failed"
        assert scan["message"].startswith(OCR_OFF)
        photo = await add(door, write(tmp_path, "photo.png", picture("Lighthouse")))
        read = await call(door, "get", document_id=photo["document_id"])
        assert "Lighthouse" not in read["text"]
        assert OCR_OFF in read["metadata"]["warnings"][0]


# Paths


async def test_folders_are_told_from_files_and_leak_nothing(open_door: Open, tmp_path: Path) -> None:
    for name in ("plain", "dir.txt", "x.pdf"):
        (tmp_path / name).mkdir()
    async with open_door() as door:
        await add(door, write(tmp_path, "a.txt", "words"))
        before = len(list(OPEN_FILES.iterdir()))
        for name in ("plain", "dir.txt", "x.pdf") * 5:
            answer = await add(door, tmp_path / name)
            assert (answer["error"], answer["file_path"]) == ("file_not_found", str(tmp_path / name))
            assert f"{tmp_path / name} is a folder" in answer["message"]
            assert "bedstone knowledge add" in answer["message"]
        assert len(list(OPEN_FILES.iterdir())) <= before + 5  # connections of threads, not one for each of 15 calls
    async with open_door(storage={"allowed_roots": [tmp_path / "plain"]}) as door:
        assert (await add(door, tmp_path / "dir.txt"))["error"] == "path_not_allowed"


async def test_home_folders_and_file_addresses_are_understood(
    open_door: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = write(tmp_path, "grüße & mehr.txt", "words")
    addresses = [f"file://{quote(path)}", f"file://localhost{quote(path)}", f"FILE:{quote(path)}"]
    async with open_door() as door:
        first = await add(door, "~/grüße & mehr.txt")
        for address in addresses:
            assert (await add(door, address))["document_id"] == first["document_id"]
        (row,) = await rows(door)
        assert (row["filename"], row["source"]) == ("grüße & mehr.txt", path)
        for odd, word in (("file://elsewhere/a.txt", "another machine"), ("~nobody-of-that-name/a.txt", "home folder")):
            answer = await add(door, odd)
            assert (answer["error"], word in answer["message"]) == ("invalid_parameter", True)
    for given in ("~/grüße & mehr.txt", addresses[0]):
        run = bedstone("knowledge", "add", given, "--data-dir", tmp_path / "data", HOME=str(tmp_path))
        assert "already added" in run.stdout, run.stderr
    run = bedstone("knowledge", "extract", addresses[1], HOME=str(tmp_path))
    assert run.stdout == "words\n"


async def test_ids_are_found_in_upper_case_and_nothing_foreign_is_said(open_door: Open, tmp_path: Path) -> None:
    async with open_door() as door:
        task = (await call(door, "add", file_path=write(tmp_path, "a.txt", "words")))["task_id"]
        state = await call(door, "task-status", task_id=task.upper())
        assert state["task_id"] == task
        added = await add(door, tmp_path / "a.txt")
        assert (await call(door, "get", document_id=added["document_id"].upper()))["text"] == "words"
        assert (await call(door, "remove", document_id=added["document_id"].upper()))[
            "error"
        ] == "confirmation_required"
        answer = await call(door, "task-status", task_id="nonsense")
        assert (answer["error"], answer["parameter"]) == ("invalid_parameter", "task_id")
        assert "hexadecimal" not in answer["message"]
        assert "Value error" not in answer["message"]


WITHOUT_RIGHTS = """
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from bedstone.errors import BedstoneError
from bedstone.ingest.detection import supported_formats
from bedstone.services.knowledge.options import KnowledgeOptions
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.store.engines.memory import MemoryStore
from bedstone.toolsets.knowledge.views import error_reply
supported_formats()  # imports what the other user may not read
user = os.geteuid()
with TemporaryDirectory() as name:
    folder = Path(name)
    for path in (folder, folder / "index", folder / "documents"):
        path.mkdir(exist_ok=True)
        os.chown(path, user or 65534, -1)
    (folder / "secret.txt").touch(0)
    base = KnowledgeBase(MemoryStore(), KnowledgeOptions(folder / "documents", folder / "index"), lambda: None)
    try:
        os.seteuid(user or 65534)
        base.add(folder / "secret.txt")
    except BedstoneError as error:
        print(error_reply(error).text)
    finally:
        os.seteuid(user)
"""


def test_a_file_that_may_not_be_read_says_so() -> None:
    """As root every file can be read, so a process that gives up its rights tries."""
    command = [sys.executable, "-c", WITHOUT_RIGHTS]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    answer = json.loads(run.stdout or run.stderr)
    assert (answer["error"], Path(answer["file_path"]).name) == ("path_not_allowed", "secret.txt")
    assert "cannot be read: Permission denied" in answer["message"]


# The files of the server itself


@pytest.fixture
def secrets(tmp_path: Path) -> dict[str, Path]:
    """The files of a server with a token, a login and a key; all of them have a format that is read."""
    files = {
        "config": tmp_path / "bedstone.txt",
        "token": tmp_path / "token.txt",
        "key": tmp_path / "server-key.txt",
        "login": tmp_path / "data" / "salesforce" / "secrets.json",
        "logins": tmp_path / "data" / "salesforce" / "orgs.json",
        "stored": tmp_path / "data" / "notes.md",
    }
    files["login"].parent.mkdir(parents=True)
    for name, path in files.items():
        path.write_text(f'{{"{name}": "tulip"}}')
        path.chmod(0o600)
    files["logins"].write_text(json.dumps({"prod": {"key_file": str(files["key"])}}))
    files["token"].write_text("tulip-0123456789-abcdef")
    files["config"].write_text(
        'data_dir = "data"\n[mcp]\ntoken_file = "token.txt"\n'
        '[embedding]\nprovider = "none"\n[kb]\nfile_path = "kb.txt"\n'
    )
    return files


def odd_ways(folder: Path, path: Path) -> list[Path]:
    """Other paths to the same file."""
    link, hard, through = folder / f"link-{path.name}", folder / f"hard-{path.name}", folder / f"proc-{path.name}"
    link.symlink_to(path)
    through.symlink_to(f"/proc/self/root{path}")
    if path.name == "notes.md":  # hard links are known of secrets only
        return [link, through]
    hard.hardlink_to(path)
    return [link, hard, through]


async def test_the_servers_own_files_are_never_added(secrets: dict[str, Path], tmp_path: Path) -> None:
    settings = load_settings(config=secrets["config"], environ={}).settings
    toolset = build_toolset("knowledge", settings)
    (tmp_path / "environ.txt").symlink_to("/proc/self/environ")
    (tmp_path / "fine.txt").write_text("lily")
    async with toolset.opened(), DOORS["memory-2026"]([toolset]) as door:
        for path in [*secrets.values(), tmp_path / "environ.txt"]:
            for way in [path, *(odd_ways(tmp_path, path) if path in secrets.values() else [])]:
                assert (await add(door, way))["error"] == "path_not_allowed", way
        assert (await add(door, tmp_path / "fine.txt"))["success"]
    config = ["--config", str(secrets["config"])]
    assert bedstone("knowledge", "add", tmp_path, *config).returncode == 0
    bedstone("knowledge", "watch", tmp_path, "--once", *config)
    found = json.loads(bedstone("knowledge", "search", "tulip", "--json", *config).stdout)
    listed = json.loads(bedstone("knowledge", "list", "--json", *config).stdout)
    assert found["results"] == []
    assert [row["filename"] for row in listed["documents"]] == ["fine.txt"]


def test_the_servers_own_files_are_neither_docs_nor_the_kb_file(secrets: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "fine.md").write_text("# Lily\n\nlily")
    odd_ways(tmp_path, secrets["token"])
    config = ["--config", str(secrets["config"])]
    run = bedstone("docs", "build", tmp_path, "--out", tmp_path / "built", *config)
    assert "from 1 file" in run.stdout, run.stderr
    (tmp_path / "kb.txt").symlink_to(secrets["token"])
    answer = bedstone("kb", "content", *config)
    assert "tulip" not in answer.stdout
    assert "a file of the server itself" in json.loads(answer.stdout)["error"]
