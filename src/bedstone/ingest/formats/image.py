"""Read pictures with OCR."""

import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from bedstone.ingest.extraction import OCR_OFF, ExtractionError, Notes, Page, ReadOptions
from bedstone.ingest.format import Format
from bedstone.ingest.ocr import note_reading, run_ocr

JPEG = Format(
    name="jpg",
    reader=f"{__name__}:read",
    suffixes=(".jpg", ".jpeg"),
    media_type="image/jpeg",
    magic=(b"\xff\xd8\xff",),
    is_image=True,
    uses_ocr=True,
    in_contract=True,
)
PNG = Format(  # and every other bitmap
    name="png",
    reader=f"{__name__}:read",
    suffixes=(".png", ".tif", ".tiff", ".bmp", ".gif", ".webp"),
    media_type="image/png",
    magic=(b"\x89PNG\r\n\x1a\n", b"GIF8", b"II*\0", b"MM\0*"),
    signature=re.compile(rb"\ABM.{4}\0{4}", re.DOTALL),  # BMP: two letters, the size, and zeros that text never has
    is_image=True,
    uses_ocr=True,
    in_contract=True,
)


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield one page, empty if the picture has no text."""
    from PIL import Image, ImageOps, UnidentifiedImageError  # noqa: PLC0415

    warnings.simplefilter("error", Image.DecompressionBombWarning)
    try:
        with Image.open(path) as picture:
            notes.learn("width", picture.width)
            notes.learn("height", picture.height)
            picture.load()
            # Upright as the page shows it, so that the places of words are the same.
            result = run_ocr(ImageOps.exif_transpose(picture), options) if options.ocr else None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ExtractionError("too_large", "The picture has too many pixels.") from None
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        raise ExtractionError("damaged", "Not a picture, or the file is corrupt.") from None
    if result is None:
        notes.leave_out("picture", "picture")
        notes.warn(f"{OCR_OFF}: the picture was not searched for text")
        yield Page("")
    else:
        note_reading(notes, result)
        yield result.page(result.text)
