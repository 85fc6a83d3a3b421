"""The metadata of a docs corpus: what is read from metadata.json is written back as it was."""

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedstone.errors import InvalidInput
from bedstone.services.docs.index_folder import IndexFolder
from bedstone.services.docs.metadata import (
    CorpusMetadata,
    EmbeddingOrigin,
    Facet,
    IndexStats,
    merge_prompts,
    merge_taxonomies,
)
from bedstone.services.docs.source.prompt_templates import PromptTemplate, TemplateArgument

DATA_FOLDER = Path(__file__).parents[1] / "golden" / "data_folder" / "data.zip"
TEXT = st.text(max_size=12)
NAMES = st.lists(TEXT, max_size=4, unique=True).map(tuple)
ARGUMENTS = st.builds(TemplateArgument, TEXT, st.none() | TEXT, st.none() | TEXT, st.booleans())
TEMPLATES = st.builds(
    PromptTemplate,
    name=TEXT,
    messages=st.lists(st.tuples(st.sampled_from(["user", "assistant"]), TEXT), max_size=3).map(tuple),
    title=st.none() | TEXT,
    description=st.none() | TEXT,
    arguments=st.lists(ARGUMENTS, max_size=3).map(tuple),
)
OPTIONS = st.dictionaries(st.sampled_from(["base_url", "revision"]), TEXT | st.integers())
METADATA = st.builds(
    CorpusMetadata,
    description=TEXT,
    taxonomy=st.dictionaries(TEXT, st.builds(Facet, TEXT, NAMES, st.booleans(), NAMES), max_size=3),
    stats=st.builds(IndexStats, st.integers(0), st.integers(0), TEXT, st.none() | TEXT),
    embedding=st.none() | st.builds(EmbeddingOrigin, TEXT, TEXT, st.integers(1), TEXT, OPTIONS),
    files=st.dictionaries(TEXT, TEXT, max_size=3),
    prompts=st.lists(TEMPLATES, max_size=2).map(tuple),
    tool_descriptions=st.dictionaries(TEXT, TEXT, max_size=2),
    given_instructions=st.none() | TEXT,
    instructions=st.none() | TEXT,
    cursor_key=TEXT,
    state=TEXT,
    generation=TEXT,
)


@pytest.fixture
def recorded() -> bytes:
    """Return the metadata.json of a data folder that earlier code wrote."""
    with ZipFile(DATA_FOLDER) as archive:
        return archive.read("docs/docs/metadata.json")


def as_file(data: dict[str, Any], folder: Path) -> IndexFolder:
    (folder / "metadata.json").write_text(json.dumps(data), encoding="utf-8")
    return IndexFolder(folder)


def test_a_recorded_file_is_published_byte_for_byte(recorded: bytes, tmp_path: Path) -> None:
    (tmp_path / "metadata.json").write_bytes(recorded)
    (tmp_path / "generation-1").mkdir()
    index = IndexFolder(tmp_path)
    (tmp_path / "building").mkdir()
    index.publish(tmp_path / "building", index.existing_metadata, last=True)  # as generation-2, like the recorded one
    assert (tmp_path / "metadata.json").read_bytes() == recorded


def test_a_recorded_file_is_read_with_types(recorded: bytes) -> None:
    metadata = CorpusMetadata.from_json(json.loads(recorded))
    assert metadata.taxonomy["language"] == Facet(
        "Programming language of the SDK.", ("python", "typescript"), collapses_variants=True
    )
    assert (metadata.stats.total_chunks, metadata.stats.total_files) == (28, 7)
    assert metadata.embedding is not None
    assert (metadata.embedding.provider, metadata.embedding.dimensions) == ("minilm", 384)
    assert metadata.files["api/bikes.md"] == "Bikes"
    assert metadata.generation == "generation-2"


@given(METADATA)
def test_metadata_survive_json(metadata: CorpusMetadata) -> None:
    data = json.loads(json.dumps(metadata.to_json()))
    assert CorpusMetadata.from_json(data) == metadata
    assert json.dumps(CorpusMetadata.from_json(data).to_json()) == json.dumps(data)


def test_unknown_keys_are_ignored(recorded: bytes, tmp_path: Path) -> None:
    data = json.loads(recorded)
    more = {**data, "added_later": 1, "stats": {**data["stats"], "words": 9}}
    assert as_file(more, tmp_path).metadata == CorpusMetadata.from_json(data)


@pytest.mark.parametrize("broken", [{"index": {}}, {"files": ["a.md"]}, {"taxonomy": {"k": {"values": []}}}])
def test_an_incomplete_file_is_reported(broken: dict[str, Any], recorded: bytes, tmp_path: Path) -> None:
    index = as_file({**json.loads(recorded), **broken}, tmp_path)
    with pytest.raises(InvalidInput, match=r"Cannot read .*metadata\.json"):
        _ = index.metadata


def test_several_corpora_share_facets_and_keep_their_prompts_apart() -> None:
    prompt = PromptTemplate("ask", (("user", "Why?"),))
    corpora = {
        "b": CorpusMetadata(taxonomy={"language": Facet("First", ("go",), collapses_variants=True)}, prompts=(prompt,)),
        "a": CorpusMetadata(taxonomy={"language": Facet("Second", ("c", "go"))}),
    }
    assert merge_taxonomies(corpora) == {
        "corpus": Facet("Filter results by corpus.", ("a", "b")),
        "language": Facet("First", ("c", "go")),
    }
    assert merge_prompts(corpora) == {"b/ask": prompt}
    assert merge_prompts({"b": corpora["b"]}) == {"ask": prompt}
    assert merge_taxonomies({"b": corpora["b"]}) == corpora["b"].taxonomy
