"""Split a plain text into sections: at its headings, or every few paragraphs if it has none."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from bedstone.ingest.chunking.slugs import slug

PART_CHARS = 1_500  # of a text without headings
MAX_SECTION_CHARS = 8_000  # a longer section is split between its paragraphs
MAX_HEADING_CHARS = 100
MAX_TITLE_CHARS = 60  # of a title that is made of the first words
MAX_ANCHOR_CHARS = 60
MIN_CAPITALS = 4
HASHES = re.compile(r"(#{1,6})[ \t]++(\S.*)$")
UNDERLINE = re.compile(r"(={3,}|-{3,})[ \t]*$")
NUMBERED = re.compile(r"(\d{1,3}(?:\.\d{1,3})*)[.)]?[ \t]+(\S.*)$")
WITH_LETTERS = re.compile(r"[^\W\d_]")
FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})")
ENDS_OF_SENTENCES = (".", ",", ";", ":", "!", "?")
NOT_IN_HEADINGS = ("|", "http://", "https://")


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a text; `anchor` names it as long as its title stays the same. Level 1 is the highest.

    `body` is where the text behind the heading begins, or the section itself if its title is only its first words.
    """

    title: str
    level: int
    anchor: str
    start: int
    end: int
    body: int


@dataclass(frozen=True, slots=True)
class _Line:
    """A line without its ending, and where it begins."""

    text: str
    start: int

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()


