"""Find out where the words of a PDF page's text layer stand on the page as it is shown."""

import re
from ctypes import byref, c_double, c_int
from typing import Any

import pypdfium2.raw as pdfium

from bedstone.ingest.formats.pdf.lines import Offsets
from bedstone.ingest.page_words import MAX_WORDS, WIDTH, PageWords, Word

# Scripts without spaces are split into characters, and long runs of others into parts: a box is never a whole line.
UNSPACED = r"\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
MARKS = r"\x00\x02\ufffe"  # what pdfium returns for a hyphen at a line end, and for what it cannot decode
WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}{MARKS}]{{1,32}}")
MAX_CHARS = 500_000
MAX_STRETCH = 3.0  # a font may claim to be higher than its letters; from here on the letters count
Sides = tuple[float, float, float, float]  # left, top, right, bottom


def page_words(page: Any) -> PageWords:
    """Return the words of a page, with boxes that hold for its rotation and its crop box."""
    width, height = page.get_size()
    frame = _Frame(page.raw, max(1, round(WIDTH * height / max(width, 1e-6))))
    text_page = page.get_textpage()
    try:
        text = text_page.get_text_range()[:MAX_CHARS]
        offsets = Offsets(text_page, text)
        words: list[Word] = []
        for found in WORD.finditer(text):
            ends = (offsets(found.start()), offsets(found.end() - 1))
            boxes = [box for index in ends if (box := frame.char_box(text_page.raw, index))]
            if boxes and (word := frame.word(found[0], boxes)):
                words.append(word)
            if len(words) >= MAX_WORDS:
                break
    finally:
        text_page.close()
    return PageWords(frame.height, words)


class _Frame:
    """The page as it is shown, `WIDTH` wide."""

    def __init__(self, page: Any, height: int) -> None:
        self._page = page
        self.height = height

    def char_box(self, text_page: Any, index: int) -> Sides | None:
        """Return the box of a character as high as its font, or as its ink if the font's height is implausible."""
        left, right, bottom, top = c_double(), c_double(), c_double(), c_double()
        if index < 0 or not pdfium.FPDFText_GetCharBox(
            text_page, index, byref(left), byref(right), byref(bottom), byref(top)
        ):
            return None
        ink = self._place((left.value, bottom.value), (right.value, top.value))
        rectangle = pdfium.FS_RECTF()
        if not pdfium.FPDFText_GetLooseCharBox(text_page, index, byref(rectangle)):
            return ink
        loose = self._place((rectangle.left, rectangle.bottom), (rectangle.right, rectangle.top))
        size = max(2.0, pdfium.FPDFText_GetFontSize(text_page, index))
        return ink if max(top.value - bottom.value, size) * MAX_STRETCH < rectangle.top - rectangle.bottom else loose

    def word(self, text: str, boxes: list[Sides]) -> Word | None:
        """Return the word that the boxes of its characters surround; None if it is outside the page."""
        left, top = max(0.0, min(box[0] for box in boxes)), max(0.0, min(box[1] for box in boxes))
        right, bottom = min(WIDTH, max(box[2] for box in boxes)), min(self.height, max(box[3] for box in boxes))
        if left >= right or top >= bottom:
            return None
        return Word(text, int(left), int(top), round(right - left), round(bottom - top))

    def _place(self, one: tuple[float, float], other: tuple[float, float]) -> Sides:
        x, y = c_int(), c_int()
        corners = []
        for corner in (one, other):
            pdfium.FPDF_PageToDevice(self._page, 0, 0, WIDTH, self.height, 0, *corner, byref(x), byref(y))
            corners.append((x.value, y.value))
        (left, right), (top, bottom) = (sorted(pair) for pair in zip(*corners, strict=True))
        return left, top, right, bottom
