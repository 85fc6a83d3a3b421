"""Health says what is true: each part that fails is told by its name, at every place that reports health."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from contracts.requirements import proves
from soak.knowledge import call
from support.processes import BEDSTONE, Listening, bedstone, free_port, listening

# Root may read and write everything; without these two capabilities, permissions hold for root as well.
AS_USER = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.name != "nt" and os.getuid() == 0 else ()
HEALTHY = {
    "status": "healthy",
    "vector_db_connected": True,
    "storage_accessible": True,
    "embedding_model_loaded": True,
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with one document."""
    folder = tmp_path_factory.mktemp("stored")
    (folder / "tides.txt").write_text("tide tables of the harbour")
    assert bedstone("knowledge", "add", folder / "tides.txt", "--data-dir", folder / "data").returncode == 0
    return folder / "data"


@pytest.fixture
def data(stored: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(stored, tmp_path / "data"))


@contextmanager
def serving(data: Path, *more: str | Path, **environment: str) -> Iterator[Listening]:
    options = ("--toolsets", "knowledge", "--data-dir", data, *more)
    with listening(*options, log=data.parent / "log", program=(*AS_USER, BEDSTONE), **environment) as server:
        yield server


@contextmanager
def without_permissions(folder: Path) -> Iterator[None]:
    before = folder.stat().st_mode
    folder.chmod(0)
    try:
        yield
    finally:
        folder.chmod(before)


def health_of(server: Listening) -> Any:
    return call(server, "status", {})["health"]


def readiness_of(server: Listening) -> tuple[int, list[str]]:
    status, answer = server.request("GET", "/readyz")
    return status, json.loads(answer)["problems"]


@proves("knowledge.status")
def test_folders_without_permissions_and_missing_texts_are_told(data: Path) -> None:
    with serving(data) as server:
        assert (health_of(server), readiness_of(server)) == (HEALTHY, (200, []))
        with without_permissions(data / "documents"):
            # Exactly as the contract prints it.
            assert health_of(server) == {
                **HEALTHY,
                "status": "degraded",
                "storage_accessible": False,
                "issues": ["Storage directory not accessible: Permission denied"],
            }
            problem = "Storage directory not accessible: Permission denied"
            assert readiness_of(server) == (503, [f"knowledge: {problem}"])
            assert problem in server.request("GET", "/")[1].decode()
        assert (health_of(server), readiness_of(server)) == (HEALTHY, (200, []))
        with without_permissions(data / "index"):
            sick = health_of(server)
            assert (sick["status"], sick["vector_db_connected"], sick["storage_accessible"]) == (
                "degraded",
                False,
                True,
            )
            assert "Index directory not accessible: Permission denied" in sick["issues"]
            assert readiness_of(server)[0] == 503
        assert (health_of(server), readiness_of(server)) == (HEALTHY, (200, []))
        (text,) = (data / "documents").glob("*/text.json.z")
        text.unlink()
        health = health_of(server)
        assert (health["status"], health["storage_accessible"]) == ("degraded", False)
        assert health["issues"] == ["The text of tides.txt cannot be read: No such file or directory"]


@proves("knowledge.status")
def test_garbage_in_the_database_is_a_status_and_not_an_error(data: Path) -> None:
    store = data / "index" / "knowledge.sqlite"
    for extra in ("-wal", "-shm"):
        store.with_name(f"{store.name}{extra}").unlink(missing_ok=True)
    store.write_bytes(b"garbage, and more of it. " * 1_000)
    with serving(data) as server:
        answer = call(server, "status", {})
        health = answer["health"]
        assert (health["status"], health["vector_db_connected"]) == ("degraded", False)
        assert (health["storage_accessible"], health["embedding_model_loaded"]) == (True, True)
        assert "not a database" in health["issues"][0]
        assert any("figures" in issue for issue in health["issues"])
        figures = answer["knowledge_base"]
        assert (figures["document_count"], figures["total_chunks"], figures["total_size_bytes"]) == (1, 0, 0)
        assert figures["storage_path"] == str(data / "documents")
        assert readiness_of(server)[0] == 503
    printed = json.loads(bedstone("knowledge", "status", "--data-dir", data).stdout)
    assert printed["health"]["vector_db_connected"] is False
    doctor = json.loads(bedstone("doctor", "--json", "--data-dir", data).stdout)
    assert any(item["subject"] == "knowledge" and item["verdict"] == "problem" for item in doctor)


@proves("knowledge.status")
def test_a_model_that_does_not_answer_is_told(data: Path) -> None:
    service = {
        "BEDSTONE_EMBEDDING__PROVIDER": "openai",
        "BEDSTONE_EMBEDDING__BASE_URL": f"http://127.0.0.1:{free_port()}/v1",
    }
    with serving(data, **service) as server:
        health = health_of(server)
        assert (health["status"], health["embedding_model_loaded"]) == ("degraded", False)
        assert (health["vector_db_connected"], health["storage_accessible"]) == (True, True)
        assert health["issues"][0].startswith("The embedding model does not answer: ")
        assert readiness_of(server) == (200, [])  # keyword search works
        assert call(server, "search", {"query": "tide"})["total_results"] == 1


def test_readiness_covers_every_toolset(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Tides\n\nTwice a day.\n")
    index = tmp_path / "index"
    assert bedstone("docs", "build", tmp_path / "docs", "--out", index).returncode == 0
    (tmp_path / "kb.txt").write_text("tide tables")
    options = ("--toolsets", "docs,kb", "--docs-index", index, "--kb-file", tmp_path / "kb.txt")
    (store,) = index.glob("**/*.sqlite")
    with listening(*options, "--data-dir", tmp_path / "data", log=tmp_path / "log") as server:
        assert readiness_of(server) == (200, [])
        (tmp_path / "kb.txt").unlink()
        assert readiness_of(server) == (503, ["kb: The knowledge base file does not exist: kb.txt"])
    store.write_bytes(b"garbage")
    with listening(*options, "--data-dir", tmp_path / "data", log=tmp_path / "log") as server:
        assert [problem.partition(":")[0] for problem in readiness_of(server)[1]] == ["docs", "kb"]
