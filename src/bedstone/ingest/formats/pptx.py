"""Read slides in presentation order: titles, text, tables, charts, alternative texts, notes, comments."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.ingest.archives import Archive
from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.format import Format
from bedstone.ingest.markdown_writer import collapse_spaces, heading, join_blocks, table
from bedstone.ingest.office import Relationships, learn_properties, read_pictures, relationships

if TYPE_CHECKING:
    from lxml import etree

FORMAT = Format(
    name="pptx",
    reader=f"{__name__}:read",
    suffixes=(".pptx", ".pptm"),
    media_type="application/vnd.openxmlformats-officedocument.presentationml.presentation",
    zip_member="ppt/",
    is_resumable=True,
    in_contract=True,
)
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
R_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
TITLES = {"title", "ctrTitle"}
DROPPED = {"sldNum", "dt", "ftr"}


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield one page per slide."""
    archive = Archive(path)
    learn_properties(archive, notes)
    main = relationships(archive, "", notes).of_type("officeDocument") or "ppt/presentation.xml"
    parts = relationships(archive, main, notes)
    ids = [item.get(R_ID, "") for item in archive.xml(main, notes).iter(f"{P}sldId")]
    slides = [name for name in (parts.by_id.get(item) for item in ids) if name in archive.names]
    for number, name in islice(enumerate(slides, start=1), options.first_page - 1, None):
        slide = _Slide(archive, str(name), notes)
        pictures = read_pictures(archive, slide.parts, options, notes)
        yield Page(join_blocks([*slide.blocks(), *pictures]), number, len(slides))


class _Slide:
    def __init__(self, archive: Archive, name: str, notes: Notes) -> None:
        self._archive = archive
        self._notes = notes
        self._root = archive.xml(name, notes)
        self.parts: Relationships = relationships(archive, name, notes)

    def blocks(self) -> Iterator[str]:
        tree = self._root.find(f"{P}cSld/{P}spTree")
        shapes = list(self._shapes(tree)) if tree is not None else []
        for shape in sorted(shapes, key=lambda item: _placeholder(item) not in TITLES):
            yield from self._shape(shape)
        yield from self._attachments("notesSlide", "Notes")
        yield from self._attachments("comments", "Comments")

    def _shapes(self, parent: etree._Element) -> Iterator[etree._Element]:
        for child in parent:
            if child.tag == f"{P}grpSp":
                yield from self._shapes(child)
            elif child.tag in (f"{P}sp", f"{P}graphicFrame", f"{P}pic", f"{P}cxnSp"):
                yield child
            elif isinstance(child.tag, str) and child.tag.endswith("}AlternateContent"):
                choice = child[0] if len(child) else None
                if choice is not None:
                    yield from self._shapes(choice)

    def _shape(self, shape: etree._Element) -> Iterator[str]:
        kind = _placeholder(shape)
        if kind in DROPPED:
            return
        if (grid := shape.find(f".//{A}tbl")) is not None:
            yield _table(grid)
        elif (chart := shape.find(f".//{C}chart")) is not None:
            yield from self._chart(chart.get(R_ID, ""))
        elif (body := shape.find(f"{P}txBody")) is not None:
            if kind in TITLES:
                yield heading(1, " ".join(_paragraphs(body)))
            else:
                yield "\n".join(_lines(body))
        else:
            yield from (collapse_spaces(text) for text in (_text(shape),) if text.strip())
        described = shape.find(f".//{P}cNvPr")
        if described is not None and shape.tag == f"{P}pic":
            yield collapse_spaces(described.get("descr", ""))

    def _chart(self, identity: str) -> Iterator[str]:
        name = self.parts.by_id.get(identity)
        root = self._archive.optional_xml(name, self._notes) if name else None
        if root is None:
            return
        title = root.find(f".//{C}title")
        if title is not None:
            yield collapse_spaces("".join(item.text or "" for item in title.iter(f"{A}t")))
        rows: list[list[str]] = []
        for series in root.iter(f"{C}ser"):
            label, categories, values = (_points(series.find(f"{C}{name}")) for name in ("tx", "cat", "val"))
            if categories and not rows:
                rows.append(["", *categories])
            rows.append([" ".join(label), *values])
        yield table(rows)

    def _attachments(self, kind: str, title: str) -> Iterator[str]:
        for name in self.parts.all_of_type(kind):
            root = self._archive.optional_xml(name, self._notes)
            if root is None:
                continue
            shapes = [shape for shape in root.iter(f"{P}sp") if _placeholder(shape) not in {*DROPPED, "sldImg"}]
            texts = [" ".join(_paragraphs(shape)) for shape in shapes]
            texts += [item.text or "" for item in root.iter(f"{P}text")]
            if found := [collapse_spaces(text) for text in texts if text.strip()]:
                yield f"{title}: " + "\n".join(found)


def _placeholder(shape: etree._Element) -> str | None:
    found = shape.find(f".//{P}nvPr/{P}ph")
    return found.get("type", "body") if found is not None else None


def _paragraphs(body: etree._Element) -> list[str]:
    return [text for item in body.iter(f"{A}p") if (text := collapse_spaces(_text(item)))]


def _lines(body: etree._Element) -> Iterator[str]:
    """Yield paragraphs; indented and bulleted ones as list items."""
    for item in body.iter(f"{A}p"):
        text = collapse_spaces(_text(item))
        properties = item.find(f"{A}pPr")
        depth = int(properties.get("lvl", "0")) if properties is not None else 0
        has_bullet = properties is not None and any(
            properties.find(f"{A}{name}") is not None for name in ("buChar", "buAutoNum")
        )
        if text:
            yield f"{'  ' * depth}- {text}" if depth or has_bullet else text


def _text(element: etree._Element) -> str:
    pieces = element.iter(f"{A}t", f"{A}br", f"{A}tab")
    return "".join((item.text or "") if item.tag == f"{A}t" else " " for item in pieces)


def _table(grid: etree._Element) -> str:
    """Write a table; a cell that spans several rows is repeated in each, because chunks hold single rows."""
    rows: list[list[str]] = []
    for row in grid.iter(f"{A}tr"):
        cells: list[str] = []
        for cell in row.iter(f"{A}tc"):
            text = " ".join(_paragraphs(cell))
            if cell.get("vMerge") == "1" and rows and len(cells) < len(rows[-1]):
                text = rows[-1][len(cells)]
            cells.append(text)
        rows.append(cells)
    return table(rows)


def _points(element: etree._Element | None) -> list[str]:
    return [item.text or "" for item in element.iter(f"{C}v")] if element is not None else []
