"""Mark in a text where pages begin, so that a reader can cite them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedstone.ingest.extraction import Page
    from bedstone.records import StoredChunk

SEPARATOR = "\n\n"
PageStarts = Sequence[tuple[int, int]]  # position in the text, and number of the page


def mark_pages(pages: "Sequence[Page]") -> tuple[str, PageStarts]:
    """Return the text of pages, each below a line with its number, and where each begins."""
    parts: list[str] = []
    starts: list[tuple[int, int]] = []
    length = 0
    for page in pages:
        part = page.markdown
        if page.number is not None:
            starts.append((length, page.number))
            part = f"{_lead(page)}{part}" if part else _mark(page.number)
        parts.append(part)
        length += len(part) + len(SEPARATOR)
    return SEPARATOR.join(parts), starts


def text_starts(pages: "Sequence[Page]") -> list[int]:
    """Return where the text of each page begins in the text of all, behind the line with its number."""
    starts: list[int] = []
    length = 0
    for page in pages:
        lead = _lead(page) if page.markdown or page.number is None else _mark(page.number)
        starts.append(length + len(lead))
        length += len(lead) + len(page.markdown) + len(SEPARATOR)
    return starts


def pages_between(starts: PageStarts, begin: int, end: int) -> list[int]:
    """Return the pages that have text between two positions."""
    return [number for (start, number), (last, _) in pairwise([*starts, (end, 0)]) if start < end and begin < last]


def mark_chunks(chunks: "Sequence[StoredChunk]") -> str:
    """Return the text of chunks, with a line before each that begins on another page than the one before."""
    parts: list[str] = []
    current: int | None = None
    for stored in chunks:
        places = stored.head.all_places
        ends = [place.text_start for place in places[1:]] + [len(stored.text)]
        for place, end in zip(places, ends, strict=True):
            if place.page is not None and place.page != current:
                parts.append(_mark(place.page))
                current = place.page
            parts.append(stored.text[place.text_start : end].strip("\n"))
    return SEPARATOR.join(parts)


def _lead(page: "Page") -> str:
    return "" if page.number is None else f"{_mark(page.number)}{SEPARATOR}"


def _mark(number: int) -> str:
    return f"[page {number}]"
