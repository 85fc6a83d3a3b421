"""Read text that needs no conversion: Markdown, plain text, JSON."""

from collections.abc import Iterator
from pathlib import Path

from bedstone.ingest.encodings import decode
from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.format import Format

MARKDOWN = Format(
    name="md", reader=f"{__name__}:read_markdown", suffixes=(".md", ".markdown"), media_type="text/markdown"
)
TEXT = Format(name="txt", reader=f"{__name__}:read_text", suffixes=(".txt", ".text", ".log"), media_type="text/plain")
JSON = Format(name="json", reader=f"{__name__}:read_json", suffixes=(".json",), media_type="application/json")


def read_text(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield the text unchanged."""
    yield Page(decode(path.read_bytes(), notes))


def read_markdown(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield the text without its front matter."""
    from bedstone.ingest.markdown import FRONT_MATTER  # noqa: PLC0415 - loads the parser

    text = decode(path.read_bytes(), notes)
    found = FRONT_MATTER.match(text)
    yield Page(text[found.end() :] if found else text)


def read_json(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield the text as a code block, so that names and values stay in place."""
    yield Page(f"```json\n{decode(path.read_bytes(), notes).strip()}\n```")
