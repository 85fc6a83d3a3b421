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


def format_record(pages: Sequence[Page]) -> bytes | None:
    """Return the record of a document; None if OCR read nothing of it."""
    known = [page for page in pages if page.method == "ocr" or page.words]
    if not known:
        return None
    listed = json.dumps([(page.number or 1, page.method, page.confidence) for page in known])
    quality = json.dumps([(page.number or 1, page.word_share, page.done) for page in known if page.method == "ocr"])
    return "\n".join([listed, *(page.words for page in known), quality, ""]).encode("ascii")


def read_confidence(record: Path) -> Mapping[int, float]:
    """Return how confident OCR is of each page that it read as a whole, from 0 to 1."""
    return {number: confidence or 0.0 for number, method, confidence in _read_list(record) if method == "ocr"}


def read_quality(record: Path) -> Mapping[int, PageQuality]:
    """Return how well OCR read each page that it read as a whole."""
    found = {number: PageQuality(confidence) for number, confidence in read_confidence(record).items()}
    for number, share, done in _read_quality_line(record):
        if number in found:
            found[number] = PageQuality(found[number].confidence, _share(share), done)
    return found


def _read_quality_line(record: Path) -> list[tuple[int, object, str]]:
    """Return the last line of a record; nothing for one of an earlier version."""
    pages = len(_read_list(record))
    try:
        with record.open("rb") as file:
            line = next(islice(file, pages + 1, None), b"[]")
        return [(int(number), share, str(done)) for number, share, done in json.loads(line[:MAX_LIST_BYTES])]
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return []


def add_record(record: Path, pages: Sequence[Page]) -> Iterator[Page]:
    """Yield the pages of a document with the method and quality of its record."""
    known = read_quality(record)
    for page in pages:
        number = page.number or 1
        if number in known:
            quality = known[number]
            share, done = quality.word_share, quality.done
            yield Page(page.markdown, page.number, page.of, "ocr", quality.confidence, word_share=share, done=done)
        else:
            yield page


def read_words(record: Path, page: int) -> tuple[str, bool]:
    """Return the packed words of a page, "" if it has none, and whether OCR read the page as a whole."""
    for line, (number, method, _) in enumerate(_read_list(record)):
        if number == page:
            with record.open("rb") as file:
                words = next(islice(file, line + 1, None), b"")
            return words[:MAX_WORDS_BYTES].decode("ascii", "replace").strip(), method == "ocr"
    return "", False


def _read_list(record: Path) -> list[tuple[int, str, float | None]]:
    """Return the pages of a record; none if it is missing or damaged, since the text is complete without it."""
    try:
        with record.open("rb") as file:
            rows = json.loads(file.readline(MAX_LIST_BYTES))
        return [(int(number), str(method), _share(confidence)) for number, method, confidence in rows]
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return []


def _share(value: object) -> float | None:
    return min(1.0, max(0.0, float(value))) if isinstance(value, int | float) else None
