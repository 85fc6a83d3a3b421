"""Plain text as people read it: lines of a paragraph joined, lists and aligned columns as lists, words found marked."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from markupsafe import Markup, escape

from bedstone.web.rich_text.writer import Finder

MAX_FOUND = 10_000
MAX_MARKS = 500  # on one page
MIN_ROWS = 2
CODE_INDENTATION = 4
BULLET = re.compile(r"\s*(?:[-*+\u2022\u2013\u25aa]|(\d{1,3})[.)])[ \t]+(?=\S)")
GAP = re.compile(r"\s*\S+(?: \S+)*( {2,}|\t+)(?=\S)")
RULED = re.compile(r"\s*[+|\u2502\u250c\u2514\u251c]")
Span = tuple[int, int]
Match = tuple[int, int, str]


class MarkedText:
    """A text and the matches in it; each has a number, and the current one looks different."""

    def __init__(self, text: str, found: Sequence[Span] = (), current: int = 0) -> None:
        """Mark the matches; `current` is the number of a match, counted from 1."""
        self.text = text
        self.found = found
        self.current = current
        self._starts = [start for start, _ in found]
        self._first = max(0, current - MAX_MARKS // 2)  # those around the current one are marked
        self._marks = 0

    def write(self, start: int, end: int) -> Markup:
        """Return a stretch of the text as markup."""
        parts: list[Markup] = []
        number = max(0, bisect_left(self._starts, start) - 1)
        while number < len(self.found) and self.found[number][0] < end and self._marks < MAX_MARKS:
            first, last = max(self.found[number][0], start), min(self.found[number][1], end)
            if first < last and number >= self._first:
                parts += [escape(self.text[start:first]), self._mark(number, first, last)]
                start = last
            number += 1
        return Markup("").join([*parts, escape(self.text[start:end])])

    def _mark(self, number: int, start: int, end: int) -> Markup:
        self._marks += 1
        is_whole = start == self.found[number][0]  # a match over a line break has two parts and one id
        mark = Markup(' id="found-{}"').format(number + 1) if is_whole else Markup("")
        current = Markup(' aria-current="true"') if number + 1 == self.current else Markup("")
        return Markup("<mark{}{}>{}</mark>").format(mark, current, self.text[start:end])


class PhraseFinder:
    """Finds words that stand next to each other, also over a line break, in any case."""

    def __init__(self, query: str) -> None:
        self._phrase = re.compile(r"\s+".join(map(re.escape, query.split())), re.IGNORECASE)

    def find(self, text: str) -> list[Match]:
        """Return every match in order, up to a limit."""
        return [(*found.span(), "") for found in islice(self._phrase.finditer(text), MAX_FOUND)]


def make_finder(text: str, query: str) -> Finder:
    """Return what finds a query in a text: as it is written, or its words if the text does not have it like that."""
    phrase = PhraseFinder(query)
    if not any(character.isalnum() for character in query) or phrase.find(text):
        return phrase
    from bedstone.search.matching import Matcher  # noqa: PLC0415 - loads the engine

    return Matcher(query)


@lru_cache(maxsize=4)
def find_spans(text: str, query: str) -> Sequence[Span]:
    """Return where a text has a query, or its words."""
    found: list[Span] = []
    for start, end, _ in make_finder(text, query).find(text)[:MAX_FOUND]:
        if not found or start >= found[-1][1]:
            found.append((start, end))
    return found


@dataclass(frozen=True, slots=True)
class _Line:
    """A line: where it begins, and where its text ends."""

    start: int
    end: int
    text: str

    @property
    def indentation(self) -> int:
        return len(self.text) - len(self.text.lstrip())


def render_plain(text: MarkedText, start: int, end: int) -> Markup:
    """Return a stretch of a plain text as paragraphs, lists and columns."""
    return Markup("\n").join(part for block in _blocks(text.text, start, end) for part in _render(text, block))


def _blocks(text: str, start: int, end: int) -> Iterator[list[_Line]]:
    """Yield the stretches between blank lines."""
    block: list[_Line] = []
    for line in text[start:end].split("\n"):
        content = line.rstrip()
        if content:
            block.append(_Line(start, start + len(content), content))
        elif block:
            yield block
            block = []
        start += len(line) + 1
    if block:
        yield block


def _render(text: MarkedText, block: Sequence[_Line]) -> Iterator[Markup]:
    column = _column(block)
    if column:
        yield _columns(text, block, column)
    elif _is_drawn(block):
        yield Markup('<div class="code"><pre tabindex="0">{}</pre></div>').format(
            text.write(block[0].start, block[-1].end)
        )
    else:
        first = next((number for number, line in enumerate(block) if BULLET.match(line.text)), len(block))
        if first:
            yield Markup("<p>{}</p>").format(_join_lines(text, block[:first]))
        if first < len(block):
            yield _items(text, block[first:])


def _join_lines(text: MarkedText, lines: Sequence[_Line]) -> Markup:
    return Markup("\n").join(text.write(line.start + line.indentation, line.end) for line in lines)


def _items(text: MarkedText, lines: Sequence[_Line]) -> Markup:
    """Return lines with bullets or numbers as a list; other lines continue the item above them."""
    items: list[list[Markup]] = []
    first = BULLET.match(lines[0].text)
    for line in lines:
        if bullet := BULLET.match(line.text):
            items.append([text.write(line.start + bullet.end(), line.end)])
        else:
            items[-1].append(text.write(line.start + line.indentation, line.end))
    inside = Markup("").join(Markup("<li>{}</li>").format(Markup("\n").join(item)) for item in items)
    if first is not None and first[1]:
        return Markup('<ol start="{}">{}</ol>').format(int(first[1]), inside)
    return Markup("<ul>{}</ul>").format(inside)


def _column(block: Sequence[_Line]) -> int:
    """Return where the second column of aligned lines begins; 0 if they are not two columns."""
    gaps = [found.end() for line in block if (found := GAP.match(line.text)) and "\t" not in line.text]
    if len(gaps) < MIN_ROWS:
        return 0
    column, count = Counter(gaps).most_common(1)[0]
    if count < MIN_ROWS or not all(_fits(line.text, column) for line in block) or not block[0].text[:column].strip():
        return 0
    has_more = sum(bool(GAP.match(line.text[column:])) for line in block) >= MIN_ROWS
    return 0 if has_more or BULLET.match(block[0].text) else column


def _fits(line: str, column: int) -> bool:
    return len(line) > column and line[column - 1] == " " and line[column] != " "


def _columns(text: MarkedText, block: Sequence[_Line], column: int) -> Markup:
    """Return two columns as names with their texts; a line without a name continues the text above it."""
    rows: list[tuple[Markup, list[Markup]]] = []
    for line in block:
        value = text.write(line.start + column, line.end)
        name = line.text[:column].rstrip()
        if name:
            rows.append((text.write(line.start + line.indentation, line.start + len(name)), [value]))
        else:
            rows[-1][1].append(value)
    inside = (Markup("<dt>{}</dt><dd>{}</dd>").format(name, Markup("\n").join(values)) for name, values in rows)
    return Markup('<dl class="facts">{}</dl>').format(Markup("").join(inside))


def _is_drawn(block: Sequence[_Line]) -> bool:
    """Return whether the place of each character matters: code, tables and pictures made of signs."""
    if all(line.indentation >= CODE_INDENTATION for line in block) and not BULLET.match(block[0].text):
        return True
    drawn = sum(bool(RULED.match(line.text)) or bool(GAP.match(line.text)) for line in block)
    return drawn >= max(MIN_ROWS, len(block) / 2)
