"""A docs build with vectors: keyword search at once, how far it is, interrupted and resumed, served all the while."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.search.embedding import EmbedderPool
from bedstone.services.docs.builder import BuildOptions, DocsBuilder
from bedstone.services.docs.index_folder import PROGRESS, SILENT_SECONDS, BuildProgress, IndexFolder
from bedstone.services.docs.service import DocsService
from bedstone.services.docs.watcher import CorpusWatcher
from bedstone.settings import EmbeddingSettings
from support.processes import BEDSTONE, bedstone, clean_environment
from support.site import make_settings, open_site

PAGES = 1500
QUESTION = "how do people look after boats in the harbour"


def write_pages(folder: Path, count: int) -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        text = f"The harbour master of port {number} keeps boats dry and mends their sails. " * 12
        (folder / f"n{number:04}.md").write_text(f"# Page {number}\n\n{text}\n")
    return folder


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def begin_build(folder: IndexFolder, *arguments: str | Path) -> subprocess.Popen[bytes]:
    """Start a build in a process of its own, and wait until the model is at work."""
    command = [BEDSTONE, "docs", "build", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment())
    wait_until(lambda: folder.progress is not None and folder.progress.step == "Embedding" and folder.progress.done > 0)
    return process


def interrupt(process: "subprocess.Popen[bytes]") -> None:
    """Press Ctrl-C, and read what the command says."""
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert b"Keyword search is ready in " in errors
    assert b"Interrupted, embedding " in errors


async def test_keywords_answer_while_vectors_are_made_and_an_interrupted_build_goes_on(tmp_path: Path) -> None:
    source = write_pages(tmp_path / "harbour", PAGES)
    data: tuple[str | Path, ...] = ("--data-dir", tmp_path / "data", "--cache-dir", tmp_path / "cache")
    index = tmp_path / "data" / "docs" / "harbour"
    folder = IndexFolder(index)
    process = begin_build(folder, source, *data)
    embedders = EmbedderPool(EmbeddingSettings(), tmp_path / "other" / "cache.sqlite")
    service = DocsService([index], embedders.get)
    await service.start()
    try:
        found = service.library.search("harbour master of port 77", {}, 1)
        assert found.hits[0].head.document_id == "n0077.md"
        (facts,) = service.syncs()
        assert facts.is_running
        assert facts.progress.startswith("embedding ")
        assert facts.progress.endswith(" of 1,500")
        assert next(state.text for state in (await service.summary()).states).startswith("Building, embedding")
        status = bedstone("docs", "status", "--data-dir", tmp_path / "data").stdout
        assert "1,500 files, 1,500 chunks; keyword search is ready; embedding " in status

        interrupt(process)
        stopped = folder.progress
        assert stopped
        assert (stopped.is_running, stopped.done < PAGES) == (False, True)
        status = bedstone("docs", "status", "--data-dir", tmp_path / "data").stdout
        assert status.endswith("of 1,500 (interrupted; the next build goes on from there)\n")
        assert "the last build was interrupted, embedding" in service.syncs()[0].result
        async with open_site(make_settings(tmp_path, "docs", docs={"index": [index]})) as site:
            text = await site.text("/docs")
            assert '<span class="state warn">Interrupted</span>' in text

        for path in sorted(source.iterdir())[30:]:
            path.unlink()
        done = bedstone("docs", "build", source, *data)
        assert "Indexed 30 chunks from 30 files" in done.stdout
        assert folder.progress is None
        assert not (index / PROGRESS).exists()
        status = bedstone("docs", "status", "--data-dir", tmp_path / "data", "--json").stdout
        (item,) = json.loads(status)
        assert (item["chunks"], item["is_searchable"], item["build"]) == (30, True, None)
        assert item["embedding"].endswith("MiniLM-L6-v2")
        with anyio.fail_after(30):
            while service.metadata["harbour"].stats.total_chunks != 30:  # noqa: ASYNC110 - a thread
                await anyio.sleep(0.1)
        (corpus,) = service.library.corpora.values()
        assert corpus.search(QUESTION, {}, 0, 1).signals == ("keyword", "semantic")
    finally:
        process.kill()
        await service.aclose()


def test_a_build_that_says_nothing_for_a_minute_counts_as_interrupted(tmp_path: Path) -> None:
    folder = IndexFolder(tmp_path)
    assert folder.progress is None
    folder.record_progress(BuildProgress("Embedding", 1200, 12681))
    assert str(folder.progress) == "embedding 1,200 of 12,681"
    assert folder.progress == BuildProgress("Embedding", 1200, 12681)
    silent = time.time() - SILENT_SECONDS - 1
    os.utime(tmp_path / PROGRESS, (silent, silent))
    assert folder.progress == BuildProgress("Embedding", 1200, 12681, is_running=False)
    (tmp_path / PROGRESS).write_text("{")
    assert folder.progress is None
    folder.record_progress(None)
    assert not (tmp_path / PROGRESS).exists()


def test_a_watcher_says_how_far_its_build_is(tmp_path: Path) -> None:
    source, index = write_pages(tmp_path / "harbour", 3), tmp_path / "index"
    seen: list[str] = []

    class Slow(HashingEmbedder):
        def split(self, context: str, text: str) -> list[tuple[int, int]]:
            seen.append(f"{watcher.facts().is_running} {watcher.facts().progress}")
            return super().split(context, text)

    watcher = CorpusWatcher(
        source,
        index,
        lambda: DocsBuilder(source, index, Slow(), BuildOptions(), lambda *_: None).build(),
        watch=False,
    )
    watcher.run()
    assert seen == ["True embedding 0 of 3"] * 3
    assert (watcher.facts().is_running, watcher.facts().progress) == (False, "")
    assert IndexFolder(index).progress is None


def test_a_build_that_resumes_does_not_publish_again_what_servers_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(HashingEmbedder):
        def split(self, context: str, text: str) -> list[tuple[int, int]]:
            raise KeyboardInterrupt

    source, index = write_pages(tmp_path / "harbour", 3), tmp_path / "index"
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            DocsBuilder(source, index, Broken(), BuildOptions(), lambda *_: None).build()
        assert [path.name for path in index.glob("generation-*")] == ["generation-1"]
        stopped = IndexFolder(index).progress
        assert stopped == BuildProgress("Embedding", 0, 3, is_running=False)
    DocsBuilder(source, index, HashingEmbedder(), BuildOptions(), lambda *_: None).build()
    assert [path.name for path in index.glob("generation-*")] == ["generation-2"]


def test_full_coverage_replaces_estimates_by_the_model(tmp_path: Path) -> None:
    texts = [f"Chapter {number}. The harbour master keeps boats dry and mends their sails." for number in range(9)]
    source = tmp_path / "harbour"
    source.mkdir()
    for number in range(70):
        # Longer headings have vectors of their own, which no coverage leaves out.
        sections = "".join(f"## Part {part}, {number}\n\n{text}\n\n" for part, text in enumerate(texts))
        (source / f"n{number:02}.md").write_text(f"# Page {number}\n\n{sections}")
    data: tuple[str | Path, ...] = ("--out", tmp_path / "index", "--cache-dir", tmp_path / "cache")
    counts = []
    for coverage in ("fast", "full"):
        done = bedstone("docs", "build", source, *data, "--embedding-coverage", coverage)
        assert done.returncode == 0, done.stderr
        counts.append(_cached(tmp_path / "cache" / "embeddings.sqlite"))
    assert counts[0] < 0.7 * counts[1]
    again = bedstone("docs", "build", source, *data, "--embedding-coverage", "full")
    assert _cached(tmp_path / "cache" / "embeddings.sqlite") == counts[1], again.stderr


def _cached(path: Path) -> int:
    import sqlite3  # noqa: PLC0415
    from contextlib import closing  # noqa: PLC0415

    with closing(sqlite3.connect(path)) as cache:
        return int(cache.execute("SELECT count(*) FROM vector").fetchone()[0])
