"""Docs corpora that are published, fetched by servers with folders of their own, and replaced while they are served."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bedstone.errors import InvalidInput, NotFound
from bedstone.services.docs import publishing
from bedstone.services.docs.builder import BuildOptions, DocsBuilder
from bedstone.services.docs.corpus import DocsCorpus
from bedstone.services.docs.fetching import PublishedCorpus
from bedstone.services.docs.index_folder import IndexFolder
from bedstone.services.docs.publishing import MANIFEST, publish, read_published
from bedstone.store.blobs import BlobDamaged, Blobs, BlobsUnavailable
from bedstone.store.opening import open_blobs
from support.bucket import BucketServer
from support.processes import bedstone, listening

WAIT_SECONDS = 30
OFF: dict[str, Any] = {"BEDSTONE_EMBEDDING__PROVIDER": "none"}


@pytest.fixture(params=["folder", "s3"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return f"folder:{tmp_path / 'shared' / 'handbook'}"
    return str(request.getfixturevalue("bucket").address(prefix=f"docs {tmp_path.name}/handbook"))


@pytest.fixture
def place(address: str, tmp_path: Path) -> Iterator[Blobs]:
    with closing(open_blobs(address, tmp_path / "cache")) as blobs:
        yield blobs


def build(folder: Path, **pages: str) -> Path:
    """Write pages and build their index."""
    docs = folder / "docs"
    docs.mkdir(exist_ok=True)
    for name, text in pages.items():
        (docs / f"{name}.md").write_text(text)
    DocsBuilder(docs, folder / "index", None, BuildOptions(), lambda *_: None).build()
    return folder / "index"


def titles(index: Path) -> list[str]:
    corpus = DocsCorpus(index)
    try:
        return sorted(corpus.metadata.files.values())
    finally:
        corpus.close()


def wait_for(find: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WAIT_SECONDS
    while not (found := find()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def test_a_published_corpus_is_fetched_and_a_newer_one_replaces_it(place: Blobs, tmp_path: Path) -> None:
    index = build(tmp_path, tulips="# Tulips\n\nPlant them in autumn.", gulls="# Gulls\n\nFeed them at dawn.")
    first = publish(index, place)
    assert first.is_new
    assert 0 < first.uploaded <= first.files
    copy = tmp_path / "server" / "handbook"
    corpus = PublishedCorpus(place, copy, interval=0.05)
    corpus.ensure_copy()
    assert titles(copy) == ["Gulls", "Tulips"]
    assert IndexFolder(copy).existing_metadata.cursor_key == IndexFolder(index).existing_metadata.cursor_key
    again = publish(index, place)
    assert (again.is_new, again.uploaded) == (False, 0)
    corpus.start()
    try:
        before = IndexFolder(copy).existing_metadata.generation
        second = publish(build(tmp_path, boats="# Boats\n\nThey leave at noon."), place)
        assert 0 < second.uploaded <= second.files
        wait_for(lambda: IndexFolder(copy).existing_metadata.generation != before)
        assert titles(copy) == ["Boats", "Gulls", "Tulips"]
        current = IndexFolder(copy).existing_metadata.generation
        wait_for(lambda: [path.name for path in copy.glob("generation-*")] == [current])
    finally:
        corpus.stop()


def test_nothing_published_and_something_else_are_said(place: Blobs, tmp_path: Path) -> None:
    corpus = PublishedCorpus(place, tmp_path / "server" / "handbook")
    with pytest.raises(NotFound, match="No corpus is published"):
        corpus.ensure_copy()
    for data in (
        b"{",
        b"[]",
        b'{"version": 2}',
        b'{"version": 1, "files": {"metadata.json": [1, "x"]}}',
        b'{"version": 1, "files": {"metadata.json": [Infinity, "x"]}}',
    ):
        place.write(MANIFEST, data)
        with pytest.raises(InvalidInput, match="Publish"):
            corpus.ensure_copy()
    digest = "0" * 64
    for name in ("../x", "/x", "words/../../x", "..\\x", "C:x", "metadata.json/x"):
        place.write(
            MANIFEST, json.dumps({"version": 1, "files": {"metadata.json": [1, digest], name: [1, digest]}}).encode()
        )
        with pytest.raises(InvalidInput):
            corpus.ensure_copy()
    assert not (tmp_path / "server" / "x").exists()


def test_two_corpora_with_one_name_are_refused(tmp_path: Path) -> None:
    places = [f"folder:{tmp_path / name / 'handbook'}" for name in ("first", "second")]
    for number, address in enumerate(places):
        with closing(open_blobs(address, tmp_path / "cache")) as blobs:
            publish(build(tmp_path, tulips=f"# Tulips\n\nPlant {number} of them in autumn."), blobs)
    environment = {**OFF, "BEDSTONE_DOCS__PUBLISHED": ",".join(places)}
    refused = bedstone("serve", "--toolsets", "docs", "--data-dir", tmp_path / "server", **environment)
    assert refused.returncode == 1
    assert "docs.published has two corpora named 'handbook'" in refused.stderr


def test_a_damaged_file_is_never_served(place: Blobs, tmp_path: Path) -> None:
    publish(build(tmp_path, tulips="# Tulips\n\nPlant them in autumn."), place)
    copy = tmp_path / "server" / "handbook"
    corpus = PublishedCorpus(place, copy)
    corpus.ensure_copy()
    before = IndexFolder(copy).existing_metadata
    published = publish(build(tmp_path, boats="# Boats\n\nThey leave at noon."), place)
    assert published.is_new
    found = read_published(place)
    assert found is not None
    place.write(found.files["store.sqlite"].key, b"forged")
    with pytest.raises(BlobDamaged):
        corpus._fetch()  # noqa: SLF001 - what its thread does
    assert IndexFolder(copy).existing_metadata == before
    assert titles(copy) == ["Tulips"]


def test_what_nothing_needs_is_deleted_but_not_what_servers_may_be_fetching(
    place: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "KEPT_SECONDS", -1.0)
    states = []
    for number in range(3):
        index = build(tmp_path, tulips=f"# Tulips\n\nPlant {number} of them in autumn. " + "And water them. " * number)
        report = publish(index, place)
        published = read_published(place)
        assert published is not None
        states.append(published.digests)
    assert report.deleted
    left = {blob.key.rpartition("/")[2] for blob in place.list("files/")}
    assert left == states[1] | states[2]


def test_servers_serve_what_a_command_publishes(bucket: BucketServer, tmp_path: Path) -> None:
    environment = {**bucket.environment, **OFF}
    with bucket.gate() as gate:
        address = bucket.address(prefix="docs/handbook", endpoint=f"http://127.0.0.1:{gate.port}")
        data = ("--data-dir", tmp_path / "builder")
        docs = tmp_path / "docs"
        docs.mkdir()
        (docs / "tulips.md").write_text("# Tulips\n\nPlant them in autumn.")
        built = bedstone("docs", "build", docs, "--publish", address, *data, **environment)
        assert built.returncode == 0, built.stderr
        assert "Published s3://bedstone/docs/handbook" in built.stderr
        serve = ("--toolsets", "docs", "--data-dir", tmp_path / "server")
        environment["BEDSTONE_DOCS__PUBLISHED"] = address

        def search(server: Any, query: str) -> list[str]:
            body = {"method": "tools/call", "params": {"name": "search_docs", "arguments": {"query": query}}}
            _, answer = server.post("/mcp", {"jsonrpc": "2.0", "id": 1, **body})
            found = json.loads(json.loads(answer)["result"]["content"][0]["text"])
            return [hit["filepath"] for hit in found["hits"]]

        with listening(*serve, log=tmp_path / "log", **environment) as server:
            assert search(server, "autumn") == ["tulips.md"]
            (docs / "boats.md").write_text("# Boats\n\nThey leave at noon.")
            assert bedstone("docs", "build", docs, *data, **environment).returncode == 0
            published = bedstone(
                "docs", "publish", tmp_path / "builder" / "docs" / "docs", "--to", address, *data, **environment
            )
            assert published.returncode == 0, published.stderr
            wait_for(lambda: search(server, "noon") == ["boats.md"])
            assert server.request("GET", "/readyz")[0] == 200
        gate.close()
        with listening(*serve, log=tmp_path / "log", **environment) as server:  # its copy is enough
            assert search(server, "autumn") == ["tulips.md"]
            assert server.request("GET", "/readyz")[0] == 200
        fresh = ("--toolsets", "docs", "--data-dir", tmp_path / "fresh")
        checked = bedstone("doctor", *fresh, **environment)
        assert bucket.environment["AWS_SECRET_ACCESS_KEY"] not in checked.stdout + checked.stderr
        corpus = PublishedCorpus(open_blobs(address, tmp_path / "cache"), tmp_path / "fresh" / "handbook")
        with pytest.raises(BlobsUnavailable, match="does not answer"):
            corpus.ensure_copy()
