"""Convert lines to Markdown: headings, tables, lists, paragraphs."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bedstone.ingest.formats.pdf.lines import Line
from bedstone.ingest.markdown_writer import collapse_spaces, heading, join_blocks, table

MIN_HEADING_SCALE = 1.1  # times the size of the body text
MAX_LEVELS = 4
MAX_HEADING_WORDS = 20
MAX_HEADING_CHARS = 160
MAX_BOLD_HEADING_WORDS = 14
MAX_BOLD_SHARE = 0.3  # of the text: above, bold lines are not headings
MAX_WORDS_PER_CELL = 7  # on average; above, columns are prose
BULLET = re.compile(r"^\s*([\u2022\u25cf\u25cb\u25aa\u25ab\u2023\u2043\u00b7\uf0b7\uf0a7*\u2013-])\s+(?=\S)")
NUMBERED = re.compile(r"^\s*(\d{1,3}|[a-z])[.)]\s+(?=\S)")
NUMBERING = re.compile(r"^\s*(?:\d+\.)*\d+\.?\s+")
MAX_TITLE_LINES = 3
ENDING = re.compile(r"[.!?;:,]$")


@dataclass(frozen=True)
class Styles:
    """What a sample of pages shows: size of the body text, sizes of headings, whether bold lines are headings."""

    body: float = 0.0
    sizes: Mapping[float, int] = field(default_factory=dict)
    bold_headings: bool = False


def learn_styles(pages: Iterable[list[Line]]) -> Styles:
    """Derive styles from a sample of pages."""
    weights: Counter[float] = Counter()
    bold = 0
    for lines in pages:
        for line in lines:
            weights[line.size] += len(line.text)
            bold += len(line.text) if line.bold else 0
    if not weights:
        return Styles()
    body = weights.most_common(1)[0][0]
    larger = sorted((size for size in weights if size > body * MIN_HEADING_SCALE), reverse=True)
    levels = {size: min(rank, MAX_LEVELS) for rank, size in enumerate(_merge_sizes(larger), start=1)}
    sizes = {size: next((levels[near] for near in levels if abs(near - size) < 0.6), MAX_LEVELS) for size in larger}  # noqa: PLR2004
    return Styles(body=body, sizes=sizes, bold_headings=bold / sum(weights.values()) < MAX_BOLD_SHARE)


def page_markdown(lines: list[Line], styles: Styles, outline: Mapping[str, int]) -> str:
    """Convert a page; `outline` has the titles on it, with their levels."""
    return join_blocks(list(_blocks(lines, styles, outline)))


def is_heading(lines: list[Line], at: int, styles: Styles, outline: Mapping[str, int]) -> bool:
    """Return whether the line at a place looks like a heading, or is a title of the outline."""
    return _level(lines[at], lines, at, styles, outline) > 0


def _blocks(lines: list[Line], styles: Styles, outline: Mapping[str, int]) -> Iterator[str]:
    at = 0
    paragraph: list[Line] = []
    while at < len(lines):
        line = lines[at]
        level = _level(line, lines, at, styles, outline)
        rows = [] if level else _table_at(lines, at)
        if rows or level or _starts_block(line, paragraph):
            yield _prose(paragraph)
            paragraph = []
        if rows:
            yield table(_columns(rows))
            at += len(rows)
        elif level:
            title, at = _title(lines, at, level, styles, outline)
            yield heading(level, title)
        else:
            paragraph.append(line)
            at += 1
    yield _prose(paragraph)


def _level(line: Line, lines: list[Line], at: int, styles: Styles, outline: Mapping[str, int]) -> int:
    text = line.text
    if outline and (level := _outline_level(lines, at, outline)[0]):
        return level
    words = len(text.split())
    if words > MAX_HEADING_WORDS or len(text) > MAX_HEADING_CHARS or not any(char.isalpha() for char in text):
        return 0
    if line.size in styles.sizes:
        return styles.sizes[line.size]
    if outline or not styles.bold_headings or not line.bold or words > MAX_BOLD_HEADING_WORDS or ENDING.search(text):
        return 0
    return MAX_LEVELS if _is_apart(lines, at) and not BULLET.match(text) and len(line.cells) == 1 else 0


def _outline_level(lines: list[Line], at: int, outline: Mapping[str, int]) -> tuple[int, int]:
    """Return the level and number of lines of the outline title that starts at a line, else zeros."""
    text = ""
    for count, line in enumerate(lines[at : at + MAX_TITLE_LINES] if outline else (), start=1):
        text = f"{text} {line.text}"
        for spelling in (text, NUMBERING.sub("", text)):
            if level := outline.get(_key(spelling)):
                return level, count
    return 0, 0


def _is_apart(lines: list[Line], at: int) -> bool:
    """Return whether a bold line starts a block and no bold line follows."""
    before = lines[at - 1] if at else None
    after = lines[at + 1] if at + 1 < len(lines) else None
    gap = before is None or before.bottom - lines[at].top > 0.3 * lines[at].size or before.top < lines[at].bottom
    return gap and (after is None or not after.bold)


def _title(lines: list[Line], at: int, level: int, styles: Styles, outline: Mapping[str, int]) -> tuple[str, int]:
    """Return a heading and the place after it; it may have several lines of one title or style."""
    first = lines[at]
    known = _outline_level(lines, at, outline)[1]
    if known:
        return " ".join(line.text for line in lines[at : at + known]), at + known
    texts, last = [first.text], first
    at += 1
    while at < len(lines):
        line = lines[at]
        near = 0 <= last.bottom - line.top < 0.9 * first.size
        same = abs(line.size - first.size) < 0.3 and line.bold == first.bold  # noqa: PLR2004
        if not (near and same and line.size in styles.sizes and len(texts) < 4):  # noqa: PLR2004
            break
        texts.append(line.text)
        last = line
        at += 1
    return " ".join(texts), at


def _starts_block(line: Line, paragraph: Sequence[Line]) -> bool:
    if not paragraph:
        return False
    last = paragraph[-1]
    gap = last.bottom - line.top
    spacing = max(last.size, line.size, 1.0)
    jumped = line.bottom > last.top  # to another column
    return jumped or gap > 0.75 * spacing or bool(BULLET.match(line.text) or NUMBERED.match(line.text))


def _prose(lines: Sequence[Line]) -> str:
    """Join lines to a paragraph or list item, and words that are hyphenated at line ends."""
    text, was_broken = "", False
    for line in lines:
        if not text:
            text = line.text
        elif text.endswith("\u00ad") or (was_broken and line.text[:1].islower()):
            text = text.rstrip("-\u00ad\u2010") + line.text
        elif text.endswith("-") and len(text) > 1 and text[-2].isalpha() and line.text[:1].islower():
            text = text[:-1] + line.text
        else:
            text = f"{text} {line.text}"
        was_broken = line.is_broken
    text = collapse_spaces(text)
    return BULLET.sub("- ", text) if BULLET.match(text) else text


def _table_at(lines: list[Line], at: int) -> list[Line]:
    """Return the lines of the table that starts here: two or more with cells in the same columns."""
    rows: list[Line] = []
    for line in lines[at:]:
        if len(line.cells) < 2:  # noqa: PLR2004
            break
        if rows and not _fits(rows[-1], line):
            break
        rows.append(line)
    if len(rows) < 2:  # noqa: PLR2004
        return []
    words = sum(len(text.split()) for row in rows for text, _, _ in row.cells)
    cells = sum(len(row.cells) for row in rows)
    return rows if words / cells < MAX_WORDS_PER_CELL else []


def _fits(above: Line, below: Line) -> bool:
    """Return whether a line is below another and shares columns with it."""
    if below.bottom > above.top or above.bottom - below.top > 3 * max(above.size, 4):
        return False
    shared = sum(any(_overlap(one, two) for two in below.cells) for one in above.cells)
    return shared >= 2 or shared >= min(len(above.cells), len(below.cells))  # noqa: PLR2004


def _overlap(one: tuple[str, float, float], two: tuple[str, float, float]) -> bool:
    return min(one[2], two[2]) - max(one[1], two[1]) > 0


def _columns(rows: Sequence[Line]) -> list[list[str]]:
    """Arrange cells in columns; intervals that overlap are one column."""
    intervals: list[list[float]] = []
    for _, left, right in sorted((cell for row in rows for cell in row.cells), key=lambda cell: cell[2] - cell[1]):
        found = [item for item in intervals if min(item[1], right) - max(item[0], left) > 0]
        if not found:
            intervals.append([left, right])
        elif len(found) == 1:
            found[0][0], found[0][1] = min(found[0][0], left), max(found[0][1], right)
    intervals.sort()
    table_rows = []
    for row in rows:
        cells = [""] * len(intervals)
        for text, left, right in row.cells:
            shares = [min(item[1], right) - max(item[0], left) for item in intervals]
            column = max(range(len(intervals)), key=shares.__getitem__)
            cells[column] = f"{cells[column]} {text}".strip()
        table_rows.append(cells)
    return table_rows


def _merge_sizes(sizes: Iterable[float]) -> list[float]:
    """Merge sizes that differ by rounding only."""
    merged: list[float] = []
    for size in sizes:
        if not merged or merged[-1] - size >= 0.6:  # noqa: PLR2004
            merged.append(size)
    return merged


def _key(text: str) -> str:
    return re.sub(r"\W+", "", text).lower()


def outline_keys(titles: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the levels of titles by their comparison keys."""
    return {key: min(level, 6) for title, level in titles if (key := _key(title))}
