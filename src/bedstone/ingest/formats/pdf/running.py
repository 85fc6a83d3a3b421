"""Find running headers, footers and page numbers: lines at the edges of pages that repeat literally or count pages.

A line is left out only where the text has it already, or where it is nothing but the number of its page. Digits are
never ignored: "Invoice 2026-1037" and "Invoice 2026-1038" are different lines.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from bedstone.ingest.formats.pdf.lines import Line
from bedstone.ingest.left_out import Kind

Edge = Literal["top", "bottom"]
MARGIN = 0.08  # of the height of the page
MIN_PAGES = 4  # in shorter documents nothing is left out
MIN_REPEATS = 3
MIN_SHARE = 0.4  # of the sample of pages
MIN_SEQUENCE = 5  # page numbers on so many pages in succession need no share
MAX_SHIFT = 3.0  # points between places that are the same
MIN_GAP = 0.25  # of the width of the page: what is farther apart is judged apart, as a title and a page number
LABEL = r"(?:page|pg|p|seite|s|p[áa]gina|p[áa]g|sida|side|страница|стр)\b\.?\s*"
NUMBER = re.compile(
    rf"(?P<dash>[-\u2013\u2014]\s*)?(?:{LABEL})?(?P<number>\d{{1,5}}|[ivxlc]{{1,8}})"
    r"(?:\s*(?:/|\||of|von|de|di|du|sur|av|van|из)\s*\d{1,5})?(?(dash)\s*[-\u2013\u2014])",
    re.IGNORECASE,
)
# An amount, a date, or a number with a label: it belongs to its page even if all pages have the same.
VALUE = re.compile(
    r"\d\s?(?:%|[€$£¥]|(?:EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK)\b)|(?:[€$£¥]|\b(?:EUR|USD|GBP|CHF))\s?\d"
    r"|(?<![\w.])\d+[.,]\d\d(?![\w.])|\b\d{4}-\d\d-\d\d\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b|[:#№]\s*[-+]?\d",
    re.IGNORECASE,
)
ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


@dataclass(frozen=True)
class Frame:
    """The number of a page, from 1, and its size."""

    number: int
    width: float
    height: float


@dataclass(frozen=True)
class _Part:
    """A text at the edge of a page; `form` and `offset` are set if it may be a page number."""

    edge: Edge
    text: str
    distance: float  # from the edge
    form: str = ""
    offset: int = 0

    @property
    def key(self) -> str:
        """Return the line and its edge as one text."""
        return f"{self.edge} {self.text}"


@dataclass
class Split:
    """The lines of a page: kept, and left out with the reason."""

    kept: list[Line] = field(default_factory=list)
    left_out: list[tuple[Kind, str]] = field(default_factory=list)
    first: list[str] = field(default_factory=list)  # running lines that this page is the first to have


class RunningLines:
    """Splits pages into what is kept and what repeats; the first occurrence of a line is kept.

    `kept_once` has the lines that a page has already.
    """

    def __init__(
        self, sample: Sequence[tuple[Frame, list[Line]]] = (), total: int = 0, kept_once: list[str] | None = None
    ) -> None:
        pages = [list(_page_parts(frame, lines)) for frame, lines in sample] if total >= MIN_PAGES else []
        self._texts = _repeated_texts(pages)
        self._numbers = _page_numbers(pages)
        self._kept_once = kept_once if kept_once is not None else []
        self._seen = set(self._kept_once)

    def split(self, frame: Frame, lines: list[Line], is_heading: Callable[[int], bool]) -> Split:
        """Split a page; `is_heading` tells it of the line at a place."""
        result = Split()
        for at, line in enumerate(lines):
            parts = _parts(frame, line)
            kinds = [self._kind(part) for part in parts]
            if not parts or not all(kinds) or is_heading(at):
                result.kept.append(line)
                continue
            repeated = {part.key for part, kind in zip(parts, kinds, strict=True) if kind == "repeated line"}
            if new := repeated.difference(self._seen, result.first):
                result.first += sorted(new)
                result.kept.append(line)
            else:
                result.left_out += [(kind, part.text) for part, kind in zip(parts, kinds, strict=True) if kind]
        return result

    def keep(self, split: Split) -> None:
        """Note that the text has the lines that a page kept."""
        self._kept_once += split.first
        self._seen.update(split.first)

    def _kind(self, part: _Part) -> Kind | None:
        place = self._numbers.get((part.edge, part.form, part.offset)) if part.form else None
        if place is not None and abs(place - part.distance) <= MAX_SHIFT:
            return "page number"
        place = self._texts.get((part.edge, part.text))
        return "repeated line" if place is not None and abs(place - part.distance) <= MAX_SHIFT else None


def _repeated_texts(pages: Sequence[list[_Part]]) -> dict[tuple[Edge, str], float]:
    """Return the texts that repeat at one place, with their distance from the edge."""
    places: dict[tuple[Edge, str], list[float]] = defaultdict(list)
    for parts in pages:
        on_page = {(part.edge, part.text): part.distance for part in reversed(parts)}
        for key, distance in on_page.items():
            places[key].append(distance)
    required = max(MIN_REPEATS, MIN_SHARE * len(pages))
    found = {}
    for (edge, text), distances in places.items():
        place = median(distances)
        if sum(abs(distance - place) <= MAX_SHIFT for distance in distances) >= required and not VALUE.search(text):
            found[edge, text] = place
    return found


def _page_numbers(pages: Sequence[list[_Part]]) -> dict[tuple[Edge, str, int], float]:
    """Return the forms of page numbers that follow the pages, with their distance from the edge."""
    places: dict[tuple[Edge, str, int], dict[int, float]] = defaultdict(dict)
    for at, parts in enumerate(pages):
        for part in parts:
            if part.form:
                places[part.edge, part.form, part.offset].setdefault(at, part.distance)
    required = max(MIN_REPEATS, MIN_SHARE * len(pages))
    found = {}
    for key, distances in places.items():
        place = median(distances.values())
        same = [at for at, distance in distances.items() if abs(distance - place) <= MAX_SHIFT]
        if len(same) >= required or _longest_run(same) >= MIN_SEQUENCE:
            found[key] = place
    return found


def _longest_run(places: Sequence[int]) -> int:
    longest = run = 0
    for index, place in enumerate(places):
        run = run + 1 if index and place == places[index - 1] + 1 else 1
        longest = max(longest, run)
    return longest


def _page_parts(frame: Frame, lines: list[Line]) -> Iterator[_Part]:
    for line in lines:
        yield from _parts(frame, line)


def _parts(frame: Frame, line: Line) -> list[_Part]:
    """Return the texts of a line at an edge, apart where the gap between them is wide; none for other lines."""
    edge: Edge
    if line.bottom > frame.height * (1 - MARGIN):
        edge, distance = "top", frame.height - line.top
    elif line.top < frame.height * MARGIN:
        edge, distance = "bottom", line.bottom
    else:
        return []
    texts: list[str] = []
    end = 0.0
    for text, left, right in line.cells:
        if texts and left - end < MIN_GAP * frame.width:
            texts[-1] += f" {text}"
        else:
            texts.append(text)
        end = right
    return [_part(edge, " ".join(text.split()), distance, frame.number) for text in texts]


def _part(edge: Edge, text: str, distance: float, page: int) -> _Part:
    found = NUMBER.fullmatch(text)
    value = _value(found["number"]) if found else None
    if found is None or value is None:
        return _Part(edge, text, distance)
    form = f"{text[: found.start('number')]}{'1' if found['number'].isdigit() else 'i'}{text[found.end('number') :]}"
    return _Part(edge, text, distance, form, value - page)


def _value(text: str) -> int | None:
    """Return the value of a number in Arabic or Roman digits."""
    if text.isdigit():
        return int(text)
    total, largest = 0, 0
    for digit in reversed(text.lower()):
        value = ROMAN[digit]
        total += value if value >= largest else -value
        largest = max(largest, value)
    return total
