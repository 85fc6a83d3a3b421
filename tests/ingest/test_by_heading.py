"""Chunk ids are public: stored ones must keep working."""

import pytest

from bedstone.ingest.chunking.by_heading import ChunkBy, Strategy, chunk_blocks
from bedstone.ingest.chunking.slugs import slug
from bedstone.ingest.formats.rst import rst_to_markdown
from bedstone.ingest.markdown import markdown_blocks
from bedstone.records import Chunk

GUIDE = """Intro text.

# Guide

Before.

## Set up

One.

### Linux

Two.

### Linux

Three.

## Set up

Four.

# Appendix

Still part of the second set-up.

## Links

Five.
"""


def chunk_markdown(
    path: str, source: str, strategy: Strategy, *, title: str, facets: dict[str, str]
) -> tuple[str, list[Chunk]]:
    return chunk_blocks(path, source, markdown_blocks(source), strategy, title=title, facets=facets)


def cut(source: str, chunk_by: ChunkBy = "h2", **sizes: int) -> dict[str, str]:
    strategy = Strategy(chunk_by, **sizes)
    return {item.id: item.text for item in chunk_markdown("a.md", source, strategy, title="Guide", facets={})[1]}


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Backoff Strategy", "backoff-strategy"),
        ("  What's new in v2.1?  ", "whats-new-in-v21"),
        ("MCP_* and .env files", "mcp-and-env-files"),
        ("a -- b", "a-b"),
        ("Café", "caf"),
        ("配置 指南", "配置-指南"),
        ("Настройка", "настройка"),
        ("???", "section"),
    ],
)
def test_slugs(heading: str, expected: str) -> None:
    assert slug(heading) == expected


@pytest.mark.parametrize(
    ("chunk_by", "ids"),
    [
        ("file", ["a.md"]),
        ("h1", ["a.md#_preamble", "a.md#guide", "a.md#appendix"]),
        ("h2", ["a.md#_preamble", "a.md#guide/set-up", "a.md#guide/set-up-2", "a.md#appendix/links"]),
        ("h3", ["a.md#_preamble", "a.md#guide/set-up/linux", "a.md#guide/set-up/linux-2"]),
    ],
)
def test_a_chunk_starts_at_each_heading_of_its_level(chunk_by: ChunkBy, ids: list[str]) -> None:
    assert list(cut(GUIDE, chunk_by)) == ids


def test_shallower_headings_stay_inside() -> None:
    assert cut(GUIDE)["a.md#guide/set-up-2"].endswith("Still part of the second set-up.")


def test_no_text_is_lost_or_written_twice() -> None:
    for chunk_by in ("file", "h1", "h2", "h3"):
        for size in (20_000, 60, 15):
            text = "\n\n".join(cut(GUIDE, chunk_by, max_chunk_size=size).values())
            assert text.split() == GUIDE.split()


def test_a_large_section_is_cut_at_deeper_headings() -> None:
    ids = list(cut(GUIDE, "h2", max_chunk_size=30))
    first = ids.index("a.md#guide/set-up")
    assert ids[first : first + 3] == ["a.md#guide/set-up", "a.md#guide/set-up/linux", "a.md#guide/set-up/linux-2"]


def test_without_headings_it_is_cut_between_blocks() -> None:
    source = "## A\n\n" + "\n\n".join(f"Paragraph {number}." for number in range(6))
    assert list(cut(source, max_chunk_size=40)) == ["a.md#a", "a.md#a-part-2", "a.md#a-part-3"]
    assert list(cut(source, "file", max_chunk_size=40)) == ["a.md", "a.md#_part-2", "a.md#_part-3"]


def test_a_small_part_joins_the_one_before() -> None:
    source = "## A\n\n" + "word " * 10 + "\n\nend"
    assert len(cut(source, max_chunk_size=58)) == 2
    assert len(cut(source, max_chunk_size=58, min_chunk_size=10)) == 1


def test_one_huge_block_is_cut_at_its_lines() -> None:
    rows = "\n".join(f"| name{number} | value{number} |" for number in range(200))
    parts = cut(f"## Fields\n\n| a | b |\n|---|---|\n{rows}\n", max_chunk_size=1000)
    assert len(parts) > 4
    assert list(parts)[:3] == ["a.md#fields", "a.md#fields-part-2", "a.md#fields-part-2-2"]
    assert all(len(text) <= 1000 for text in parts.values())
    lines = cut("## Code\n\n```\n" + "ü" * 5000 + "\n```\n", max_chunk_size=1000)
    assert all(len(text) <= 1010 for text in lines.values())
    assert "".join(lines.values()).count("ü") == 5000


