"""Recognize text in pictures: prepare them, and keep the better of two readings where the first is poor."""

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bedstone.ingest import ocr_scripts, tesseract
from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.ocr_picture import Prepared, prepare, prepare_plainly
from bedstone.ingest.ocr_quality import RETRY_CONFIDENCE, is_poor, join_steps, rate, word_share
from bedstone.ingest.page_words import PageWords
from bedstone.ingest.tesseract import INSTALL_OCR as INSTALL_OCR  # noqa: PLC0414 - part of this module's interface
from bedstone.ingest.tesseract import Layout, Reading

if TYPE_CHECKING:
    from PIL.Image import Image

# A picture inside a document is text from this confidence and so many words on; smaller ones are skipped.
MIN_CONFIDENCE = 0.6
MIN_WORDS = 2
MIN_SIDE = 24
WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True)
class OcrResult:
    """Text, how confident the engine is, from 0 to 1, and where the words stand in the picture.

    Text below the confidence of the settings is `uncertain`. `done` says what was done to the picture, and `advice`
    what to install if its script has no language data.
    """

    text: str
    confidence: float
    uncertain: str = ""
    words: PageWords = field(default_factory=lambda: PageWords(1))
    done: tuple[str, ...] = ()
    advice: str = ""

    def page(self, text: str, number: int | None = None, of: int | None = None) -> Page:
        """Return a page that OCR read as a whole, with more text than it found."""
        return Page(
            text, number, of, "ocr", self.confidence, self.words.pack(), word_share(self.text), join_steps(self.done)
        )


@dataclass(frozen=True)
class _Attempt:
    """A reading of a prepared picture."""

    prepared: Prepared
    reading: Reading = field(default_factory=Reading)

    @property
    def is_poor(self) -> bool:
        return is_poor(self.reading.confidence, self.reading.text, RETRY_CONFIDENCE)

    @property
    def rating(self) -> float:
        return rate(self.reading.text, self.reading.confidence)


def run_ocr(image: "Image", options: ReadOptions) -> OcrResult:
    """Recognize the text in a picture, however it lies; one that is read poorly is read once more, in another way."""
    tesseract.check(options)
    prepared = prepare(image)
    layout = tesseract.find_layout(prepared.image, options)
    languages = ocr_scripts.choose_languages(
        layout.script, options.ocr_language, tesseract.available_languages(options)
    )
    best = _attempt(prepared.turn(layout.quarters).without_lines(), languages, options)
    advice = ""
    if best.is_poor:
        advice = _advise(layout, languages)
        second = _attempt(_prepare_again(image, prepared, layout, best.prepared), languages, options)
        best = max(best, second, key=lambda attempt: attempt.rating)
    return _finish(best, advice if best.is_poor else "", options)


def note_reading(notes: Notes, result: OcrResult, page: int | None = None) -> None:
    """Note what a reading leaves out, and what to install to read more."""
    notes.leave_out("uncertain OCR", result.uncertain, page)
    if result.advice:
        notes.warn(result.advice)


def read_picture(image: "Image", options: ReadOptions, notes: Notes, page: int | None = None) -> OcrResult | None:
    """Return what a picture inside a document says, or None: most hold only noise, which is noted."""
    if min(image.size) < MIN_SIDE:
        return None
    found = run_ocr(image, options)
    if found.confidence >= MIN_CONFIDENCE and len(WORD.findall(found.text)) >= MIN_WORDS:
        return found
    notes.leave_out("uncertain OCR", found.text or found.uncertain, page)
    return None


def _prepare_again(image: "Image", prepared: Prepared, layout: Layout, first: Prepared) -> Prepared:
    """Return a picture for the second reading: turned otherwise, with its lines, or as it is."""
    if layout.other != layout.quarters:
        return prepared.turn(layout.other).without_lines()
    with_lines = prepared.turn(layout.quarters)
    has_lines = with_lines.image.tobytes() != first.image.tobytes()
    return with_lines if has_lines else prepare_plainly(image).turn(layout.quarters)


def _attempt(prepared: Prepared, languages: str, options: ReadOptions) -> _Attempt:
    return _Attempt(prepared, tesseract.recognize(prepared.image, languages, options))


def _advise(layout: Layout, languages: str) -> str:
    is_sure = layout.script_confidence >= ocr_scripts.MIN_SCRIPT_CONFIDENCE
    if is_sure and ocr_scripts.is_missing(layout.script, languages):
        return ocr_scripts.explain_missing(layout.script)
    return ""


def _finish(attempt: _Attempt, advice: str, options: ReadOptions) -> OcrResult:
    reading, prepared = attempt.reading, attempt.prepared
    result = OcrResult(reading.text, round(reading.confidence, 3), done=prepared.done, advice=advice)
    if reading.confidence < options.ocr_confidence:
        return replace(result, text="", uncertain=reading.text)
    if not reading.words:
        return result
    return replace(result, words=prepared.placement.find(reading.words, prepared.image.size))
