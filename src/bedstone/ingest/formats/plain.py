"""Read text that needs no conversion: Markdown, plain text, JSON."""

import re
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

MAPPING = re.compile(r"\s*$|[\w.\"'-]+(?: [\w.\"'-]+){0,2}\s*:(?:\s|$)|\s+\S|[-#}\]]")  # a line of YAML
PROPERTIES = {"title": "title", "author": "author", "date": "created", "description": "subject"}


def read_text(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield the text unchanged."""
    yield Page(decode(path.read_bytes(), notes))


def read_markdown(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield the text without its front matter, which is noted."""
    from bedstone.ingest.markdown import FRONT_MATTER  # noqa: PLC0415 - loads the parser

    text = decode(path.read_bytes(), notes)
    found = FRONT_MATTER.match(text)
    if found is None or not all(map(MAPPING.match, found[1].splitlines())):  # text between two rules
        yield Page(text)
        return
    for line in found[1].splitlines():
        notes.leave_out("front matter", line)
        name, _, value = line.partition(":")
        if name in PROPERTIES:
            notes.learn(PROPERTIES[name], value.strip().strip("\"'"))
    yield Page(text[found.end() :])


def read_json(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield the text as a code block, so that names and values stay in place."""
    yield Page(f"```json\n{decode(path.read_bytes(), notes).strip()}\n```")
