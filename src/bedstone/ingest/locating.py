"""Find passages among the words of a page, and return the boxes of their lines.

Only letters and digits are compared: white space, hyphens at line ends, ligatures and the marks of Markdown differ
between a page and its text. A passage need not be there as a whole: its beginning may be on the page before, its end
on the next one, and running lines or notes between its parts.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import unescape

from bedstone.ingest.page_words import WIDTH, PageWords, Word

RUN = 16  # letters and digits that are the same, from which on a part of a passage is found
MIN_FOUND = 24  # in a row: a passage of which less is on the page is not found, unless it is shorter and complete
MAX_CANDIDATES = 8  # places where a run may begin; a page can repeat one text a thousand times
MAX_PASSAGE_CHARS = 100_000
SLACK = 400  # letters and digits of other text between two parts of a passage
MIN_OVERLAP = 0.5  # of the height, for words on the same line
MAX_GAP = 2.5  # times the height, between two words in one box
# A word of so many letters that is higher than wide runs up or down the page.
LONG = 4
TALL = 1.3
# Addresses of links and pictures are in the text, not on the page; tags are not either.
TARGETS = re.compile(r"\]\([^)\s]{0,2000}(?:\s\"[^\"]{0,500}\")?\)|</?[a-z][^<>]{0,500}>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on a page, as fractions of its width and height from the upper left corner."""

    x: float
    y: float
    w: float
    h: float


@dataclass(frozen=True, slots=True)
class _Run:
    """Characters of a passage that are on the page in a row."""

    start: int  # on the page
    length: int

    @property
    def end(self) -> int:
        return self.start + self.length


def locate(page: PageWords, passages: Sequence[str]) -> list[list[Box]]:
    """Return for each passage the boxes of its lines on a page; none if it is not there."""
    finder = _Finder(page)
    return [finder.boxes(passage) for passage in passages]


class _Finder:
    def __init__(self, page: PageWords) -> None:
        self._page = page
        keys = [_key(word.text) for word in page.words]
        self._text = "".join(keys)
        self._words = [number for number, key in enumerate(keys) for _ in key]  # of each character
        self._starts: dict[str, list[int]] = {}

    def boxes(self, passage: str) -> list[Box]:
        """Return the boxes of the lines of a passage."""
        key = _key(unescape(TARGETS.sub(" ", passage[:MAX_PASSAGE_CHARS])))
        numbers = {word for run in self._runs(key) for word in set(self._words[run.start : run.end])}
        lines = _merge([self._page.words[number] for number in sorted(numbers)])
        return [_to_box(line, self._page.height) for line in lines]

    def _runs(self, key: str) -> list[_Run]:
        whole = self._find(key)
        if whole is not None:
            return [whole]
        if len(key) < MIN_FOUND:
            return []
        runs = list(self._partial_runs(key))
        longest = max(runs, key=lambda run: run.length, default=None)
        if longest is None or longest.length < MIN_FOUND:
            return []
        # What else is the same farther away is a common phrase.
        first, last = longest.start - len(key) - SLACK, longest.end + len(key) + SLACK
        return [run for run in runs if first <= run.start and run.end <= last]

    def _find(self, key: str) -> _Run | None:
        """Return where the page has a whole passage; a short one must not be part of other words."""
        run = _Run(self._text.find(key), len(key)) if key else None
        while run is not None and run.start >= 0:
            if len(key) >= MIN_FOUND or (self._is_edge(run.start) and self._is_edge(run.end)):
                return run
            run = _Run(self._text.find(key, run.start + 1), len(key))
        return None

    def _is_edge(self, at: int) -> bool:
        """Return whether a word begins or ends in front of a character."""
        return at in (0, len(self._words)) or self._words[at - 1] != self._words[at]

    def _partial_runs(self, key: str) -> Iterator[_Run]:
        """Yield the longest run from each place of a passage on, behind the one before."""
        at = 0
        while at + RUN <= len(key):
            places = self._places(key[at : at + RUN])
            if not places:
                at += 1
                continue
            start, length = max(
                ((place, self._count_same(place, key, at)) for place in places), key=lambda found: found[1]
            )
            yield _Run(start, length)
            at += length

    def _places(self, run: str) -> list[int]:
        if not self._starts:
            for at in range(len(self._text) - RUN + 1):
                places = self._starts.setdefault(self._text[at : at + RUN], [])
                if len(places) < MAX_CANDIDATES:
                    places.append(at)
        return self._starts.get(run, [])

    def _count_same(self, place: int, key: str, at: int) -> int:
        """Return how many characters are the same from here on: the step doubles, then halves."""
        length, step = RUN, RUN
        while step:
            part = key[at + length : at + length + step]
            if len(part) == step and self._text.startswith(part, place + length):
                length += step
                step *= 2
            else:
                step //= 2
        return length


def _key(text: str) -> str:
    """Return the letters and digits of a text, in one spelling."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _merge(words: Sequence[Word]) -> list[Word]:
    """Merge neighbouring words of a line; lines may run up or down the page."""
    is_turned = 2 * sum(_is_tall(word) for word in words) > sum(len(word.text) >= LONG for word in words)
    lines: list[Word] = []
    for word in words:
        pair = (lines[-1], word) if lines else None
        if pair and _is_neighbour(*(map(_turn, pair) if is_turned else pair)):
            lines[-1] = _union(*pair)
        else:
            lines.append(word)
    return lines


def _is_neighbour(line: Word, word: Word) -> bool:
    shared = min(line.y + line.height, word.y + word.height) - max(line.y, word.y)
    gap = max(word.x - line.x - line.width, line.x - word.x - word.width)
    smaller = min(line.height, word.height)
    return shared >= MIN_OVERLAP * smaller and gap <= MAX_GAP * max(line.height, word.height)


def _is_tall(word: Word) -> bool:
    return len(word.text) >= LONG and word.height > TALL * word.width


def _turn(word: Word) -> Word:
    return replace(word, x=word.y, y=word.x, width=word.height, height=word.width)


def _union(one: Word, other: Word) -> Word:
    x, y = min(one.x, other.x), min(one.y, other.y)
    right, bottom = max(one.x + one.width, other.x + other.width), max(one.y + one.height, other.y + other.height)
    return Word(one.text, x, y, right - x, bottom - y)


def _to_box(line: Word, height: int) -> Box:
    sides = (line.x / WIDTH, line.y / height, line.width / WIDTH, line.height / height)
    return Box(*(round(min(1.0, max(0.0, side)), 4) for side in sides))
