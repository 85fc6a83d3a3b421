"""Drawings: title, description and text; nothing is drawn or fetched."""

from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from bedstone.ingest.archives import parse_xml
from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.formats.html import html_to_markdown
from bedstone.ingest.markdown_writer import heading, joined, squeezed


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """One page."""
    root = parse_xml(path.read_bytes(), notes)
    titles = [squeezed(_inner(item)) for item in root if _name(item) == "title"]
    for title in titles[:1]:
        notes.learn("title", title)
    blocks = [heading(1, title) for title in titles if title]
    yield Page(joined([*blocks, *dict.fromkeys(_texts(root, top=True))]))


def _texts(element: etree._Element, *, top: bool = False) -> Iterator[str]:
    for child in element:
        name = _name(child)
        if name in ("title", "desc"):
            if not (top and name == "title"):
                yield squeezed(_inner(child))
        elif name == "text":
            yield squeezed(_inner(child, " "))
        elif name == "foreignObject":
            yield html_to_markdown(etree.tostring(child, encoding="utf-8"))[1]
        elif name == "switch":
            # The first that holds foreign objects is the text; what follows is a cut copy for simple programs.
            first = next((item for item in child if _name(item) == "foreignObject"), None)
            yield from (
                _texts(child) if first is None else [html_to_markdown(etree.tostring(first, encoding="utf-8"))[1]]
            )
        elif name not in ("style", "script", "metadata"):
            yield from _texts(child)


def _name(element: etree._Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _inner(element: etree._Element, between: str = "") -> str:
    return between.join(str(text) for text in element.itertext())
