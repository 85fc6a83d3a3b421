"""Read a PDF page by page."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from bedstone.ingest.extraction import ExtractionError, Notes, Page, ReadOptions
from bedstone.ingest.formats.pdf.layout import Styles, learn_styles, outline_keys, page_markdown
from bedstone.ingest.formats.pdf.lines import Line, page_lines
from bedstone.ingest.markdown_writer import join_blocks
from bedstone.ingest.ocr import read_picture, run_ocr

SAMPLE = 30  # pages to derive styles from
MAX_OUTLINE_ENTRIES = 20_000
MAX_OUTLINE_DEPTH = 8
# A page needs OCR if too many characters are invalid, too few are letters, or the text is short and there are graphics.
MIN_TEXT_CHARS = 100
MIN_LETTER_SHARE = 0.7
MAX_INVALID_SHARE = 0.05
# Shares of the page that a picture covers.
MIN_PICTURE_SHARE = 0.02
MIN_LARGE_PICTURE_SHARE = 0.05
MIN_SCAN_SHARE = 0.8
MAX_PICTURES = 8
MAX_PATHS = 50  # more are a drawing or outlined text
MAX_OBJECTS = 5_000
DPI = 300
MAX_PIXELS = 25_000_000
LEADERS = re.compile(r"([^\w\s])(?:\s*\1)+")
METADATA = {
    "Title": "title",
    "Author": "author",
    "Subject": "subject",
    "CreationDate": "created",
    "ModDate": "modified",
}
DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?")


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield the pages of the document."""
    document = _open(path, options)
    try:
        yield from _Reader(document, options, notes).pages()
    finally:
        document.close()


