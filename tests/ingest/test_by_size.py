"""Chunks of pages: sizes, structure, places, ids."""

import pytest

from bedstone.ingest.chunking.by_size import SplitOptions, Splitting, chunk_pages
from bedstone.ingest.extraction import Page
from bedstone.records import Chunk

PROSE = "The tide rises slowly in the bay. " * 60


def split(*pages: str, **options: object) -> list[Chunk]:
    numbered = [Page(text, number, len(pages)) for number, text in enumerate(pages, start=1)]
    return chunk_pages("doc", numbered, SplitOptions(**options), {"format": "pdf"})  # type: ignore[arg-type]


@pytest.mark.parametrize("by", ["sentence", "paragraph", "fixed"])
@pytest.mark.parametrize("overlap", [0, 50, 500, 5000])
def test_no_chunk_is_larger_than_allowed_and_nothing_is_lost(by: Splitting, overlap: int) -> None:
    words = " ".join(f"word{number}" for number in range(900))
    chunks = split(f"# Title\n\n{words}\n\n{'x' * 3000}", size=500, overlap=overlap, by=by)
    assert all(len(chunk.text) <= 520 for chunk in chunks)
    everything = "".join("".join(chunk.plain.split()) for chunk in chunks)
    assert all(f"word{number}" in everything for number in range(900))
    assert everything.count("x") >= 3000


def test_chunks_know_their_page_and_headings() -> None:
    chunks = split("# Guide\n\nIntro text.\n\n## Setup\n\n" + PROSE, "## Proxy\n\n" + PROSE)
    assert chunks[0].page == 1
    assert chunks[0].breadcrumb == ("Guide",)
    second = [chunk for chunk in chunks if chunk.page == 2]
    assert {chunk.breadcrumb for chunk in second} == {("Guide", "Proxy")}
    assert all(chunk.facets == {"format": "pdf"} for chunk in chunks)


def test_sentences_stay_whole_and_overlap() -> None:
    chunks = split(PROSE, size=200, overlap=50)
    assert all(chunk.text.startswith("The tide") and chunk.text.endswith("bay.") for chunk in chunks)
    joined = split("First one. Second one here. Third one. Fourth one now.", size=30, overlap=15)
    assert [chunk.text for chunk in joined] == [
        "First one. Second one here.",
        "Third one. Fourth one now.",
    ]


def test_sentences_end_in_every_script() -> None:
    chunks = split("これは文です。" * 40 + "यह वाक्य है। " * 40, size=100, overlap=0)
    assert all(chunk.text[-1] in "。।" for chunk in chunks)


def test_tables_are_cut_between_rows_under_their_head() -> None:
    rows = "\n".join(f"| part {number} | {number} |" for number in range(100))
    chunks = split(f"| Name | Count |\n| --- | --- |\n{rows}", size=300)
    assert len(chunks) > 5
    assert all(chunk.text.startswith("| Name | Count |\n| --- | --- |\n| part") for chunk in chunks)
    assert "Name | Count" in chunks[3].plain
    assert "---" not in chunks[3].plain


def test_code_is_cut_between_lines() -> None:
    code = "\n".join(f"print({number})" for number in range(200))
    chunks = split(f"```python\n{code}\n```", size=300)
    assert all(chunk.text.startswith("```\nprint(") and chunk.text.endswith("\n```") for chunk in chunks)


def test_ids_are_stable_and_different() -> None:
    first, again = split(PROSE), split(PROSE)
    assert [chunk.id for chunk in first] == [chunk.id for chunk in again]
    assert len({chunk.id for chunk in first}) == len(first)
    assert all(len(chunk.id) == 36 and chunk.id[14] == "4" for chunk in first)
    assert split("") == []
