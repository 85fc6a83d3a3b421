"""Text that is its own Markdown: .md, .txt, .json."""

from collections.abc import Iterator
from pathlib import Path

from bedstone.ingest.encodings import decoded
from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.markdown import FRONT_MATTER


def read_text(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """The text as it is."""
    yield Page(decoded(path.read_bytes(), notes))


def read_markdown(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """The text without its front matter."""
    text = decoded(path.read_bytes(), notes)
    found = FRONT_MATTER.match(text)
    yield Page(text[found.end() :] if found else text)


def read_json(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """As a listing: names and values stay where they are."""
    yield Page(f"```json\n{decoded(path.read_bytes(), notes).strip()}\n```")
