"""Read a PDF page by page."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from bedstone.ingest.extraction import OCR_OFF, ExtractionError, Notes, Page, ReadOptions
from bedstone.ingest.formats.pdf.annotations import page_annotations
from bedstone.ingest.formats.pdf.layout import Styles, is_heading, learn_styles, outline_keys, page_markdown
from bedstone.ingest.formats.pdf.lines import Line, page_lines
from bedstone.ingest.formats.pdf.running import Frame, RunningLines, Split
from bedstone.ingest.left_out import missing_lines
from bedstone.ingest.markdown_writer import join_blocks
from bedstone.ingest.ocr import OcrResult, note_reading, read_picture, run_ocr
from bedstone.ingest.page_words import WIDTH, join_words

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
MAX_CORRUPT_PAGES = 1_000  # in a row, then it ends: a document may claim to have millions
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
    document = open_document(path, options)
    try:
        yield from _Reader(document, options, notes).pages()
    finally:
        document.close()


@dataclass(frozen=True)
class _Draft:
    """A page as its text layer has it."""

    number: int
    lines: list[Line]
    split: Split
    text: str
    annotations: list[str]


class _Reader:
    def __init__(self, document: pypdfium2.PdfDocument, options: ReadOptions, notes: Notes) -> None:
        self._document = document
        self._options = options
        self._notes = notes
        self._total = len(document)
        self._outline = self._outline_titles()
        self._sample: dict[int, list[Line]] = {}
        self._styles = Styles()
        self._running = RunningLines()

    def pages(self) -> Iterator[Page]:
        for name, key in METADATA.items():
            self._notes.learn(key, _metadata_value(self._document.get_metadata_value(name)))
        self._learn_styles()
        next_page = self._options.first_page - 1
        for number in range(next_page, self._total):
            try:
                page = self._document[number]
            except pypdfium2.PdfiumError:
                if number - next_page >= MAX_CORRUPT_PAGES:
                    break
                continue
            yield from self._corrupt_pages(next_page, number)
            next_page = number + 1
            try:
                yield self._page(page, number)
            finally:
                page.close()
        if not next_page:
            raise ExtractionError("damaged", "The document is corrupt: none of its pages can be read.")
        if self._total - next_page > MAX_CORRUPT_PAGES:
            self._warn_corrupt(next_page, self._total)
        else:
            yield from self._corrupt_pages(next_page, self._total)

    def _corrupt_pages(self, start: int, end: int) -> Iterator[Page]:
        """Yield pages that cannot be read."""
        if start < end:
            self._warn_corrupt(start, end)
        for number in range(start, end):
            yield Page("", number + 1, self._total)

    def _warn_corrupt(self, start: int, end: int) -> None:
        is_one = end == start + 1
        self._notes.warn(f"Page {end} is corrupt" if is_one else f"Pages {start + 1} to {end} are corrupt or missing")

    def _page(self, page: Any, number: int) -> Page:
        lines = self._sample.pop(number, None) or self._lines(page)
        outline = self._outline.get(number, {})
        split = self._running.split(
            Frame(number + 1, *page.get_size()), lines, lambda at: is_heading(lines, at, self._styles, outline)
        )
        text = page_markdown(split.kept, self._styles, outline)
        draft = _Draft(number + 1, lines, split, text, self._annotations(page, number + 1))
        is_forced = self._options.force_ocr and self._options.ocr
        reason = "forced" if is_forced else _ocr_reason(page, "\n".join(line.text for line in lines))
        if reason and self._options.ocr:
            return self._recognize(page, draft, reason)
        if reason:
            self._notes.leave_out("scanned page", "page", number + 1)
            self._notes.warn(f"{OCR_OFF}: scanned pages were not read")
            return self._text_page(draft)
        return self._text_page(draft, self._read_pictures(page, text, number + 1))

    def _text_page(self, draft: _Draft, pictures: Sequence[OcrResult] = ()) -> Page:
        self._running.keep(draft.split)
        for kind, line in draft.split.left_out:
            self._notes.leave_out(kind, line, draft.number)
        text = join_blocks([draft.text, *(picture.text for picture in pictures), *draft.annotations])
        return Page(text, draft.number, self._total, words=join_words(picture.words for picture in pictures).pack())

    def _recognize(self, page: Any, draft: _Draft, reason: str) -> Page:
        """Return the text that OCR finds, or that of the page if it has as many letters."""
        try:
            result = run_ocr(_render(page), self._options)
        except ExtractionError as error:
            if reason == "forced" or not draft.text:
                raise
            self._notes.warn(f"OCR of page {draft.number} failed: {error.message}")
            return self._text_page(draft)
        note_reading(self._notes, result, draft.number)
        if reason != "forced" and _count_letters(result.text) <= _count_letters(draft.text):
            self._leave_out(missing_lines(result.text.splitlines(), draft.text), draft.number)
            return self._text_page(draft)
        missing = missing_lines((line.text for line in draft.lines), result.text)
        if reason != "short":
            self._leave_out(missing, draft.number)
            missing = []
        text = join_blocks([*missing, result.text, *draft.annotations])
        return result.page(text, draft.number, self._total)

    def _leave_out(self, lines: list[str], number: int) -> None:
        for line in lines:
            self._notes.leave_out("other version", line, number)

    def _annotations(self, page: Any, number: int) -> list[str]:
        """Return the values of form fields and the comments on a page."""
        fields, comments, excess = page_annotations(page, self._document.formenv)
        if excess:
            self._notes.warn(f"Page {number} has {excess:,} comments or form fields more than the limit")
        found = []
        for title, texts in (("Form fields", fields), ("Comments", comments)):
            if texts:
                found += [f"{title}:", "\n".join(f"- {text}" for text in texts)]
        return found

    def _read_pictures(self, page: Any, text: str, number: int) -> list[OcrResult]:
        """Return what pictures say on a page that also has text, unless it is a scan with a text layer."""
        boxes = _picture_boxes(page) if text else []
        if not boxes or any(box.share > MIN_SCAN_SHARE for box in boxes):
            return []
        if not self._options.ocr or self._options.ocr_images == "none" or len(boxes) > MAX_PICTURES:
            self._notes.leave_out("picture", "picture", number, len(boxes))
            return []
        image = _render(page)
        scale = image.width / page.get_width()
        found = []
        try:
            for box in boxes:
                crop = image.crop(tuple(round(side * scale) for side in box.sides))
                if result := read_picture(crop, self._options, self._notes, number):
                    found.append(_on_page(result, box, page.get_size()))
        except ExtractionError as error:
            self._notes.warn(f"OCR of pictures failed: {error.message}")
            self._notes.leave_out("picture", "picture", number, len(boxes))
            return []
        return found

    def _learn_styles(self) -> None:
        step = max(1, self._total // SAMPLE)
        step += 1 - step % 2  # an odd step meets left and right pages
        sample: list[tuple[Frame, list[Line]]] = []
        for number in range(0, self._total, step):
            try:
                page = self._document[number]
            except pypdfium2.PdfiumError:
                continue
            try:
                self._sample[number] = self._lines(page)
                sample.append((Frame(number + 1, *page.get_size()), self._sample[number]))
            finally:
                page.close()
            if len(sample) >= 2 * SAMPLE:
                break
        self._styles = learn_styles(lines for _, lines in sample)
        self._running = RunningLines(sample, self._total, self._notes.kept_once)

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


def open_document(path: Path, options: ReadOptions) -> pypdfium2.PdfDocument:
    """Open a document, with its form fields; raise `ExtractionError` if that is not possible."""
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
    if document.get_formtype() != pdfium.FORMTYPE_NONE:
        document.init_forms()
    return document


def _ocr_reason(page: Any, text: str) -> str | None:
    """Return whether the text of a page is invalid, or short while there is something to recognize."""
    plain = LEADERS.sub(r"\1", " ".join(text.split()))
    count = len(plain)
    if count:
        invalid = sum(char == "\ufffd" or unicodedata.category(char) == "Co" for char in plain)
        if invalid > MAX_INVALID_SHARE * count:
            return "invalid"
        if count >= MIN_TEXT_CHARS:
            letters = sum(char.isspace() or unicodedata.category(char)[0] in "LMN" for char in plain)
            return "invalid" if letters < MIN_LETTER_SHARE * count else None
    return "short" if _has_graphics(page) else None


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


def _on_page(result: OcrResult, box: _Box, size: tuple[float, float]) -> OcrResult:
    """Return what a picture says, with the places of its words on the page instead of in the picture."""
    left, top, right, _ = box.sides
    unit = WIDTH / size[0]
    words = result.words.place(left * unit, top * unit, (right - left) / size[0], round(size[1] * unit))
    return replace(result, words=words)


def _count_letters(text: str) -> int:
    return sum(char.isalnum() for char in text)


def _metadata_value(value: str) -> str:
    found = DATE.match(value)
    return "-".join(part for part in found.groups() if part) if found else value
