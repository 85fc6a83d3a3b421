"""Every chunk knows its range in the text of its document: the text there has the words of the chunk."""

import re
from collections import Counter
from pathlib import Path

import pytest

from bedstone.ingest.chunking.by_heading import Strategy, chunk_blocks
from bedstone.ingest.chunking.by_size import chunk_pages
from bedstone.ingest.chunking.pieces import SplitOptions, Splitting
from bedstone.ingest.extraction import Page
from bedstone.ingest.markdown import markdown_blocks
from bedstone.ingest.page_marks import mark_pages
from bedstone.ingest.reader import read_whole
from bedstone.records import CHUNK_SEPARATOR

DEMO = Path(__file__).parents[2] / "demo"
WORD = re.compile(r"\w+")
PROSE = "Some **bold** words, a [link](https://example.org/very/long/address?with=parameters) and `code` here. "
TABLE = "| a | b |\n|---|---|\n" + "".join(f"| row {number} | value {number * 7} |\n" for number in range(300))
CODE = "```python\n" + "".join(f"line_{number} = {number}\n" for number in range(200)) + "```"
MARKDOWN = "\n\n".join(
    ["# Title", "".join(f"{number}. {PROSE}" for number in range(150)), TABLE, CODE, "Zwölf Boxkämpfer 中文字 ende."]
)


def check_ranges(pages: list[Page], by: Splitting = "sentence") -> int:
    """Assert that the range of each chunk has its words, and little else; return how many chunks there are."""
    text, _ = mark_pages(pages)
    chunks = chunk_pages("id", pages, SplitOptions(by=by), {})
    for chunk in chunks:
        assert chunk.span is not None
        start, end = chunk.span
        found, wanted = Counter(WORD.findall(text[start:end])), Counter(WORD.findall(chunk.plain))
        head = Counter({"a": 1, "b": 1})  # the head of a table stands in every part of it
        assert sum((wanted - found - head).values()) <= 2, (chunk.text[:80], text[start:end][:80])
        assert (found - wanted).total() <= max(12, 2 * wanted.total()), (chunk.text[:80], text[start:end][:80])
    return len(chunks)


@pytest.mark.parametrize("by", ["sentence", "paragraph", "fixed"])
def test_chunks_of_prose_tables_and_code_have_their_range(by: Splitting) -> None:
    assert check_ranges([Page(MARKDOWN)], by) > 30
    assert check_ranges([Page(MARKDOWN, 1), Page("", 2), Page(MARKDOWN, 3)], by) > 60


@pytest.mark.parametrize("name", ["porter-workshop-manual.pdf", "recall-2025-03.md", "winter-test.html", "dealers.csv"])
def test_chunks_of_real_files_have_their_range(name: str) -> None:
    assert check_ranges(read_whole(DEMO / "files" / name)[0])


def test_a_long_block_is_not_searched_to_its_end_for_each_part() -> None:
    """Parts whose words do not stand in the text as they are, such as entities, would take quadratic time."""
    text = " ".join(["&nbsp;&amp;&#x2014;word"] * 60_000)
    assert len(chunk_pages("id", [Page(text)], SplitOptions(), {})) > 100


def test_chunks_of_documentation_have_their_range_in_the_whole_file() -> None:
    for file in sorted((DEMO / "docs").rglob("*.md")):
        source = file.read_text(encoding="utf-8")
        _, chunks = chunk_blocks(file.name, source, markdown_blocks(source), Strategy(), title="", facets={})
        whole = CHUNK_SEPARATOR.join(chunk.text for chunk in chunks)
        for chunk in chunks:
            assert chunk.span is not None
            assert whole[slice(*chunk.span)] == chunk.text
