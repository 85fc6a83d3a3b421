"""Extract lines with pdfium: text, position, font size, and cells where gaps are wide."""

import re
from ctypes import byref, c_double, c_float, c_int, create_string_buffer
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium

LINE_END = re.compile(r"\r\n|\r|\n")
WORD = re.compile(r"\S+")
HYPHENS = ("\x02", "\ufffe")  # what pdfium returns for a hyphen at a line end
MIN_CELL_GAP = 0.9  # times the font size
MIN_BOLD_WEIGHT = 600
Box = tuple[float, float, float, float]  # left, right, bottom, top
NOWHERE: Box = (0.0, 0.0, 0.0, 0.0)
BOLD_NAME = re.compile(rb"bold|black|heavy|cmbx|-b$", re.IGNORECASE)


@dataclass(slots=True)
class Line:
    """A line; `top` and `bottom` are distances from the bottom of the page. `cells` are (text, left, right)."""

    text: str
    left: float
    right: float
    bottom: float
    top: float
    size: float
    bold: bool
    cells: list[tuple[str, float, float]]
    is_broken: bool = False  # ends in the middle of a word


def page_lines(text_page: Any) -> list[Line]:
    """Return the lines of a page in reading order."""
    text = text_page.get_text_range()
    offsets = Offsets(text_page, text)
    lines = []
    start = 0
    for found in [*LINE_END.finditer(text), None]:
        end = found.start() if found else len(text)
        if line := _line(text_page.raw, text[start:end], start, offsets):
            lines.append(line)
        start = found.end() if found else end
    return lines


class Offsets:
    """Maps a position in the text to the character index of pdfium."""

    def __init__(self, text_page: Any, text: str) -> None:
        self._raw = text_page.raw
        self._same = len(text) == text_page.count_chars()
        self._wide = [index for index, char in enumerate(text) if ord(char) > 0xFFFF] if not text.isascii() else []  # noqa: PLR2004

    def __call__(self, index: int) -> int:
        if self._same and not self._wide:
            return index
        units = index + sum(place < index for place in self._wide)
        return int(pdfium.FPDFText_GetCharIndexFromTextIndex(self._raw, units))


def _line(raw: Any, text: str, start: int, offsets: Offsets) -> Line | None:
    words: list[tuple[str, Box, Box]] = []
    for found in WORD.finditer(text):
        first, last = _box(raw, offsets(start + found.start())), _box(raw, offsets(start + found.end() - 1))
        near = words[-1][2] if words else NOWHERE  # a word without a place is still a word
        words.append((found[0], first or last or near, last or first or near))
    if not words:
        return None
    at = offsets(start + text.index(words[0][0]))
    size = _size(raw, at)
    boxes = [box for _, first, last in words for box in (first, last)]
    broken = text.rstrip().endswith(HYPHENS)
    cells: list[tuple[str, float, float]] = []
    for word, first, last in words:
        cleaned = _clean(word)
        if cells and 0 <= first[0] - cells[-1][2] < MIN_CELL_GAP * max(size, 4):
            cells[-1] = (f"{cells[-1][0]} {cleaned}", cells[-1][1], max(last[1], cells[-1][2]))
        else:
            cells.append((cleaned, first[0], last[1]))
    return Line(
        text=" ".join(_clean(word) for word, _, _ in words),
        left=min(box[0] for box in boxes),
        right=max(box[1] for box in boxes),
        bottom=min(box[2] for box in boxes),
        top=max(box[3] for box in boxes),
        size=size,
        bold=_is_bold(raw, at),
        cells=cells,
        is_broken=broken,
    )


def _is_bold(raw: Any, index: int) -> bool:
    """Decide by the weight of the font, or by its name."""
    if pdfium.FPDFText_GetFontWeight(raw, index) >= MIN_BOLD_WEIGHT:
        return True
    buffer, flags = create_string_buffer(128), c_int()
    length = pdfium.FPDFText_GetFontInfo(raw, index, buffer, len(buffer), byref(flags))
    return bool(length) and BOLD_NAME.search(buffer.value) is not None


def _clean(word: str) -> str:
    return word.replace("\x02", "").replace("\ufffe", "").replace("\0", "")


def _box(raw: Any, index: int) -> Box | None:
    left, right, bottom, top = c_double(), c_double(), c_double(), c_double()
    if index < 0 or not pdfium.FPDFText_GetCharBox(raw, index, byref(left), byref(right), byref(bottom), byref(top)):
        return None
    return left.value, right.value, bottom.value, top.value


def _size(raw: Any, index: int) -> float:
    """Return the size of a character on the page: its font size, scaled."""
    size = pdfium.FPDFText_GetFontSize(raw, index)
    matrix = pdfium.FS_MATRIX()
    if pdfium.FPDFText_GetMatrix(raw, index, byref(matrix)):
        scale = (c_float(matrix.b).value ** 2 + c_float(matrix.d).value ** 2) ** 0.5
        size *= scale or 1.0
    return round(float(size), 1)
