"""What OCR knows of the pages of a document, in a file beside its text: how confident it is, and where words stand.

The first line lists pages with their method and confidence; each further line has the packed words of one of them.
Earlier versions have no such file and ignore it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from bedstone.ingest.extraction import Page

OCR = "ocr.jsonl"
MAX_LIST_BYTES = 2**24
MAX_WORDS_BYTES = 2**22


def write_record(folder: Path, pages: Sequence[Page]) -> None:
    """Write the record of a document, or delete an earlier one if OCR read nothing of it."""
    known = [page for page in pages if page.method == "ocr" or page.words]
    path = folder / OCR
    if not known:
        path.unlink(missing_ok=True)
        return
    listed = json.dumps([(page.number or 1, page.method, page.confidence) for page in known])
    path.write_text("\n".join([listed, *(page.words for page in known), ""]), encoding="ascii")


def read_confidence(folder: Path) -> Mapping[int, float]:
    """Return how confident OCR is of each page that it read as a whole, from 0 to 1."""
    return {number: confidence or 0.0 for number, method, confidence in _read_list(folder) if method == "ocr"}


def add_record(folder: Path, pages: Sequence[Page]) -> Iterator[Page]:
    """Yield the pages of a document with the method and confidence of its record."""
    known = read_confidence(folder)
    for page in pages:
        number = page.number or 1
        if number in known:
            yield Page(page.markdown, page.number, page.of, "ocr", known[number])
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
