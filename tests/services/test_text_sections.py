"""Sections of plain texts: found where people see them, and nothing lost."""

import random
import string
import time
from pathlib import Path

import pytest

from bedstone.services.text_sections import MAX_SECTION_CHARS, PART_CHARS, split_sections

HANDBOOK = Path(__file__).parents[2] / "demo" / "handbook.txt"


def titles(text: str) -> list[tuple[int, str]]:
    check_complete(text)
    return [(section.level, section.title) for section in split_sections(text)]


def check_complete(text: str) -> None:
    sections = split_sections(text)
    assert "".join(text[section.start : section.end] for section in sections) == (text if text.strip() else "")
    anchors = [section.anchor for section in sections]
    assert len(set(anchors)) == len(anchors)
    assert all(anchor and "#" not in anchor and " " not in anchor for anchor in anchors)
    assert all(section.title and section.end > section.start for section in sections)


def test_the_demo_handbook_is_split_at_its_capitals_and_numbers() -> None:
    text = HANDBOOK.read_text()
    check_complete(text)
    sections = split_sections(text)
    assert [section.title for section in sections][:3] == [
        "KESTREL CYCLES SUPPORT HANDBOOK", "1. THE BIKES", "2. BATTERIES AND CHARGING",
    ]  # fmt: skip
    assert [section.level for section in sections] == [1, 2, 2, 2, 2, 2, 2]
    warranty = next(section for section in sections if section.anchor == "4-warranty")
    assert text[warranty.start : warranty.end].startswith("4. WARRANTY\n\n  frame")


def test_markdown_headings_count_outside_code_only() -> None:
    text = "# Guide\n\nIntro.\n\n## Setup ##\nText.\n\n```sh\n# a comment\n```\n\n### Deep\n\nMore # not one.\n"
    assert titles(text) == [(1, "Guide"), (2, "Setup"), (3, "Deep")]
    assert titles("```\n\n# after a fence that never ends\n\ntext") == [
        (1, "```"), (1, "after a fence that never ends"),
    ]  # fmt: skip


def test_underlined_headings_count() -> None:
    assert titles("Guide\n=====\n\nIntro.\n\nSetup\n-----\nText.\n") == [(1, "Guide"), (2, "Setup")]
    assert titles("one line\nof a paragraph\n---\nrest") == [(1, "one line of a paragraph --- rest")]
    assert titles("a | b\n---\nrest") == [(1, "a | b --- rest")]


def test_numbers_with_text_below_are_headings_and_lists_are_not() -> None:
    text = "4. Warranty\n\nThree years.\n\n4.1 Frame\n\nTen years.\n\n5) Returns\n\nThirty days."
    assert titles(text) == [(2, "4. Warranty"), (3, "4.1 Frame"), (2, "5) Returns")]
    steps = "To do:\n\n1. Open the box\n\n2. Take it out\n\n3. Close it\n\nThen wait."
    assert titles(steps) == [(1, "To do: 1. Open the box 2. Take it out 3. Close it Then wait.")]
    prose = "It was\n\n2019. And then it rained.\n\n3 litres of it fell.\n"
    assert len(titles(prose)) == 1, "a sentence that begins with a number is none"


def test_capitals_are_headings_if_they_are_words_of_their_own() -> None:
    manual = "NAME\n    ls - list files\n\nSYNOPSIS\n    ls [FILE]\n"
    assert titles(manual) == [(1, "NAME"), (2, "SYNOPSIS")]
    assert len(titles("Ask NASA\n\nOK\n\nE30\n\nNOTE:\n\nTHE END.\n")) == 1, "short, a code, or a sentence"
    assert titles("\u0413\u0410\u0420\u0410\u041d\u0422\u0418\u042f\n\n\u0442\u0435\u043a\u0441\u0442") == [
        (1, "\u0413\u0410\u0420\u0410\u041d\u0422\u0418\u042f"),
    ]  # fmt: skip


def test_a_text_without_headings_is_cut_between_paragraphs() -> None:
    paragraph = "Some words about the weather of the week. " * 10
    text = "\n\n".join(f"Day {number}: {paragraph}" for number in range(20))
    check_complete(text)
    sections = split_sections(text)
    assert len(sections) > 5
    assert all(section.end - section.start <= PART_CHARS for section in sections)
    assert all(text[section.start :].startswith("Day ") for section in sections)
    assert sections[0].title == "Day 0: Some words about the weather of the week. Some words …"
    assert len(titles("Just one line.")) == 1


def test_a_text_before_the_first_heading_is_a_section() -> None:
    assert titles("\n\nHello there.\n\n# One\n\nText.") == [(1, "Hello there."), (1, "One")]
    assert titles("\n\n# One\n\nText.") == [(1, "One")]


def test_long_sections_are_cut_too() -> None:
    text = "# Log\n\n" + "\n\n".join(f"Entry {number} of a long log." * 20 for number in range(100))
    found = titles(text)
    assert found[0] == (1, "Log")
    assert {level for level, _ in found[1:]} == {2}
    assert max(section.end - section.start for section in split_sections(text)) <= MAX_SECTION_CHARS


def test_anchors_stay_when_other_sections_change() -> None:
    before = split_sections("# One\n\ntext\n\n# Two\n\ntext\n\n# Two\n\nagain")
    after = split_sections("New beginning.\n\n# One\n\nother text\n\n# Two\n\ntext\n\n# Two\n\nagain")
    assert [section.anchor for section in before] == ["one", "two", "two-2"]
    assert [section.anchor for section in after][1:] == ["one", "two", "two-2"]


@pytest.mark.parametrize(
    "text",
    [
        "", " \n\n ", "\n", "x", "\r\n\r\n# Windows\r\n\r\nText\r\n", "\f\fPAGE ONE\n\ntext\f", "a" * 20_000,
        "\u65e5\u672c\u8a9e\u306e\u6587\u66f8\u3002" * 3_000, "# \n#\n##x\n", "===\n---\n",
        "\u2028\u2029 \u00a0\n" * 500,
        "#" * 10_000, "1. " * 5_000, "A\n\n" * 2_000, "```\n" * 999, "\n" * 5_000 + "x" + "\n" * 5_000,
    ],
    ids=range(16),
)  # fmt: skip
def test_odd_texts_lose_nothing(text: str) -> None:
    check_complete(text)


def test_random_texts_lose_nothing() -> None:
    generator = random.Random(7)
    pieces = [*string.printable, "\n\n", "# ", "## A", "1. One", "ABCD EFG", "=====", "-----", "```", "\u00e9", "\n"]
    for _ in range(400):
        check_complete("".join(generator.choices(pieces, k=generator.randint(1, 400))))


def test_ten_megabytes_are_split_in_seconds() -> None:
    text = "word " * 2_000_000 + "\n\n".join("ABC " * 20 for _ in range(20_000))
    started = time.process_time()
    check_complete(text)
    assert time.process_time() - started < 5
