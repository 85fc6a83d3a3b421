"""Properties of both chunkers on generated documents: nothing is lost, sizes hold, ids are stable."""

import re
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from bedstone.ingest.chunking.by_heading import LEVELS, Strategy, chunk_blocks
from bedstone.ingest.chunking.by_size import chunk_pages
from bedstone.ingest.chunking.pieces import SplitOptions
from bedstone.ingest.extraction import Page
from bedstone.ingest.markdown import markdown_blocks
from bedstone.records import Chunk

HEADINGS = re.compile(r"\A(?:#{1,6} [^\n]*(?:\n\n|\Z))+")
FENCES = 6  # characters of the two fences of a code block
# A document in brief: the kind of each block, and its number of words, items, rows or lines.
KINDS = ("h1", "h2", "h3", "h4", "text", "list", "table", "code")
Outline = list[tuple[str, int]]
OUTLINES = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 60)), max_size=14)
SIZES = st.integers(80, 400)


def markdown(outline: Outline, word: str = "word") -> str:
    """Write a document whose words are numbered, so that each is unique and no longer than eight characters."""
    numbers = count()

    def words(number: int) -> str:
        return " ".join(f"{word}{next(numbers)}" for _ in range(number))

    def block(kind: str, number: int) -> str:
        match kind:
            case "text":
                return f"{words(number)}. {words(2)}!"
            case "list":
                return "\n".join(f"- {words(2)}" for _ in range(number))
            case "table":
                rows = "\n".join(f"| {words(1)} | {words(1)} |" for _ in range(number))
                return f"| {words(1)} | {words(1)} |\n| --- | --- |\n{rows}"
            case "code":
                lines = "\n".join(words(3) for _ in range(number))
                return f"```python\n{lines}\n```"
            case _:
                return f"{'#' * int(kind[1])} {words(1)}"

    return "\n\n".join(block(kind, number) for kind, number in outline)


def numbered_words(text: str) -> list[str]:
    return re.findall(r"word\d+", text)


def by_heading(source: str, strategy: Strategy) -> list[Chunk]:
    return chunk_blocks("a.md", source, markdown_blocks(source), strategy, title="", facets={})[1]


def by_size(sources: list[str], options: SplitOptions) -> list[Chunk]:
    return chunk_pages("d", [Page(text, number) for number, text in enumerate(sources, start=1)], options, {})


@given(st.lists(OUTLINES, max_size=3), SIZES, st.integers(0, 500), st.sampled_from(["sentence", "paragraph"]))
def test_chunks_by_size_lose_nothing(outlines: list[Outline], size: int, overlap: int, by: str) -> None:
    sources = [markdown(outline) for outline in outlines]
    chunks = by_size(sources, SplitOptions(size, overlap, by))  # type: ignore[arg-type]
    for number, source in enumerate(sources, start=1):
        words = set(numbered_words(source))
        found = [chunk for chunk in chunks if words & set(numbered_words(chunk.plain))]
        assert words <= {word for chunk in found for word in numbered_words(chunk.plain)}, number
    assert all(set(numbered_words(chunk.plain)) == set(numbered_words(chunk.text)) for chunk in chunks)


@given(st.text(min_size=1, max_size=2_000), SIZES, st.integers(0, 500))
def test_fixed_windows_lose_nothing_of_any_text(text: str, size: int, overlap: int) -> None:
    """Without overlap the windows are the text; with overlap each of them is part of it."""
    plain = "".join("".join(block.plain.split()) for block in markdown_blocks(text))
    windows = by_size([text], SplitOptions(size, 0, "fixed"))
    assert "".join("".join(chunk.plain.split()) for chunk in windows) == plain
    for chunk in by_size([text], SplitOptions(size, overlap, "fixed")):
        assert all("".join(part.split()) in plain for part in chunk.plain.split("\n"))


@given(OUTLINES, SIZES, st.integers(0, 500), st.sampled_from(["sentence", "paragraph", "fixed"]))
def test_chunks_by_size_keep_to_the_size(outline: Outline, size: int, overlap: int, by: str) -> None:
    """Line ends do not count, and neither do the headings a chunk starts with."""
    for chunk in by_size([markdown(outline)], SplitOptions(size, overlap, by)):  # type: ignore[arg-type]
        body = HEADINGS.sub("", chunk.text)
        assert len(body.replace("\n", "")) <= size + FENCES


@given(OUTLINES, OUTLINES, SIZES)
def test_ids_by_size_depend_on_the_text_before_only(outline: Outline, appended: Outline, size: int) -> None:
    source = markdown(outline)
    chunks = by_size([source], SplitOptions(size))
    ids = [chunk.id for chunk in chunks]
    assert ids == [chunk.id for chunk in by_size([source], SplitOptions(size))]
    assert len(set(ids)) == len(ids)
    longer = by_size([source, markdown(appended, "other")], SplitOptions(size))
    kept = ids[:-1]  # the last chunk may grow
    assert [chunk.id for chunk in longer][: len(kept)] == kept


@given(OUTLINES, st.sampled_from(list(LEVELS)), SIZES, st.integers(0, 200))
def test_chunks_by_heading_lose_and_repeat_nothing(outline: Outline, chunk_by: str, size: int, minimum: int) -> None:
    source = markdown(outline)
    chunks = by_heading(source, Strategy(chunk_by, size, minimum))  # type: ignore[arg-type]
    assert [word for chunk in chunks for word in chunk.text.split()] == source.split()
    assert [word for chunk in chunks for word in numbered_words(chunk.plain)] == numbered_words(source)


@given(st.text(max_size=2_000), st.sampled_from(list(LEVELS)), st.integers(1, 200))
def test_chunks_by_heading_lose_nothing_of_any_text(text: str, chunk_by: str, size: int) -> None:
    chunks = by_heading(text, Strategy(chunk_by, size))  # type: ignore[arg-type]
    assert "".join("".join(chunk.text.split()) for chunk in chunks) == "".join(text.split())
    assert all(len(chunk.text) <= size for chunk in chunks)


@given(OUTLINES, st.sampled_from(list(LEVELS)), SIZES, st.integers(0, 200))
def test_chunks_by_heading_keep_to_the_size(outline: Outline, chunk_by: str, size: int, minimum: int) -> None:
    """A part below the minimum joins the one before it, which may then exceed the maximum by as much."""
    strategy = Strategy(chunk_by, size, min(minimum, size))  # type: ignore[arg-type]
    assert all(len(chunk.text) <= size + strategy.min_chunk_size for chunk in by_heading(markdown(outline), strategy))


@given(OUTLINES, st.sampled_from(list(LEVELS)), SIZES)
def test_ids_by_heading_depend_on_the_headings_only(outline: Outline, chunk_by: str, size: int) -> None:
    source = markdown(outline)
    strategy = Strategy(chunk_by, size)  # type: ignore[arg-type]
    ids = [chunk.id for chunk in by_heading(source, strategy)]
    assert len(set(ids)) == len(ids)
    rewritten = re.sub(r"^(?!#).*$", lambda line: line[0].replace("word", "term"), source, flags=re.MULTILINE)
    assert [chunk.id for chunk in by_heading(rewritten, strategy)] == ids
