"""Read slides in presentation order: titles, text, tables, charts, alternative texts, notes, comments."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.ingest.archives import Archive
from bedstone.ingest.charts import chart_blocks, drawn_text, paragraphs
from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.format import Format
from bedstone.ingest.markdown_writer import collapse_spaces, heading, join_blocks, table
from bedstone.ingest.office import Relationships, learn_properties, note_embedded, read_pictures, relationships

if TYPE_CHECKING:
    from lxml import etree

FORMAT = Format(
    name="pptx",
    reader=f"{__name__}:read",
    suffixes=(".pptx", ".pptm"),
    media_type="application/vnd.openxmlformats-officedocument.presentationml.presentation",
    zip_member="ppt/",
    is_resumable=True,
    splits_pages=True,
    in_contract=True,
)
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
R_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
TITLES = {"title", "ctrTitle"}
REPEATED = {"sldNum", "dt", "ftr", "hdr"}


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield one page per slide."""
    archive = Archive(path)
    learn_properties(archive, notes)
    main = relationships(archive, "", notes).of_type("officeDocument") or "ppt/presentation.xml"
    parts = relationships(archive, main, notes)
    ids = [item.get(R_ID, "") for item in archive.xml(main, notes).iter(f"{P}sldId")]
    slides = [name for name in (parts.by_id.get(item) for item in ids) if name in archive.names]
    if missing := len(ids) - len(slides):
        notes.warn(f"Missing slides: {missing}")
    repeated = _Repeated(archive, notes)
    for number, name in islice(enumerate(slides, start=1), options.first_page - 1, None):
        slide = _Slide(archive, str(name), number, repeated, notes)
        pictures = read_pictures(archive, slide.parts, options, notes, number)
        yield Page(join_blocks([*slide.blocks(), *pictures]), number, len(slides))


class _Repeated:
    """Texts in footers and on masters: the text of a presentation has each of them once."""

    def __init__(self, archive: Archive, notes: Notes) -> None:
        self._archive = archive
        self._notes = notes
        self._seen = set(notes.kept_once)
        self._masters: dict[str, list[str]] = {}

    def once(self, text: str, number: int, kind: str | None = None) -> Iterator[str]:
        """Yield a text that no slide had before; a number of a slide is never its text."""
        if kind == "sldNum":
            self._notes.leave_out("page number", text, number)
        elif text in self._seen:
            self._notes.leave_out("repeated line", text, number)
        elif text:
            self._seen.add(text)
            self._notes.kept_once.append(text)
            yield text

    def behind(self, parts: Relationships, number: int) -> Iterator[str]:
        """Yield what the layout and the master of a slide show on it."""
        for layout in parts.all_of_type("slideLayout"):
            for text in self._behind(layout):
                yield from self.once(text, number)

    def _behind(self, name: str) -> list[str]:
        if name not in self._masters:
            self._masters[name] = []  # a layout that is its own master has none
            root = self._archive.optional_xml(name, self._notes)
            shapes = root.iter(f"{P}sp") if root is not None else ()
            found = [text for shape in shapes if _placeholder(shape) is None for text in paragraphs(shape)]
            for master in relationships(self._archive, name, self._notes).all_of_type("slideMaster"):
                found += self._behind(master)
            self._masters[name] = found
        return self._masters[name]


class _Slide:
    def __init__(self, archive: Archive, name: str, number: int, repeated: _Repeated, notes: Notes) -> None:
        self._archive = archive
        self._number = number
        self._repeated = repeated
        self._notes = notes
        self._root = archive.xml(name, notes)
        self.parts: Relationships = relationships(archive, name, notes)

    def blocks(self) -> Iterator[str]:
        tree = self._root.find(f"{P}cSld/{P}spTree")
        shapes = list(self._shapes(tree)) if tree is not None else []
        for shape in sorted(shapes, key=_rank):
            yield from self._shape(shape)
        yield from self._attachments("notesSlide", "Notes")
        yield from self._attachments("comments", "Comments")
        note_embedded(self.parts, self._notes, self._number)
        if self._root.get("showMasterSp") != "0":
            yield from self._repeated.behind(self.parts, self._number)

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
        if kind in REPEATED:
            yield from self._repeated.once(collapse_spaces(drawn_text(shape)), self._number, kind)
            return
        if (grid := shape.find(f".//{A}tbl")) is not None:
            yield _table(grid)
        elif (body := shape.find(f"{P}txBody")) is not None:
            if kind in TITLES:
                yield heading(1, " ".join(paragraphs(body)))
            else:
                yield "\n".join(_lines(body))
        else:
            yield collapse_spaces(drawn_text(shape))
        yield from chart_blocks(shape, self._archive, self.parts, self._notes)
        described = shape.find(f".//{P}cNvPr")
        if described is not None and shape.tag != f"{P}cxnSp":
            yield collapse_spaces(described.get("descr", ""))

    def _attachments(self, kind: str, title: str) -> Iterator[str]:
        for name in self.parts.all_of_type(kind):
            root = self._archive.optional_xml(name, self._notes)
            if root is None:
                continue
            texts: list[str] = []
            for shape in root.iter(f"{P}sp"):
                text, role = " ".join(paragraphs(shape)), _placeholder(shape)
                if role in REPEATED:
                    texts += self._repeated.once(text, self._number, role)
                elif role != "sldImg":
                    texts.append(text)
            texts += [item.text or "" for item in root.iter(f"{P}text")]
            if kind == "comments":  # of later versions: text as on slides
                texts += [text for body in root.iter() if _is_comment(body) for text in paragraphs(body)]
            if found := [collapse_spaces(text) for text in texts if text.strip()]:
                yield f"{title}: " + "\n".join(found)


def _rank(shape: etree._Element) -> int:
    """Order titles first and footers last."""
    kind = _placeholder(shape)
    return 0 if kind in TITLES else 2 if kind in REPEATED else 1


def _is_comment(element: etree._Element) -> bool:
    return isinstance(element.tag, str) and element.tag.endswith("}txBody") and not element.tag.startswith(P)


def _placeholder(shape: etree._Element) -> str | None:
    found = shape.find(f".//{P}nvPr/{P}ph")
    return found.get("type", "body") if found is not None else None


def _lines(body: etree._Element) -> Iterator[str]:
    """Yield paragraphs; indented and bulleted ones as list items."""
    for item in body.iter(f"{A}p"):
        text = collapse_spaces(drawn_text(item))
        properties = item.find(f"{A}pPr")
        depth = int(properties.get("lvl", "0")) if properties is not None else 0
        has_bullet = properties is not None and any(
            properties.find(f"{A}{name}") is not None for name in ("buChar", "buAutoNum")
        )
        if text:
            yield f"{'  ' * depth}- {text}" if depth or has_bullet else text


def _table(grid: etree._Element) -> str:
    """Write a table; a cell that spans several rows is repeated in each, because chunks hold single rows."""
    rows: list[list[str]] = []
    for row in grid.iter(f"{A}tr"):
        cells: list[str] = []
        for cell in row.iter(f"{A}tc"):
            text = " ".join(paragraphs(cell))
            if cell.get("vMerge") == "1" and rows and len(cells) < len(rows[-1]):
                text = rows[-1][len(cells)]
            cells.append(text)
        rows.append(cells)
    return table(rows)
