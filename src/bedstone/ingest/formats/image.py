"""Pictures: what OCR reads in them."""

import warnings
from collections.abc import Iterator
from pathlib import Path

from bedstone.ingest.extraction import Notes, Page, ReadOptions, Unreadable
from bedstone.ingest.ocr import recognise


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """One page; a picture without text is an empty one."""
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415

    warnings.simplefilter("error", Image.DecompressionBombWarning)
    try:
        with Image.open(path) as picture:
            notes.learn("width", picture.width)
            notes.learn("height", picture.height)
            picture.load()
            recognised = recognise(picture, options) if options.ocr or options.force_ocr else None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise Unreadable("too_large", "The picture is refused: it has too many pixels.") from None
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        raise Unreadable("damaged", "The picture is damaged.") from None
    if recognised is None:
        yield Page("")
    else:
        yield Page(recognised.text, method="ocr", confidence=recognised.confidence)
