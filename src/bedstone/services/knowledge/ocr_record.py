"""What OCR knows of the pages of a document, in a file beside its text: how confident it is, and where words stand.

The first line lists pages with their method and confidence; each further line has the packed words of one of them. The
last line has the quality of pages. Earlier versions have no such file, or none with that line, and ignore it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bedstone.ingest.extraction import Page

OCR = "ocr.jsonl"
MAX_LIST_BYTES = 2**24
MAX_WORDS_BYTES = 2**22


@dataclass(frozen=True)
class PageQuality:
    """How well OCR read a page, from 0 to 1: how sure it was, and how many words look like words."""

    confidence: float
    word_share: float | None = None  # None for too few words to say
    done: str = ""  # to the picture, before it was recognized


def write_record(folder: Path, pages: Sequence[Page]) -> None:
    """Write the record of a document, or delete an earlier one if OCR read nothing of it."""
    known = [page for page in pages if page.method == "ocr" or page.words]
    path = folder / OCR
    if not known:
        path.unlink(missing_ok=True)
        return
    listed = json.dumps([(page.number or 1, page.method, page.confidence) for page in known])
    quality = json.dumps([(page.number or 1, page.word_share, page.done) for page in known if page.method == "ocr"])
    path.write_text("\n".join([listed, *(page.words for page in known), quality, ""]), encoding="ascii")


def read_confidence(folder: Path) -> Mapping[int, float]:
    """Return how confident OCR is of each page that it read as a whole, from 0 to 1."""
    return {number: confidence or 0.0 for number, method, confidence in _read_list(folder) if method == "ocr"}


def read_quality(folder: Path) -> Mapping[int, PageQuality]:
    """Return how well OCR read each page that it read as a whole."""
    found = {number: PageQuality(confidence) for number, confidence in read_confidence(folder).items()}
    for number, share, done in _read_quality_line(folder):
        if number in found:
            found[number] = PageQuality(found[number].confidence, _share(share), done)
    return found


def _read_quality_line(folder: Path) -> list[tuple[int, object, str]]:
    """Return the last line of a record; nothing for one of an earlier version."""
    pages = len(_read_list(folder))
    try:
        with (folder / OCR).open("rb") as file:
            line = next(islice(file, pages + 1, None), b"[]")
        return [(int(number), share, str(done)) for number, share, done in json.loads(line[:MAX_LIST_BYTES])]
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return []


def add_record(folder: Path, pages: Sequence[Page]) -> Iterator[Page]:
    """Yield the pages of a document with the method and quality of its record."""
    known = read_quality(folder)
    for page in pages:
        number = page.number or 1
        if number in known:
            quality = known[number]
            share, done = quality.word_share, quality.done
            yield Page(page.markdown, page.number, page.of, "ocr", quality.confidence, word_share=share, done=done)
        else:
            yield page


def read_words(folder: Path, page: int) -> tuple[str, bool]:
    """Return the packed words of a page, "" if it has none, and whether OCR read the page as a whole."""
    for line, (number, method, _) in enumerate(_read_list(folder)):
        if number == page:
            with (folder / OCR).open("rb") as file:
                words = next(islice(file, line + 1, None), b"")
            return words[:MAX_WORDS_BYTES].decode("ascii", "replace").strip(), method == "ocr"
    return "", False


def _read_list(folder: Path) -> list[tuple[int, str, float | None]]:
    """Return the pages of a record; none if it is missing or damaged, since the text is complete without it."""
    try:
        with (folder / OCR).open("rb") as file:
            rows = json.loads(file.readline(MAX_LIST_BYTES))
        return [(int(number), str(method), _share(confidence)) for number, method, confidence in rows]
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return []


def _share(value: object) -> float | None:
    return min(1.0, max(0.0, float(value))) if isinstance(value, int | float) else None
