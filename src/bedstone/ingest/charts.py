"""Read the charts and diagrams that Office documents refer to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bedstone.ingest.markdown_writer import collapse_spaces, table

if TYPE_CHECKING:
    from lxml import etree

    from bedstone.ingest.archives import Archive
    from bedstone.ingest.extraction import Notes
    from bedstone.ingest.office import Relationships

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


def chart_blocks(element: etree._Element, archive: Archive, parts: Relationships, notes: Notes) -> Iterator[str]:
    """Yield titles and series of the charts in an element, and the texts of its diagrams."""
    for chart in element.iter(f"{C}chart"):
        root = _part(chart.get(f"{R}id", ""), archive, parts, notes)
        if root is not None:
            yield from _chart(root)
    for diagram in element.iter(DIAGRAM):
        root = _part(diagram.get(f"{R}dm", ""), archive, parts, notes)
        if root is not None:
            yield "\n".join(f"- {text}" for text in paragraphs(root))


def paragraphs(element: etree._Element) -> list[str]:
    """Return the paragraphs of a drawing that are not empty."""
    return [text for item in element.iter(f"{A}p") if (text := collapse_spaces(drawn_text(item)))]


def drawn_text(element: etree._Element) -> str:
    """Return the text of a drawing."""
    pieces = element.iter(f"{A}t", f"{A}br", f"{A}tab")
    return "".join((item.text or "") if item.tag == f"{A}t" else " " for item in pieces)


def _part(identity: str, archive: Archive, parts: Relationships, notes: Notes) -> etree._Element | None:
    name = parts.by_id.get(identity)
    return archive.optional_xml(name, notes) if name else None


def _chart(root: etree._Element) -> Iterator[str]:
    for title in root.iter(f"{C}title"):
        yield collapse_spaces("".join(item.text or "" for item in title.iter(f"{A}t")))
    rows: list[list[str]] = []
    head: list[str] = []
    for series in root.iter(f"{C}ser"):
        label, categories, values = (
            _points(series, "tx"),
            _points(series, "cat", "xVal"),
            _points(series, "val", "yVal"),
        )
        if categories and categories != head:
            head = categories
            rows.append(["", *categories])
        rows.append([" ".join(label), *values])
    yield table(rows)


def _points(series: etree._Element, *names: str) -> list[str]:
    found = next((item for name in names if (item := series.find(f"{C}{name}")) is not None), None)
    return [item.text or "" for item in found.iter(f"{C}v")] if found is not None else []
