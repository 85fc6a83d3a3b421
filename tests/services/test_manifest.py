"""Manifests, front matter and hints: what they say, and what is said of wrong ones."""

import json
import os
from pathlib import Path

import pytest

from bedstone.ingest.chunking.by_heading import Strategy
from bedstone.services.docs.source.folder import DocumentsFolder, strategy_key
from bedstone.services.docs.source.front_matter import split_front_matter
from bedstone.services.docs.source.globs import glob_pattern
from bedstone.services.docs.source.manifest import InvalidManifest, parse_manifest


def manifest(**parts: object) -> str:
    return json.dumps({"version": "1", **parts})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Manifest is not valid JSON"),
        ("[]", "manifest must be an object"),
        ("{}", "manifest.version must be '1'"),
        (manifest(version="2"), "manifest.version must be '1'"),
        (manifest(strategy=[]), "strategy must be an object"),
        (manifest(strategy={"chunk_by": "h4"}), "chunk_by must be one of: h1, h2, h3, file"),
        (manifest(strategy={"max_chunk_size": 0}), "max_chunk_size must be a positive integer"),
        (manifest(strategy={"max_chunk_size": True}), "max_chunk_size must be a positive integer"),
        (manifest(overrides={}), "manifest.overrides must be an array"),
        (manifest(overrides=[1]), "manifest.overrides[0] must be an object"),
        (manifest(overrides=[{"pattern": " "}]), "manifest.overrides[0].pattern must be a non-empty string"),
        (manifest(metadata=[]), "manifest.metadata must be an object"),
        (manifest(metadata={"": "x"}), "manifest.metadata contains an empty key"),
        (manifest(metadata={"a": 1}), "manifest.metadata.a must be a string"),
        (manifest(metadata={"a": " "}), "manifest.metadata.a cannot be empty"),
        (
            manifest(overrides=[{"pattern": "a", "metadata": {"b": 2}}]),
            "manifest.overrides[0].metadata.b must be a string",
        ),
        (manifest(mcpServerInstructions=" "), "manifest.mcpServerInstructions must be a non-empty string"),
        (
            manifest(taxonomy={"a": {"vector_collapse": 1}}),
            "Invalid taxonomy config: a.vector_collapse must be a boolean",
        ),
    ],
)
def test_wrong_manifests_are_told_in_words(text: str, message: str) -> None:
    with pytest.raises(InvalidManifest) as error:
        parse_manifest(text)
    assert error.value.message == message


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("guides/**/*.md", "guides/a.md", True),
        ("guides/**/*.md", "guides/b/c/a.md", True),
        ("guides/**/*.md", "other/a.md", False),
        ("*.md", "a/b.md", False),
        ("**", "a/.hidden/b.md", True),
        ("a?.md", "ab.md", True),
        ("[ab].md", "c.md", False),
        ("[!ab].md", "c.md", True),
        ("{a,b}/x.md", "b/x.md", True),
        ("a+b.md", "a+b.md", True),
    ],
)
def test_globs(glob: str, path: str, matches: bool) -> None:
    assert bool(glob_pattern(glob).fullmatch(path)) is matches


def test_every_matching_override_applies_in_order() -> None:
    found = parse_manifest(
        manifest(
            metadata={"scope": "guide", "kind": "text"},
            overrides=[
                {"pattern": "**", "metadata": {"scope": "sdk"}, "strategy": {"chunk_by": "h3", "max_chunk_size": 9}},
                {"pattern": "a/*.md", "strategy": {"chunk_by": "file"}},
            ],
        ),
        ("top"),
    )
    strategy, metadata = found.plan("top/a/b.md")
    assert strategy == Strategy("file")
    assert metadata == {"scope": "sdk", "kind": "text"}


def test_the_nearest_manifest_counts_alone(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / ".docs-mcp.json").write_text(manifest(metadata={"scope": "outer", "language": "go"}))
    (tmp_path / "inner" / ".docs-mcp.json").write_text(manifest(metadata={"scope": "inner"}))
    (tmp_path / "inner" / "a.md").write_text("# A\n")
    (tmp_path / "b.md").write_text("# B\n")
    folder = DocumentsFolder(tmp_path)
    assert folder.read("inner/a.md").facets == {"scope": "inner"}
    assert folder.read("b.md").facets == {"scope": "outer", "language": "go"}