@dataclass(frozen=True, slots=True)
class _Heading:
    """A heading and the number of its first line and of the line behind it; `depth` is that of its number, if any."""

    title: str
    level: int
    first: int
    after: int
    depth: int = 0


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A section without an anchor."""

    title: str
    level: int
    start: int
    end: int
    body: int


def split_sections(text: str) -> list[Section]:
    """Return the sections of a text in order; together they are the whole text. A blank text has none."""
    return list(_split(text))


@lru_cache(maxsize=1)
def _split(text: str) -> Sequence[Section]:
    """Remember the last text: pages and searches keep asking for the same one."""
    if not text.strip():
        return []
    lines = _lines(text)
    headings = _without_lists(list(_headings(lines)), lines)
    first = lines[headings[0].first].start if headings else len(text)
    found = list(_parts(text, _Stretch("", 1, 0, first, 0), PART_CHARS)) if text[:first].strip() or not headings else []
    ends = [*(lines[heading.first].start for heading in headings[1:]), len(text)]
    for heading, end in zip(headings, ends, strict=True) if headings else ():
        body = lines[heading.after].start if heading.after < len(lines) else end
        stretch = _Stretch(heading.title, heading.level, lines[heading.first].start, end, body)
        found += _parts(text, stretch, MAX_SECTION_CHARS)
    return _name(found, len(text))


def _lines(text: str) -> list[_Line]:
    lines, start = [], 0
    for line in text.split("\n"):
        lines.append(_Line(line.rstrip("\r\f"), start))
        start += len(line) + 1
    return lines


def _headings(lines: Sequence[_Line]) -> Iterator[_Heading]:
    """Yield what looks like a heading, outside fenced code."""
    fenced = _fenced_lines(lines)
    after = 0
    for number, line in enumerate(lines):
        if number < after or number in fenced or line.is_blank or len(line.text) > 2 * MAX_HEADING_CHARS:
            continue
        before = lines[number - 1] if number else None
        if before is not None and not before.is_blank and number != after:
            continue  # in the middle of a paragraph, unless the line before is a heading
        heading = _heading_at(lines, number, is_first=after == 0)
        if heading is not None:
            after = heading.after
            yield heading


def _heading_at(lines: Sequence[_Line], number: int, *, is_first: bool) -> _Heading | None:
    text = lines[number].text
    below = lines[number + 1].text if number + 1 < len(lines) else ""
    if found := HASHES.match(text):
        return _Heading(_without_hashes(found[2]), len(found[1]), number, number + 1)
    title = text.strip()
    if len(title) > MAX_HEADING_CHARS or any(mark in text for mark in NOT_IN_HEADINGS) or not WITH_LETTERS.search(text):
        return None
    if (found := UNDERLINE.match(below)) and not title.startswith(("- ", "* ")):
        return _Heading(title, 1 if found[1][0] == "=" else 2, number, number + 2)
    if title.endswith(ENDS_OF_SENTENCES):
        return None
    if not below.strip() and (found := NUMBERED.match(text)) and _is_name(found[2]):
        depth = found[1].count(".") + 1
        return _Heading(title, 1 + depth, number, number + 1, depth)
    is_heading = _is_in_capitals(title) and not _is_in_capitals(below.strip())
    return _Heading(title, 1 if is_first else 2, number, number + 1) if is_heading else None


def _without_hashes(title: str) -> str:
    """Return a title without the signs that may close it."""
    return title.rstrip(" \t").rstrip("#").rstrip(" \t") or title[0]


def _is_name(text: str) -> bool:
    """Return whether a text begins like a name: not in lower case, and not with a figure or a sign."""
    return text[0].isalpha() and not text[0].islower()


def _is_in_capitals(text: str) -> bool:
    letters = sum(character.isalpha() for character in text)
    return text.isupper() and letters >= max(MIN_CAPITALS, len(text) / 2)


def _fenced_lines(lines: Sequence[_Line]) -> set[int]:
    """Return the numbers of the lines of fenced code that ends."""
    inside: set[int] = set()
    opened, mark = -1, ""
    for number, line in enumerate(lines):
        found = FENCE.match(line.text)
        if found is None:
            continue
        if opened < 0:
            opened, mark = number, found[1]
        elif found[1].startswith(mark) and line.text.strip() == found[1]:
            inside.update(range(opened, number + 1))
            opened = -1
    return inside


def _without_lists(headings: list[_Heading], lines: Sequence[_Line]) -> list[_Heading]:
    """Leave out numbered lines that follow each other without a text between them: they are a list."""
    listed: set[int] = set()
    for one, two in pairwise(headings):
        is_list = one.depth == two.depth > 0
        if is_list and all(line.is_blank for line in lines[one.after : two.first]):
            listed |= {one.first, two.first}
    return [heading for heading in headings if heading.first not in listed]


def _parts(text: str, whole: _Stretch, limit: int) -> Iterator[_Stretch]:
    """Yield the parts of a section; those behind the first are named after their first words."""
    edges = [whole.start, *_cuts(text, whole.start, whole.end, limit), whole.end]
    for number, (start, end) in enumerate(pairwise(edges)):
        is_first = whole.title and number == 0
        title = whole.title if is_first else _first_words(text[start : min(end, start + 8 * MAX_TITLE_CHARS)])
        body = min(whole.body, end) if is_first else start
        yield _Stretch(title, whole.level + (number > 0 and whole.title != ""), start, end, body)


def _cuts(text: str, start: int, end: int, limit: int) -> Iterator[int]:
    """Yield where to cut a stretch into pieces of about the limit: between paragraphs, else lines, else words."""
    end = start + len(text[start:end].rstrip())
    while end - start > limit:
        places = (text.rfind(mark, start, start + limit) + len(mark) for mark in ("\n\n", "\n", " "))
        start = next((place for place in places if place > start + limit // 8), start + limit)
        yield start


def _first_words(text: str) -> str:
    words = " ".join(text.split()) or "…"
    if len(words) <= MAX_TITLE_CHARS:
        return words
    cut = words.rfind(" ", 1, MAX_TITLE_CHARS)
    return f"{words[: cut if cut > 0 else MAX_TITLE_CHARS]} …"


def _name(found: Sequence[_Stretch], length: int) -> Sequence[Section]:
    """Give each section an anchor of its own; the first begins with the text, the last ends with it."""
    taken: dict[str, int] = {}
    starts = [0, *(stretch.start for stretch in found[1:]), length]
    return [
        Section(stretch.title, stretch.level, _anchor(stretch.title, taken), start, end, max(start, stretch.body))
        for stretch, (start, end) in zip(found, pairwise(starts), strict=True)
    ]


def _anchor(title: str, taken: dict[str, int]) -> str:
    name = slug(title)[:MAX_ANCHOR_CHARS].rstrip("-")
    anchor = name
    while anchor in taken:
        taken[name] += 1
        anchor = f"{name}-{taken[name]}"
    taken[anchor] = 1
    return anchor
