"""Read SVG drawings: title, description and text; nothing is rendered or fetched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.ingest.archives import parse_xml
from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.format import Format
from bedstone.ingest.formats.html import html_to_markdown
from bedstone.ingest.markdown_writer import collapse_spaces, heading, join_blocks

if TYPE_CHECKING:
    from lxml import etree

FORMAT = Format(
    name="svg",
    reader=f"{__name__}:read",
    suffixes=(".svg",),
    media_type="image/svg+xml",
    is_image=True,
    in_contract=True,
)


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield one page with the texts of the drawing."""
    root = parse_xml(path.read_bytes(), notes)
    titles = [collapse_spaces(_inner(item)) for item in root if _name(item) == "title"]
    for title in titles[:1]:
        notes.learn("title", title)
    blocks = [heading(1, title) for title in titles if title]
    texts = Counter(text for text in _texts(root, notes, top=True) if text)
    for text, count in texts.items():
        notes.leave_out("repeated line", text, count=count - 1)
    yield Page(join_blocks([*blocks, *texts]))


def _texts(element: etree._Element, notes: Notes, *, top: bool = False) -> Iterator[str]:
    for child in element:
        name = _name(child)
        if name in ("title", "desc"):
            if not (top and name == "title"):
                yield collapse_spaces(_inner(child))
        elif name == "text":
            yield collapse_spaces(_inner(child, " "))
        elif name == "foreignObject":
            yield _foreign_text(child, notes)
        elif name == "switch":
            # The first foreign object has the text; the rest is a shortened copy for simple renderers.
            first = next((item for item in child if _name(item) == "foreignObject"), None)
            yield from (_texts(child, notes) if first is None else [_foreign_text(first, notes)])
        elif name not in ("style", "script", "metadata"):
            yield from _texts(child, notes)


def _foreign_text(element: etree._Element, notes: Notes) -> str:
    from lxml import etree  # noqa: PLC0415 - only the worker process needs it

    return html_to_markdown(etree.tostring(element, encoding="utf-8"), notes=notes)[1]


def _name(element: etree._Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _inner(element: etree._Element, between: str = "") -> str:
    return between.join(str(text) for text in element.itertext())
