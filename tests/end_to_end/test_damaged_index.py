"""A damaged index is set aside and rebuilt while searches go on; health says so until it is done."""

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner

from bedstone.app import build_toolset, open_services
from bedstone.cli.docs import docs
from bedstone.search.indexes import damage as damage_module
from bedstone.search.indexes.keyword import KeywordIndex
from bedstone.services.knowledge.searching import KnowledgeQuery
from bedstone.store.locks import FileLock
from end_to_end.test_lost_store import WORDS, add_all, call, served, settings_of
from soak.knowledge import call as call_server
from support.doors import DOORS, Door, payload
from support.processes import listening

GARBLED_BYTES = 64


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose keyword index has a file of every kind, also one for deletions."""
    root = tmp_path_factory.mktemp("indexed")
    add_all(settings_of(root / "data"), root / "files")
    with_all(root / "data")
    return root / "data"


def with_all(data: Path) -> None:
    """Let a server build the index, and again after a removal, so that a segment has deletions."""
    with open_services(settings_of(data)) as services:
        base = services["knowledge"].get()
        extra = data.with_name("extra.txt")
        extra.write_text("extra words")
        task = base.wait(base.add(extra).id)
        base.search(KnowledgeQuery("extra"))
        base.remove(task.result["document_id"])
        base.search(KnowledgeQuery("extra"))


@pytest.fixture
def data(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "data"))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garble(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[:GARBLED_BYTES] = bytes(byte ^ 0x5A for byte in content[:GARBLED_BYTES])
    path.write_bytes(content)


KINDS = ("*.term", "*.idx", "*.pos", "*.fast", "*.fieldnorm", "*.store", "*.del", "meta.json", "version.json")
HOWS: dict[str, Callable[[Path], None]] = {"truncated": truncate, "garbled": garble, "deleted": Path.unlink}


@pytest.mark.anyio
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", KINDS)
async def test_every_damaged_file_of_the_index_is_replaced(data: Path, kind: str, how: str) -> None:
    words = data / "index" / "words"
    paths = sorted(words.glob(kind))
    assert paths
    for path in paths:
        HOWS[how](path)
    async with served(settings_of(data)) as (door, _):
        with anyio.fail_after(20):
            while (kind, how) != ("version.json", "deleted") and not list(words.parent.glob("words.damaged-*")):
                found = await call(door, "search", query="tulips")  # which never fails
                assert found["success"], found
            while (await call(door, "status"))["health"]["status"] != "healthy":
                await anyio.lowlevel.checkpoint()
        for name, text in WORDS.items():
            found = await call(door, "search", query=text)
            assert found["results"][0]["filename"] == name
            assert "notice" not in found
    assert damage_module.find_damage(words) is None


def replace_by_file(words: Path) -> None:
    shutil.rmtree(words)
    words.write_text("no folder")


def replace_by_spoilt(words: Path) -> None:
    """An index that says it is complete, but lacks a chunk."""
    index = KeywordIndex(words)
    seq, stamp = index.last_applied
    index._ensure_writer()  # noqa: SLF001 - no caller can do this
    index._remove(1, 1)  # noqa: SLF001
    index._commit(seq, stamp)  # noqa: SLF001
    index.finish()
    index.close()


@pytest.mark.anyio
@pytest.mark.parametrize("destroy", [replace_by_file, replace_by_spoilt])
async def test_an_index_that_does_not_fit_is_replaced(data: Path, destroy: Callable[[Path], None]) -> None:
    destroy(data / "index" / "words")
    async with served(settings_of(data)) as (door, _):
        with anyio.fail_after(20):
            while not list((data / "index").glob("words.damaged-*")):
                assert (await call(door, "search", query="tulips"))["success"]
        for name, text in WORDS.items():
            assert (await call(door, "search", query=text))["results"][0]["filename"] == name


@pytest.mark.anyio
async def test_at_most_two_damaged_indexes_are_kept(data: Path) -> None:
    for _ in range(4):
        (data / "index" / "words" / "meta.json").write_text("{")
        async with served(settings_of(data)) as (door, _):
            assert (await call(door, "search", query="tulips"))["total_results"] == 1
    assert len(list((data / "index").glob("words.damaged-*"))) == 2


@pytest.mark.anyio
async def test_a_reader_leaves_damaged_files_to_the_writer(data: Path) -> None:
    words = data / "index" / "words"
    for path in words.glob("*.term"):
        garble(path)
    (words / "meta.json").write_text("{")
    before = sorted(path.name for path in words.iterdir())
    with FileLock(data / "index" / ".owner"):  # of the process that writes
        async with served(settings_of(data)) as (reader, _):
            found = await call(reader, "search", query="tulips")
            assert found["results"][0]["filename"] == "tulips.txt"
            health = (await call(reader, "status"))["health"]
    assert health["status"] == "degraded"
    assert "copy in memory" in health["issues"][0]
    assert sorted(path.name for path in words.iterdir()) == before


def test_an_index_damaged_under_a_running_server_costs_no_search(data: Path, tmp_path: Path) -> None:
    options = ("--toolsets", "knowledge", "--data-dir", data)
    with listening(*options, log=tmp_path / "first", BEDSTONE_EMBEDDING__PROVIDER="none") as server:
        assert call_server(server, "search", {"query": "tulips"})["total_results"] == 1
        for path in (data / "index" / "words").glob("*.*"):
            path.unlink(
                missing_ok=True
            )  # a merge deletes some too; first: cutting a file that is mapped into memory would kill any process
            path.write_bytes(b"")
        (tmp_path / "new.txt").write_text("asters bloom late")
        added: Any = call_server(server, "add", {"file_path": str(tmp_path / "new.txt"), "async": False})
        assert added["success"]
        for query, name in (("asters", "new.txt"), ("tulips", "tulips.txt"), ("boats", "boats.pdf")):
            assert call_server(server, "search", {"query": query})["results"][0]["filename"] == name
        assert call_server(server, "status", {})["health"]["status"] == "healthy"
    with listening(
        *options, log=tmp_path / "second", BEDSTONE_EMBEDDING__PROVIDER="none"
    ) as server:  # which has no copy
        for query, name in (("asters", "new.txt"), ("tulips", "tulips.txt"), ("boats", "boats.pdf")):
            assert call_server(server, "search", {"query": query})["results"][0]["filename"] == name
    assert "Rebuilding the keyword index" in (tmp_path / "first").read_text()


@pytest.fixture
def corpora(tmp_path: Path) -> list[Path]:
    """Two docs indexes, built by the real command."""
    indexes = []
    for name, text in (("one", "# Alpha\n\nretry the call\n"), ("two", "# Beta\n\nretry the whole call again\n")):
        source = tmp_path / f"source-{name}"
        source.mkdir()
        (source / "page.md").write_text(text)
        indexes.append(tmp_path / name)
        assert CliRunner().invoke(docs, ["build", str(source), "--out", str(indexes[-1])]).exit_code == 0
    return indexes


@asynccontextmanager
async def served_docs(corpora: list[Path], tmp_path: Path) -> AsyncIterator[tuple[Door, Any]]:
    settings = settings_of(tmp_path / "data", docs={"index": [str(path) for path in corpora]})
    toolset = build_toolset("docs", settings)
    async with toolset.opened(), DOORS["plain"]([toolset]) as door:
        yield door, toolset


@pytest.mark.anyio
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", ["*.term", "*.fast", "meta.json"])
async def test_a_damaged_docs_index_is_rebuilt_in_memory(
    corpora: list[Path], tmp_path: Path, kind: str, how: str
) -> None:
    for path in corpora[0].glob(f"generation-*/words/{kind}"):
        HOWS[how](path)
    async with served_docs(corpora, tmp_path) as (door, toolset):
        with anyio.fail_after(20):
            while not toolset.problems():
                found = payload(await door.call("search_docs", {"query": "retry"}))
                assert found["hits"]
        found = payload(await door.call("search_docs", {"query": "retry"}))
        assert {hit["filepath"] for hit in found["hits"]} == {"one/page.md", "two/page.md"}
        assert "notice" not in found
        assert f"bedstone docs build DIR --out {corpora[0]} --rebuild-cache" in toolset.problems()[0]


@pytest.mark.anyio
@pytest.mark.parametrize("content", [b"", b"garbage " * 1_000])
async def test_a_docs_corpus_whose_store_is_damaged_is_named_and_the_others_go_on(
    corpora: list[Path], tmp_path: Path, content: bytes
) -> None:
    (store,) = corpora[0].glob("generation-*/store.sqlite")
    store.write_bytes(content)
    async with served_docs(corpora, tmp_path) as (door, toolset):
        found = payload(await door.call("search_docs", {"query": "retry"}))
        assert [hit["filepath"] for hit in found["hits"]] == ["two/page.md"]
        assert "'one' cannot be opened" in found["notice"]
        assert toolset.problems() == [found["notice"]]
