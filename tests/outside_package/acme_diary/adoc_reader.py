"""Read AsciiDoc: its headings become headings in Markdown, the rest stays as it is."""

import re
from collections.abc import Iterator
from pathlib import Path

from bedstone.ingest.encodings import decode
from bedstone.ingest.extraction import Notes, Page, ReadOptions

HEADING = re.compile(r"^(={1,6}) (.+)$", re.MULTILINE)
COMMENT = re.compile(r"^//.*\n?", re.MULTILINE)


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield the text as one page without a number; its first heading is the title."""
    text = COMMENT.sub("", decode(path.read_bytes(), notes))
    if title := HEADING.search(text):
        notes.learn("title", title[2])
    yield Page(HEADING.sub(lambda found: f"{'#' * len(found[1])} {found[2]}", text).strip())
