"""Chunks of pages: sizes, structure, places, ids."""

import pytest

from bedstone.ingest.chunking.by_size import chunk_pages, without_copies
from bedstone.ingest.chunking.pieces import SplitOptions, Splitting
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


def test_a_long_heading_is_in_the_text_once_and_its_beginning_with_every_chunk() -> None:
    heading = " ".join(f"word{number}" for number in range(20_000))
    chunks = split(f"# {heading}\n\n{PROSE}\n\n## {'long ' * 100}\n\n{PROSE}")
    assert "".join("".join(chunk.text.split()) for chunk in chunks).count("word19999") == 1
    assert all(f"word{number}" in " ".join(chunk.text for chunk in chunks[:400]) for number in (0, 9_999, 19_999))
    assert chunks[-1].breadcrumb[0].startswith("word0 word1 ")
    assert all(sum(map(len, chunk.breadcrumb)) <= 400 for chunk in chunks)
    assert all(text.endswith("…") for text in chunks[-1].breadcrumb)


def test_chunks_know_where_their_pages_and_sections_begin() -> None:
    (chunk,) = split("# One\n\nFirst page.", "Second *page*.\n\n## Two\n\nMore.")
    starts = [
        (place.page, place.breadcrumb, chunk.plain[place.start :], chunk.text[place.text_start :])
        for place in chunk.places
    ]
    assert starts == [
        (1, ("One",), chunk.plain, chunk.text),
        (2, ("One",), "Second page.\nTwo\nMore.", "Second *page*.\n\n## Two\n\nMore."),
        (2, ("One", "Two"), "Two\nMore.", "## Two\n\nMore."),
    ]
    assert split("# One\n\nText.")[0].places == ()


def test_pages_that_are_separate_share_neither_chunks_nor_headings() -> None:
    pages = [Page("# Budget\n\nRow 1.", 1, 3), Page("Row 2.", 2, 3), Page("# Staff\n\nRow 3.", 3, 3)]
    chunks = chunk_pages("doc", pages, SplitOptions(), {}, splits_pages=True)
    assert [(chunk.page, chunk.breadcrumb, chunk.places) for chunk in chunks] == [
        (1, ("Budget",), ()),
        (2, (), ()),
        (3, ("Staff",), ()),
    ]


def test_a_heading_moves_to_the_chunk_it_introduces() -> None:
    chunks = split(f"## Clause 17\n\nThe crane is idle.\n\n## Clause 18\n\n{PROSE[:480]}")
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["## Clause 17", "## Clause 18"]
    assert chunks[0].text.endswith("idle.")
    many = split("\n\n".join(f"# Heading {number}" for number in range(500)))
    assert len(many) > 10
    assert max(len(chunk.text) for chunk in many) < 600


def test_a_long_head_of_a_table_is_not_repeated() -> None:
    head = f"| {'column ' * 64}|\n| --- |\n"
    chunks = split(head + "\n".join(f"| row {number} |" for number in range(500)))
    whole = " ".join(chunk.plain for chunk in chunks)
    assert sum(len(chunk.text) for chunk in chunks) < 3 * len(head + "| row 000 |\n" * 500)
    assert whole.count("column") == 64
    assert all(f"row {number} " in f"{whole} ".replace("\n", " ") for number in range(500))
    long = split("| a |\n| --- |\n| " + " ".join(f"word{number}" for number in range(5_000)) + " |")
    assert max(len(chunk.text) for chunk in long) <= 520
    assert "word4999" in long[-1].plain


def test_the_same_text_is_kept_some_times() -> None:
    kept, copies = without_copies(split("\n\n".join([PROSE[:400]] * 100)))
    assert (len(kept), copies) == (20, 80)
