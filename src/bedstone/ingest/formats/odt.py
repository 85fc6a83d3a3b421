"""Read OpenDocument texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.ingest.archives import Archive
from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.format import Format
from bedstone.ingest.left_out import PAGE_NUMBER
from bedstone.ingest.markdown_writer import collapse_spaces, heading, join_blocks, table

if TYPE_CHECKING:
    from lxml import etree

FORMAT = Format(
    name="odt",
    reader=f"{__name__}:read",
    suffixes=(".odt",),
    media_type="application/vnd.oasis.opendocument.text",
    zip_media_type=b"text",
)
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
BOX = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}text-box"
META = "{urn:oasis:names:tc:opendocument:xmlns:meta:1.0}"
DC = "{http://purl.org/dc/elements/1.1/}"
MAX_REPEATS = 100
MAX_SPACES = 100
SKIPPED = {f"{TEXT}tracked-changes", f"{TEXT}sequence-decls", f"{OFFICE}forms"}


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield one page with the document."""
    archive = Archive(path)
    meta = archive.optional_xml("meta.xml", notes)
    if meta is not None:
        for name, tag in (("title", f"{DC}title"), ("author", f"{DC}creator"), ("created", f"{META}creation-date")):
            notes.learn(name, meta.findtext(f".//{tag}"))
    body = archive.xml("content.xml", notes).find(f"{OFFICE}body")
    blocks = list(_blocks(body)) if body is not None else []
    if body is not None:
        for change in body.iter(f"{TEXT}deletion"):
            notes.leave_out("deleted text", " ".join(_blocks(change)))
    styles = archive.optional_xml("styles.xml", notes)
    yield Page(join_blocks([*_edges(styles, "header", notes), *blocks, *_edges(styles, "footer", notes)]))


def _edges(styles: etree._Element | None, kind: str, notes: Notes) -> list[str]:
    """Return the headers or footers, each once."""
    found: dict[str, None] = {}
    names = [f"{STYLE}{kind}{side}" for side in ("", "-left", "-first")]
    for element in styles.iter(*names) if styles is not None else ():
        has_number = next(element.iter(f"{TEXT}page-number"), None) is not None
        for block in _blocks(element):
            if has_number and PAGE_NUMBER.fullmatch(block):
                notes.leave_out("page number", block)
            else:
                found[block] = None
    return list(found)


def _blocks(parent: etree._Element) -> Iterator[str]:
    for child in parent:
        tag = child.tag
        if tag in SKIPPED or not isinstance(tag, str):
            continue
        if tag == f"{TEXT}h":
            yield heading(int(child.get(f"{TEXT}outline-level") or "1"), _text(child))
            yield from _boxes(child)
        elif tag == f"{TEXT}p":
            yield collapse_spaces(_text(child))
            yield from _boxes(child)
        elif tag == f"{TEXT}list":
            yield "\n".join(_items(child, 0))
            yield from _boxes(child)
        elif tag == f"{TABLE}table":
            yield _table(child)
        else:
            yield from _blocks(child)


def _boxes(element: etree._Element) -> Iterator[str]:
    """Yield the text boxes in an element, those inside others with them."""
    for box in element.iter(BOX):
        if next(box.iterancestors(BOX), None) is None:
            yield from _blocks(box)


def _items(element: etree._Element, depth: int) -> Iterator[str]:
    for item in element:
        for child in item:
            if child.tag == f"{TEXT}list":
                yield from _items(child, depth + 1)
            elif text := collapse_spaces(_text(child)):
                yield f"{'  ' * depth}- {text}"


def _table(element: etree._Element) -> str:
    rows: list[list[str]] = []
    for row in element.iter(f"{TABLE}table-row"):
        cells: list[str] = []
        for cell in row:
            if cell.tag in (f"{TABLE}table-cell", f"{TABLE}covered-table-cell"):
                repeats = min(int(cell.get(f"{TABLE}number-columns-repeated", "1")), MAX_REPEATS)
                cells += [" ".join(collapse_spaces(block) for block in _blocks(cell))] * repeats
        rows.append(cells)
    return table(rows)


def _text(element: etree._Element) -> str:
    parts = [element.text or ""]
    for child in element:
        if child.tag == f"{TEXT}s":
            parts.append(" " * min(int(child.get(f"{TEXT}c", "1")), MAX_SPACES))
        elif child.tag in (f"{TEXT}tab", f"{TEXT}line-break"):
            parts.append(" ")
        elif isinstance(child.tag, str) and not child.tag.endswith(("}text-box", "}annotation-end")):
            parts.append(_text(child))
        parts.append(child.tail or "")
    return "".join(parts)
