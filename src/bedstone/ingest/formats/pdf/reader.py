"""Reads a PDF page by page."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from bedstone.ingest.extraction import Notes, Page, ReadOptions, Unreadable
from bedstone.ingest.formats.pdf.layout import Styles, learn_styles, outline_keys, page_markdown
from bedstone.ingest.formats.pdf.lines import Line, page_lines
from bedstone.ingest.markdown_writer import joined
from bedstone.ingest.ocr import picture_text, recognise

SAMPLE = 30  # pages that styles are learnt from
MOST_OUTLINE, DEEPEST_OUTLINE = 20_000, 8
LITTLE_TEXT, USABLE_SHARE, BROKEN_SHARE = 100, 0.7, 0.05
# Shares of the page that a picture covers.
SMALL_PICTURE, LARGE_PICTURE, WHOLE_PAGE = 0.02, 0.05, 0.8
MOST_PICTURES, MANY_PATHS, MOST_OBJECTS = 8, 50, 5_000
DPI, MOST_PIXELS = 300, 25_000_000
LEADERS = re.compile(r"([^\w\s])(?:\s*\1)+")
FACTS = {"Title": "title", "Author": "author", "Subject": "subject", "CreationDate": "created", "ModDate": "modified"}
DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?")


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """One page a page."""
    document = _opened(path, options)
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
        self._outline = self._titles()
        self._sample: dict[int, list[Line]] = {}
        self._styles = Styles()

    def pages(self) -> Iterator[Page]:
        for name, key in FACTS.items():
            self._notes.learn(key, _fact(self._document.get_metadata_value(name)))
        self._learn()
        read = 0
        for number in range(self._total):
            try:
                page = self._document[number]
            except pypdfium2.PdfiumError:
                self._notes.warn(f"Page {number + 1} is damaged")
                yield Page("", number + 1, self._total)
                continue
            try:
                yield self._page(page, number)
                read += 1
            finally:
                page.close()
        if not read:
            raise Unreadable("damaged", "The document is damaged: none of its pages can be read.")

    def _page(self, page: Any, number: int) -> Page:
        lines = self._sample.pop(number, None) or self._lines(page)
        text = page_markdown(lines, page.get_height(), self._styles, self._outline.get(number, {}))
        if not self._options.ocr and not self._options.force_ocr:
            return Page(text, number + 1, self._total)
        if not (self._options.force_ocr or _needs_ocr(page, "\n".join(line.text for line in lines))):
            return Page(joined([text, *self._in_pictures(page, text)]), number + 1, self._total)
        try:
            recognised = recognise(_picture(page), self._options)
        except Unreadable as error:
            if self._options.force_ocr or not text:
                raise
            self._notes.warn(f"Page {number + 1} was not recognised: {error.message}")
            return Page(text, number + 1, self._total)
        if self._options.force_ocr or _usable(recognised.text) > _usable(text):
            return Page(recognised.text, number + 1, self._total, "ocr", recognised.confidence)
        return Page(text, number + 1, self._total)

    def _in_pictures(self, page: Any, text: str) -> list[str]:
        """What pictures on a page say that has text besides; a scan that has a text layer is not read again."""
        if self._options.ocr_images == "none" or not text:
            return []
        boxes = _picture_boxes(page)
        if not boxes or len(boxes) > MOST_PICTURES or any(box.share > WHOLE_PAGE for box in boxes):
            return []
        drawn = _picture(page)
        scale = drawn.width / page.get_width()
        crops = (drawn.crop(tuple(round(side * scale) for side in box.sides)) for box in boxes)
        try:
            return [found for crop in crops if (found := picture_text(crop, self._options))]
        except Unreadable as error:
            self._notes.warn(f"Pictures were not recognised: {error.message}")
            return []

    def _learn(self) -> None:
        step = max(1, self._total // SAMPLE)
        seen = []
        for number in range(0, self._total, step):
            try:
                page = self._document[number]
            except pypdfium2.PdfiumError:
                continue
            try:
                self._sample[number] = self._lines(page)
                seen.append((self._sample[number], page.get_height()))
            finally:
                page.close()
            if len(seen) >= 2 * SAMPLE:
                break
        self._styles = learn_styles(seen, self._total)

    def _lines(self, page: Any) -> list[Line]:
        text_page = page.get_textpage()
        try:
            return page_lines(text_page)
        finally:
            text_page.close()

    def _titles(self) -> dict[int, dict[str, int]]:
        """The outline's titles by page."""
        found: dict[int, list[tuple[str, int]]] = {}
        try:
            for count, mark in enumerate(self._document.get_toc(max_depth=DEEPEST_OUTLINE)):
                target = mark.get_dest()
                number = target.get_index() if target is not None else None
                if number is not None:
                    found.setdefault(number, []).append((mark.get_title(), mark.level + 1))
                if count > MOST_OUTLINE:
                    break
        except (pypdfium2.PdfiumError, RecursionError, ValueError):
            self._notes.warn("The outline is damaged")
        return {number: outline_keys(titles) for number, titles in found.items()}