class _Reader:
    def __init__(self, document: pypdfium2.PdfDocument, options: ReadOptions, notes: Notes) -> None:
        self._document = document
        self._options = options
        self._notes = notes
        self._total = len(document)
        self._outline = self._outline_titles()
        self._sample: dict[int, list[Line]] = {}
        self._styles = Styles()

    def pages(self) -> Iterator[Page]:
        for name, key in METADATA.items():
            self._notes.learn(key, _metadata_value(self._document.get_metadata_value(name)))
        self._learn_styles()
        count = start = self._options.first_page - 1
        for number in range(start, self._total):
            try:
                page = self._document[number]
            except pypdfium2.PdfiumError:
                self._notes.warn(f"Page {number + 1} is corrupt")
                yield Page("", number + 1, self._total)
                continue
            try:
                yield self._page(page, number)
                count += 1
            finally:
                page.close()
        if not count:
            raise ExtractionError("damaged", "The document is corrupt: none of its pages can be read.")

    def _page(self, page: Any, number: int) -> Page:
        lines = self._sample.pop(number, None) or self._lines(page)
        text = page_markdown(lines, page.get_height(), self._styles, self._outline.get(number, {}))
        if not self._options.ocr and not self._options.force_ocr:
            return Page(text, number + 1, self._total)
        if not (self._options.force_ocr or _needs_ocr(page, "\n".join(line.text for line in lines))):
            return Page(join_blocks([text, *self._read_pictures(page, text)]), number + 1, self._total)
        try:
            result = run_ocr(_render(page), self._options)
        except ExtractionError as error:
            if self._options.force_ocr or not text:
                raise
            self._notes.warn(f"OCR of page {number + 1} failed: {error.message}")
            return Page(text, number + 1, self._total)
        if self._options.force_ocr or _count_letters(result.text) > _count_letters(text):
            return Page(result.text, number + 1, self._total, "ocr", result.confidence)
        return Page(text, number + 1, self._total)

    def _read_pictures(self, page: Any, text: str) -> list[str]:
        """Return the text in pictures on a page that also has text, unless it is a scan with a text layer."""
        if self._options.ocr_images == "none" or not text:
            return []
        boxes = _picture_boxes(page)
        if not boxes or len(boxes) > MAX_PICTURES or any(box.share > MIN_SCAN_SHARE for box in boxes):
            return []
        image = _render(page)
        scale = image.width / page.get_width()
        crops = (image.crop(tuple(round(side * scale) for side in box.sides)) for box in boxes)
        try:
            return [found for crop in crops if (found := read_picture(crop, self._options))]
        except ExtractionError as error:
            self._notes.warn(f"OCR of pictures failed: {error.message}")
            return []

    def _learn_styles(self) -> None:
        step = max(1, self._total // SAMPLE)
        sample = []
        for number in range(0, self._total, step):
            try:
                page = self._document[number]
            except pypdfium2.PdfiumError:
                continue
            try:
                self._sample[number] = self._lines(page)
                sample.append((self._sample[number], page.get_height()))
            finally:
                page.close()
            if len(sample) >= 2 * SAMPLE:
                break
        self._styles = learn_styles(sample, self._total)

    def _lines(self, page: Any) -> list[Line]:
        text_page = page.get_textpage()
        try:
            return page_lines(text_page)
        finally:
            text_page.close()

    def _outline_titles(self) -> dict[int, dict[str, int]]:
        """Return the titles of the outline by page."""
        found: dict[int, list[tuple[str, int]]] = {}
        try:
            for count, mark in enumerate(self._document.get_toc(max_depth=MAX_OUTLINE_DEPTH)):
                target = mark.get_dest()
                number = target.get_index() if target is not None else None
                if number is not None:
                    found.setdefault(number, []).append((mark.get_title(), mark.level + 1))
                if count > MAX_OUTLINE_ENTRIES:
                    break
        except (pypdfium2.PdfiumError, RecursionError, ValueError):
            self._notes.warn("The outline is corrupt")
        return {number: outline_keys(titles) for number, titles in found.items()}


def _open(path: Path, options: ReadOptions) -> pypdfium2.PdfDocument:
    try:
        document = pypdfium2.PdfDocument(path, password=options.password)
        pages = len(document)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            message = "The password is wrong." if options.password else "The document requires a password."
            raise ExtractionError("password_required", message) from None
        raise ExtractionError("damaged", "Not a PDF, or the file is corrupt.") from None
    if not pages:
        raise ExtractionError("damaged", "The document is corrupt: it has no pages.")
    return document


def _needs_ocr(page: Any, text: str) -> bool:
    """Return whether the text of a page is invalid, or short while there is something to recognize."""
    plain = LEADERS.sub(r"\1", " ".join(text.split()))
    count = len(plain)
    if count:
        invalid = sum(char == "\ufffd" or unicodedata.category(char) == "Co" for char in plain)
        if invalid > MAX_INVALID_SHARE * count:
            return True
        if count >= MIN_TEXT_CHARS:
            letters = sum(char.isspace() or unicodedata.category(char)[0] in "LMN" for char in plain)
            return letters < MIN_LETTER_SHARE * count
    return _has_graphics(page)


def _has_graphics(page: Any) -> bool:
    paths = sum(1 for _ in islice(page.get_objects(filter=(pdfium.FPDF_PAGEOBJ_PATH,), max_depth=3), MAX_PATHS + 1))
    return paths > MAX_PATHS or any(box.share > MIN_LARGE_PICTURE_SHARE for box in _picture_boxes(page))


@dataclass(frozen=True)
class _Box:
    """The sides of a picture from the upper left corner, and the share of the page it covers."""

    sides: tuple[float, float, float, float]
    share: float


def _picture_boxes(page: Any) -> list[_Box]:
    """Return the boxes of the pictures that are large enough to hold text."""
    width, height = page.get_width(), page.get_height()
    boxes = []
    pictures = page.get_objects(filter=(pdfium.FPDF_PAGEOBJ_IMAGE,), max_depth=3)
    for item in islice(pictures, MAX_OBJECTS):
        left, bottom, right, top = item.get_bounds()
        left, right, bottom, top = max(left, 0.0), min(right, width), max(bottom, 0.0), min(top, height)
        share = max(right - left, 0.0) * max(top - bottom, 0.0) / max(width * height, 1.0)
        if share > MIN_PICTURE_SHARE:
            boxes.append(_Box((left, height - top, right, height - bottom), share))
    return boxes


def _render(page: Any) -> Any:
    scale = DPI / 72
    pixels = page.get_width() * page.get_height() * scale**2
    if pixels > MAX_PIXELS:
        scale *= (MAX_PIXELS / pixels) ** 0.5
    return page.render(scale=scale, grayscale=True).to_pil()


def _count_letters(text: str) -> int:
    return sum(char.isalnum() for char in text)


def _metadata_value(value: str) -> str:
    found = DATE.match(value)
    return "-".join(part for part in found.groups() if part) if found else value
