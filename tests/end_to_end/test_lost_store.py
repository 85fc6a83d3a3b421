"""A store that is lost, damaged or another one costs no document: nothing is swept, and a rebuild reads all again."""

import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from bedstone.app import build_toolset, open_services
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.services.knowledge.verifying import verify
from bedstone.settings import Settings
from ingest.test_reader import pdf
from support.doors import DOORS, Door, payload
from support.processes import bedstone, listening

WORDS = {
    "tulips.txt": "plant tulips in autumn",
    "gulls.md": "gulls are fed at dawn",
    "boats.pdf": "boats leave at noon",
}
METADATA = {"author": "Ada"}
UUID_LENGTH = 36


def settings_of(data: Path, **more: Any) -> Settings:
    return Settings.model_validate({"data_dir": data, "embedding": {"provider": "none"}, **more})


def add_all(settings: Settings, files: Path) -> None:
    files.mkdir(exist_ok=True)
    with open_services(settings) as services:
        base: KnowledgeBase = services["knowledge"].get()
        base.collections.create("garden")
        for name, text in WORDS.items():
            (files / name).write_bytes(pdf(text) if name.endswith(".pdf") else text.encode())
            assert base.wait(base.add(files / name, METADATA, collections=["garden"]).id).status == "completed"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with three documents, closed."""
    root = tmp_path_factory.mktemp("filled")
    add_all(settings_of(root / "data"), root / "files")
    return root / "data"


@pytest.fixture
def data(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "data"))


@asynccontextmanager
async def served(settings: Settings) -> AsyncIterator[tuple[Door, Any]]:
    toolset = build_toolset("knowledge", settings)
    async with toolset.opened(), DOORS["plain"]([toolset]) as door:
        yield door, toolset


async def call(door: Door, tool: str, **arguments: Any) -> Any:
    return payload(await door.call(f"knowledge-{tool}", arguments))


def originals(data: Path) -> dict[str, bytes]:
    """Every file of every document."""
    folder = data / "documents"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("[!.]*/*")}


def facts(data: Path) -> list[Any]:
    """What users gave and see of every document."""
    with open_services(settings_of(data)) as services:
        base: KnowledgeBase = services["knowledge"].get()
        return sorted(
            (item.id, item.filename, item.source, item.added_at, dict(item.metadata), item.collections, item.digest)
            for item in base.documents()
        )


def store_of(data: Path) -> Path:
    return data / "index" / "knowledge.sqlite"


def delete_store(data: Path) -> None:
    store_of(data).unlink()


def empty_store(data: Path) -> None:
    store_of(data).write_bytes(b"")


def delete_rows(data: Path) -> None:
    with closing(sqlite3.connect(store_of(data))) as db:
        for table in ("document", "task", "setting", "change"):
            db.execute(f"DELETE FROM {table}")
        db.commit()


def delete_index_folder(data: Path) -> None:
    shutil.rmtree(data / "index")


def fill_with_garbage(data: Path) -> None:
    store_of(data).write_bytes(b"garbage " * 4_000)


def cut_store(data: Path) -> None:
    content = store_of(data).read_bytes()
    store_of(data).write_bytes(content[: len(content) // 2])


def drop_table(data: Path) -> None:
    with closing(sqlite3.connect(store_of(data))) as db:
        db.execute("DROP TABLE passage")
        db.commit()


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "deleted": (delete_store, "store_mismatch"),
    "index folder deleted": (delete_index_folder, "store_mismatch"),
    "emptied": (empty_store, "store_mismatch"),
    "without rows": (delete_rows, "store_mismatch"),
    "garbage": (fill_with_garbage, "store_damaged"),
    "cut": (cut_store, "store_damaged"),
    "without a table": (drop_table, "store_damaged"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_lost_or_damaged_store_costs_no_document(data: Path, damage: str, tmp_path: Path) -> None:
    before = originals(data)
    destroy, code = DAMAGES[damage]
    destroy(data)
    async with served(settings_of(data)) as (door, toolset):
        found = await call(door, "search", query="tulips")
        assert (found["success"], found["error"]) == (False, code)
        assert "bedstone knowledge rebuild" in found["message"]
        status = await call(door, "status")
        assert (status["health"]["status"], status["health"]["vector_db_connected"]) == ("degraded", False)
        assert found["message"] in status["health"]["issues"]
        assert status["knowledge_base"]["document_count"] == len(WORDS)
        (tmp_path / "new.txt").write_text("new")
        assert (await call(door, "add", file_path=str(tmp_path / "new.txt")))["error"] == code
        assert list(toolset.problems()) == [found["message"]]
    assert originals(data) == before


@pytest.mark.parametrize("damage", ["deleted", "without rows", "garbage"])
def test_a_rebuild_restores_every_document_as_it_was(data: Path, damage: str) -> None:
    before = facts(data)
    DAMAGES[damage][0](data)
    rebuilt = bedstone("knowledge", "rebuild", "--json", "--data-dir", data, BEDSTONE_EMBEDDING__PROVIDER="none")
    assert rebuilt.returncode == 0, rebuilt.stderr
    answer = json.loads(rebuilt.stdout)
    assert [row["status"] for row in answer["documents"]] == ["completed"] * len(WORDS)
    assert (answer["left"], answer["warnings"]) == ({}, [])
    assert facts(data) == before
    if damage == "garbage":
        assert [path.read_bytes()[:7] for path in (data / "index").glob("*.damaged-*")] == [b"garbage"]


@pytest.mark.anyio
async def test_documents_of_another_store_are_left_alone(data: Path, tmp_path: Path) -> None:
    """Two servers with one documents folder, or a setting that points to the store of other documents."""
    other = tmp_path / "other"
    await to_thread.run_sync(add_all, settings_of(other), tmp_path / "files")
    before = originals(data)
    crossed = settings_of(data, storage={"vector_db_path": other / "index"})
    async with served(crossed) as (door, _):
        found = await call(door, "search", query="tulips")
    assert found["error"] == "store_mismatch"
    assert "belong to another store" in found["message"]
    options = ("--data-dir", data, "--config", tmp_path / "crossed.toml")
    (tmp_path / "crossed.toml").write_text(f'[storage]\nvector_db_path = "{other}/index"\n')
    rebuilt = bedstone("knowledge", "rebuild", *options)
    assert rebuilt.returncode != 0
    assert "belong to another store" in rebuilt.stderr
    assert originals(data) == before
    assert len(await to_thread.run_sync(facts, other)) == len(WORDS)


@pytest.mark.anyio
async def test_a_folder_that_another_store_claims_later_takes_no_more_files(tmp_path: Path) -> None:
    documents = tmp_path / "shared"
    first, second = (settings_of(tmp_path / name, storage={"documents_path": documents}) for name in ("one", "two"))
    (tmp_path / "a.txt").write_text("tulips")
    async with served(first) as (door, _):
        assert (await call(door, "status"))["health"]["status"] == "healthy"
        async with served(second) as (other, _):
            assert (await call(other, "add", file_path=str(tmp_path / "a.txt"), **{"async": False}))["success"]
        refused = await call(door, "add", file_path=str(tmp_path / "a.txt"))
    assert refused["error"] == "store_mismatch"


@pytest.mark.anyio
async def test_a_read_only_server_refuses_too_and_writes_nothing(data: Path) -> None:
    delete_store(data)
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*")}
    async with served(settings_of(data, read_only=True)) as (door, _):
        assert (await call(door, "search", query="tulips"))["error"] == "store_mismatch"
    assert {path: path.stat().st_mtime_ns for path in data.rglob("*")} == before


@pytest.mark.anyio
async def test_what_an_older_backup_does_not_know_is_moved_aside_and_comes_back(data: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(data / "index", backup)
    (tmp_path / "new.txt").write_text("asters bloom late")
    async with served(settings_of(data)) as (door, _):
        added = await call(door, "add", file_path=str(tmp_path / "new.txt"), **{"async": False})
    before = originals(data)
    shutil.rmtree(data / "index")
    shutil.copytree(backup, data / "index")
    async with served(settings_of(data)) as (door, _):
        status = await call(door, "status")
    assert status["knowledge_base"]["orphaned_count"] == 1
    (moved,) = (data / "documents" / ".orphaned").glob(f"*/{added['document_id']}")
    assert (moved / "content.txt").read_text() == "asters bloom late"
    listed = bedstone("knowledge", "verify", "--data-dir", data)
    assert listed.returncode == 0, listed.stdout
    assert added["document_id"] in listed.stdout
    rebuilt = bedstone("knowledge", "rebuild", "--data-dir", data, BEDSTONE_EMBEDDING__PROVIDER="none")
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert originals(data).keys() == before.keys()
    assert added["document_id"] in {item[0] for item in await to_thread.run_sync(facts, data)}


def test_folders_of_earlier_versions_are_adopted_and_rebuilt_from_what_is_there(data: Path) -> None:
    with closing(sqlite3.connect(store_of(data))) as db:
        db.execute("DELETE FROM setting WHERE name IN ('store_id', 'sidecars_written')")
        db.commit()
    (data / "documents" / ".store-id").unlink()
    sidecars = list((data / "documents").glob("*/document.json"))
    for path in sidecars:
        path.unlink()
    before = facts(data)  # adopts it
    assert (data / "documents" / ".store-id").exists()
    assert all(path.exists() for path in sidecars)
    sidecars[0].unlink()
    delete_store(data)
    assert bedstone("knowledge", "rebuild", "--data-dir", data, BEDSTONE_EMBEDDING__PROVIDER="none").returncode == 0
    after = facts(data)
    assert [item[-1] for item in after] == [item[-1] for item in before]
    named = {item[0]: item[1] for item in after}
    lost = sidecars[0].parent.name
    assert named.pop(lost).startswith(lost[:8])
    assert named.items() <= {item[0]: item[1] for item in before}.items()


def test_a_rebuild_that_cannot_read_a_copy_keeps_it(data: Path) -> None:
    (copy,) = (data / "documents").glob("*/content.pdf")
    copy.write_bytes(b"%PDF-1.7 broken")
    delete_store(data)
    rebuilt = bedstone("knowledge", "rebuild", "--json", "--data-dir", data, BEDSTONE_EMBEDDING__PROVIDER="none")
    assert rebuilt.returncode == 1
    answer = json.loads(rebuilt.stdout)
    assert sorted(row["status"] for row in answer["documents"]) == ["completed", "completed", "failed"]
    assert "not the file that was added" in answer["warnings"][0]
    (kept,) = (data / "documents" / ".orphaned").glob(f"*/{copy.parent.name}/content.pdf")
    assert kept.read_bytes() == b"%PDF-1.7 broken"


def delete_copy(folder: Path) -> None:
    (folder / "content.txt").unlink()


def change_copy(folder: Path) -> None:
    (folder / "content.txt").write_text("other words")


def delete_text(folder: Path) -> None:
    (folder / "text.json.z").unlink()


def garble_text(folder: Path) -> None:
    (folder / "text.json.z").write_bytes(b"garbage")


def delete_sidecar(folder: Path) -> None:
    (folder / "document.json").unlink()


@pytest.mark.parametrize(
    ("part", "destroy"),
    [
        ("original", delete_copy),
        ("original", change_copy),
        ("text", delete_text),
        ("text", garble_text),
        ("sidecar", delete_sidecar),
    ],
)
def test_verify_finds_what_is_wrong_with_a_document(data: Path, part: str, destroy: Callable[[Path], None]) -> None:
    assert [item for item in verify(settings_of(data)) if item.is_problem] == []
    (copy,) = (data / "documents").glob("*/content.txt")
    destroy(copy.parent)
    (finding,) = [item for item in verify(settings_of(data)) if item.is_problem]
    assert finding.part == part
    assert f"tulips.txt ({copy.parent.name})" in finding.message


@pytest.mark.anyio
@pytest.mark.parametrize("destroy", [delete_text, garble_text])
async def test_missing_text_is_an_error_and_a_rebuild_restores_it(data: Path, destroy: Callable[[Path], None]) -> None:
    (copy,) = (data / "documents").glob("*/content.txt")
    destroy(copy.parent)
    async with served(settings_of(data)) as (door, _):
        answer = await call(door, "get", document_id=copy.parent.name)
        assert answer["error"] == "text_missing"
        assert "bedstone knowledge rebuild" in answer["message"]
    assert bedstone("knowledge", "rebuild", "--data-dir", data, BEDSTONE_EMBEDDING__PROVIDER="none").returncode == 0
    async with served(settings_of(data)) as (door, _):
        assert (await call(door, "get", document_id=copy.parent.name))["text"] == WORDS["tulips.txt"]


@pytest.mark.anyio
async def test_a_chunk_whose_text_is_damaged_is_an_error_and_found_by_verify(data: Path) -> None:
    with closing(sqlite3.connect(store_of(data))) as db:
        db.execute("UPDATE chunk SET text = x'00', plain = x'00'")
        db.commit()
    async with served(settings_of(data)) as (door, _):
        found = await call(door, "search", query="tulips")
    assert found["error"] == "store_damaged"
    problems = [item.message for item in verify(settings_of(data)) if item.is_problem]
    assert len([text for text in problems if "is damaged" in text]) == len(WORDS)


@pytest.fixture
def lost_server(data: Path, tmp_path: Path) -> Iterator[Any]:
    delete_store(data)
    (tmp_path / "kb.txt").write_text("A text that is served as well.")
    options = ("--toolsets", "knowledge,kb", "--kb-file", tmp_path / "kb.txt", "--data-dir", data)
    with listening(*options, log=tmp_path / "log", BEDSTONE_EMBEDDING__PROVIDER="none") as server:
        yield server


def test_other_toolsets_go_on_and_readiness_says_what_happened(lost_server: Any, data: Path) -> None:
    def ask(tool: str, arguments: dict[str, Any]) -> Any:
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return json.loads(lost_server.post("/mcp", body)[1])["result"]

    assert not ask("get_kb_info", {}).get("isError")
    assert ask("knowledge-search", {"query": "tulips"})["isError"]
    status, body = lost_server.request("GET", "/readyz")
    assert status == 503
    assert "bedstone knowledge rebuild" in json.loads(body)["problems"][0]
    rebuilt = bedstone("knowledge", "rebuild", "--data-dir", data, BEDSTONE_EMBEDDING__PROVIDER="none")
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert not ask("knowledge-search", {"query": "tulips"}).get("isError")  # without a restart
    assert lost_server.request("GET", "/readyz")[0] == 200