def _opened(path: Path, options: ReadOptions) -> pypdfium2.PdfDocument:
    try:
        document = pypdfium2.PdfDocument(path, password=options.password)
        pages = len(document)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            said = "The password is wrong." if options.password else "The document needs a password."
            raise Unreadable("password_required", said) from None
        raise Unreadable("damaged", "The document is damaged, or no PDF.") from None
    if not pages:
        raise Unreadable("damaged", "The document is damaged: it has no pages.")
    return document


def _needs_ocr(page: Any, text: str) -> bool:
    """The rule of one page: broken text, or little text and something to look at."""
    plain = LEADERS.sub(r"\1", " ".join(text.split()))
    count = len(plain)
    if count:
        broken = sum(char == "\ufffd" or unicodedata.category(char) == "Co" for char in plain)
        if broken > BROKEN_SHARE * count:
            return True
        if count >= LITTLE_TEXT:
            readable = sum(char.isspace() or unicodedata.category(char)[0] in "LMN" for char in plain)
            return readable < USABLE_SHARE * count
    return _has_something_to_read(page)


def _has_something_to_read(page: Any) -> bool:
    paths = sum(1 for _ in islice(page.get_objects(filter=(pdfium.FPDF_PAGEOBJ_PATH,), max_depth=3), MANY_PATHS + 1))
    return paths > MANY_PATHS or any(box.share > LARGE_PICTURE for box in _picture_boxes(page))


@dataclass(frozen=True)
class _Box:
    """Where a picture is, from the upper left corner, and how much of the page it covers."""

    sides: tuple[float, float, float, float]
    share: float


def _picture_boxes(page: Any) -> list[_Box]:
    """The pictures that are large enough to say something."""
    width, height = page.get_width(), page.get_height()
    boxes = []
    pictures = page.get_objects(filter=(pdfium.FPDF_PAGEOBJ_IMAGE,), max_depth=3)
    for item in islice(pictures, MOST_OBJECTS):
        left, bottom, right, top = item.get_bounds()
        left, right, bottom, top = max(left, 0.0), min(right, width), max(bottom, 0.0), min(top, height)
        share = max(right - left, 0.0) * max(top - bottom, 0.0) / max(width * height, 1.0)
        if share > SMALL_PICTURE:
            boxes.append(_Box((left, height - top, right, height - bottom), share))
    return boxes


def _picture(page: Any) -> Any:
    scale = DPI / 72
    pixels = page.get_width() * page.get_height() * scale**2
    if pixels > MOST_PIXELS:
        scale *= (MOST_PIXELS / pixels) ** 0.5
    return page.render(scale=scale, grayscale=True).to_pil()


def _usable(text: str) -> int:
    return sum(char.isalnum() for char in text)


def _fact(value: str) -> str:
    found = DATE.match(value)
    return "-".join(part for part in found.groups() if part) if found else value