@pytest.mark.parametrize(
    "source", ["```\n## not a heading\n```\n", "> ## quoted\n", "- ## in a list\n", "    ## indented\n"]
)
def test_only_top_level_headings_count(source: str) -> None:
    assert list(cut(source)) == ["a.md#_preamble"]


def test_plain_text_keeps_cells_and_items_apart() -> None:
    source = "## T\n\n| Name | Type |\n|---|---|\n| `id` | **str** |\n\n- one\n- [two](x)\n\n<b>bold</b> &amp; more\n"
    title, (chunk,) = chunk_markdown("a.md", source, Strategy(), title="", facets={"k": "v"})
    assert title == ""
    assert chunk.plain == "T\nName | Type\nid | str\none\ntwo\nbold & more"
    assert (chunk.heading, chunk.level, chunk.breadcrumb, chunk.facets) == ("T", 2, ("T",), {"k": "v"})


def test_a_preamble_goes_by_the_title() -> None:
    _, (chunk,) = chunk_markdown("a.md", "Hello", Strategy(), title="My file", facets={})
    assert (chunk.heading, chunk.breadcrumb, chunk.level) == ("My file", ("My file",), 0)


def test_the_first_top_heading_is_the_title() -> None:
    assert chunk_markdown("a.md", GUIDE, Strategy(), title="", facets={})[0] == "Guide"


def test_an_empty_file_has_no_chunks() -> None:
    assert cut("") == {}
    assert cut("\n\n") == {}


def test_ids_never_collide() -> None:
    source = "## Foo\n\n## Foo\n\n## Foo 2\n\n## Foo\n"
    _, chunks = chunk_markdown("a.md", source, Strategy(), title="", facets={})
    ids = [chunk.id for chunk in chunks]
    assert ids == ["a.md#foo", "a.md#foo-2", "a.md#foo-2-2", "a.md#foo-3"]
    long = "## X\n\n" + "word word\n\n" * 10 + "## X part 2\n\ntext\n"
    _, chunks = chunk_markdown("a.md", long, Strategy(max_chunk_size=60), title="", facets={})
    assert len({chunk.id for chunk in chunks}) == len(chunks)


def test_sizes_count_characters_in_every_script() -> None:
    paragraphs = "\n\n".join("電" * 50 for _ in range(20))
    _, chunks = chunk_markdown("a.md", paragraphs, Strategy(max_chunk_size=520), title="", facets={})
    assert [len(chunk.text) for chunk in chunks] == [518, 518]
    _, pieces = chunk_markdown("a.md", "é" * 10, Strategy(max_chunk_size=1), title="", facets={})
    assert [piece.text for piece in pieces] == ["é"] * 10


def test_long_headings_are_bounded_in_ids_and_breadcrumbs() -> None:
    """Every chunk below a heading has its text and its slug."""
    above = "\n\n".join(f"{'#' * level} {f'level{level} ' * 20_000}" for level in (1, 2, 3, 4))
    below = "\n\n".join(f"##### Part {number}\n\nText {number}." for number in range(50))
    title, chunks = chunk_markdown("a.md", f"{above}\n\n{below}", Strategy("h3", 2_000), title="", facets={})
    assert max(len(chunk.id) for chunk in chunks) < 1_200
    assert max(sum(map(len, chunk.breadcrumb)) for chunk in chunks) < 1_200
    assert len(title) <= 300
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    text = "".join(chunk.text for chunk in chunks)
    assert [text.count(f"level{level}") for level in (1, 2, 3, 4)] == [20_000] * 4


def test_two_long_headings_with_the_same_beginning_have_different_ids() -> None:
    long = "same words " * 50
    _, chunks = chunk_markdown("a.md", f"## {long}1\n\na\n\n## {long}2\n\nb\n", Strategy(), title="", facets={})
    assert len({chunk.id for chunk in chunks}) == 2


@pytest.mark.parametrize("line", ["`" + " " * 60_000 + "x", "a " + ":a" * 30_000, "`a <" * 15_000, ":a:`b " * 10_000])
def test_inline_markup_of_a_long_line_is_converted_in_linear_time(line: str) -> None:
    assert rst_to_markdown(line)