@pytest.mark.parametrize(
    ("source", "strategy", "metadata", "title"),
    [
        ("text", Strategy("h1", 50), {"a": "1"}, ""),
        ('<!-- mcp_chunking_hint: {"chunk_by":"h3"} -->\ntext', Strategy("h3", 50), {"a": "1"}, ""),
        ("<!-- mcp_chunking_hint: {broken -->\ntext", Strategy("h1", 50), {"a": "1"}, ""),
        (
            "---\ntitle: T\nmetadata: {a: '2', b: '3'}\nmcp_metadata: {b: '4'}\n---\nx",
            Strategy("h1", 50),
            {"a": "2", "b": "4"},
            "T",
        ),
        ("---\nmcp_chunking_hint: file\n---\nx", Strategy("file"), {"a": "1"}, ""),
        ("---\nmcp_strategy: {chunk_by: h2, max_chunk_size: 7}\n---\nx", Strategy("h2", 7), {"a": "1"}, ""),
        ("---\nother: 1\n---\nx", Strategy("h1", 50), {"a": "1"}, ""),
    ],
)
def test_a_document_has_the_last_word(source: str, strategy: Strategy, metadata: dict[str, str], title: str) -> None:
    front = split_front_matter(source)
    assert front.apply(Strategy("h1", 50), {"a": "1"}) == (strategy, metadata)
    assert front.title == title
    assert "---" not in front.body


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    (tmp_path / "null.md").write_bytes(b"a\x00b")
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\x00")
    (tmp_path / ".hidden.md").write_text("x")
    (tmp_path / "prompt.template.md").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path)
    folder = DocumentsFolder(tmp_path)
    assert [str(path) for path in folder.paths()] == ["bad.md", "null.md"]
    for name, words in (("null.md", "not a text file"), ("bad.md", "not a text file"), ("gone.md", "No such file")):
        with pytest.raises(Exception, match=name) as error:
            folder.read(name)
        assert words in str(error.value)


def test_digests_are_those_of_earlier_versions(tmp_path: Path) -> None:
    """With others, every corpus would be chunked and embedded again."""
    (tmp_path / "a.md").write_text("# Title\n\nText.\n")
    os.utime(tmp_path / "a.md", (1_700_000_000, 1_700_000_000))
    strategy = {"chunk_by": "h1", "max_chunk_size": 900}
    written = {"version": "1", "strategy": strategy, "metadata": {"language": "go"}}
    (tmp_path / ".docs-mcp.json").write_text(json.dumps(written))
    file = DocumentsFolder(tmp_path).read("a.md")
    assert file.digest == "c042e2099961ad6c60815cb5b0cd497d"
    assert file.signature == "f15bf8aa637496f4823b1c9a4aebfedb"


@pytest.mark.parametrize(
    ("strategy", "key"),
    [
        (Strategy(), "Strategy(chunk_by='h2', max_chunk_size=20000, min_chunk_size=0)"),
        (Strategy("file"), "Strategy(chunk_by='file', max_chunk_size=20000, min_chunk_size=0)"),
        (Strategy("h3", 900, 50), "Strategy(chunk_by='h3', max_chunk_size=900, min_chunk_size=50)"),
    ],
)
def test_the_spelling_of_a_strategy_in_digests_never_changes(strategy: Strategy, key: str) -> None:
    assert strategy_key(strategy) == key


def test_digests_and_signatures_equal_those_of_existing_indexes(tmp_path: Path) -> None:
    (tmp_path / ".docs-mcp.json").write_text(manifest(metadata={"language": "go"}, strategy={"chunk_by": "h1"}))
    (tmp_path / "a.md").write_text("# A\n")
    os.utime(tmp_path / "a.md", ns=(10**18, 10**18))
    file = DocumentsFolder(tmp_path).read("a.md")
    assert (file.digest, file.signature) == ("f8c3b9367926b827530b3dbff00e84ba", "9ded4fe14092c2fde6211087097ec566")
