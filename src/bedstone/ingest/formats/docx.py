"""Read Word documents: headings by style, lists, tables with merged cells filled, notes and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.ingest.archives import Archive
from bedstone.ingest.charts import chart_blocks
from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.format import Format
from bedstone.ingest.left_out import PAGE_NUMBER
from bedstone.ingest.markdown_writer import collapse_spaces, heading, join_blocks, table
from bedstone.ingest.office import learn_properties, note_embedded, read_pictures, relationships

if TYPE_CHECKING:
    from lxml import etree

FORMAT = Format(
    name="docx",
    reader=f"{__name__}:read",
    suffixes=(".docx", ".docm", ".dotx"),
    media_type="application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    zip_member="word/",
    in_contract=True,
)
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A_TEXT = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"
M_TEXT = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}docPr"
TEXT_PATH = "{urn:schemas-microsoft-com:vml}textpath"  # a watermark
DELETED = {f"{W}del", f"{W}moveFrom"}
SKIPPED = {*DELETED, f"{W}instrText", f"{W}delText", f"{W}pPr", f"{W}rPr", FALLBACK}
FIELDS = (f"{W}instrText", f"{W}fldSimple")
PAGE_FIELD = re.compile(r"\bPAGE\b")
NESTED = {f"{W}{name}" for name in ("sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag")}
HEADING_NAME = re.compile(
    r"(?:heading|überschrift|titre|título|titolo|kop|rubrik|nagłówek|заголовок|标题|見出し)\s*(\d)", re.IGNORECASE
)
TITLES = {"title", "titel", "titre", "título", "titolo"}
MAX_STYLE_DEPTH = 20


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield one page: Word files do not store page breaks reliably."""
    archive = Archive(path)
    learn_properties(archive, notes)
    main = relationships(archive, "", notes).of_type("officeDocument") or "word/document.xml"
    reader = _Reader(archive, main, notes)
    pictures = read_pictures(archive, relationships(archive, main, notes), options, notes)
    reader.note_left_out()
    yield Page(join_blocks([*reader.blocks(), *pictures]))


class _Reader:
    def __init__(self, archive: Archive, main: str, notes: Notes) -> None:
        self._archive = archive
        self._notes = notes
        self._root = archive.xml(main, notes)
        self._folder = main.rpartition("/")[0]
        self._parts = parts = relationships(archive, main, notes)
        self._styles = _Styles(archive.optional_xml(parts.of_type("styles") or f"{self._folder}/styles.xml", notes))
        self._numbered = _ordered_lists(archive.optional_xml(f"{self._folder}/numbering.xml", notes))
        self._extras = [
            (title, archive.optional_xml(f"{self._folder}/{name}.xml", notes))
            for title, name in (("Footnotes", "footnotes"), ("Endnotes", "endnotes"), ("Comments", "comments"))
        ]
        self._headers, self._footers = (
            [archive.xml(name, notes) for name in parts.all_of_type(kind) if name in archive.names]
            for kind in ("header", "footer")
        )

    def blocks(self) -> Iterator[str]:
        body = self._root.find(f"{W}body")
        yield from self._once(self._headers)
        yield from self._inside(self._root if body is None else body)
        for title, root in self._extras:
            texts = [collapse_spaces(_text(item)) for item in root] if root is not None else []
            if lines := [f"- {text}" for text in texts if text]:
                yield f"{title}:"
                yield "\n".join(lines)
        yield from self._once(self._footers)

    def note_left_out(self) -> None:
        """Note what tracked changes deleted, and files inside this one that are not read."""
        note_embedded(self._parts, self._notes)
        for element in self._root.iter(f"{W}del", f"{W}moveFrom"):
            if not any(above.tag in DELETED for above in element.iterancestors()):
                texts = element.iter(f"{W}t", f"{W}delText")
                self._notes.leave_out("deleted text", "".join(item.text or "" for item in texts))

    def _once(self, roots: list[etree._Element]) -> Iterator[str]:
        """Yield the texts of headers or footers, each once."""
        texts: dict[str, None] = {}
        for root in roots:
            lines = [collapse_spaces(block) for block in self._inside(root)]
            has_number = any(PAGE_FIELD.search(item.text or item.get(f"{W}instr") or "") for item in root.iter(*FIELDS))
            numbers = [line for line in lines if line and has_number and PAGE_NUMBER.fullmatch(line)]
            for line in numbers:
                self._notes.leave_out("page number", line)
            texts[" ".join(line for line in lines if line and line not in numbers)] = None
        yield from (text for text in texts if text)

    def _inside(self, parent: etree._Element) -> Iterator[str]:
        for element in parent:
            if element.tag == f"{W}p":
                yield from self._paragraph(element)
            elif element.tag == f"{W}tbl":
                yield self._table(element)
            elif element.tag in NESTED:
                yield from self._inside(element)

    def _paragraph(self, paragraph: etree._Element) -> Iterator[str]:
        text = _text(paragraph)
        line = collapse_spaces(text)
        if line:
            level = self._styles.level(paragraph)
            if level:
                yield heading(level, line)
            elif (number := paragraph.find(f"{W}pPr/{W}numPr")) is not None:
                yield self._item(number, line)
            elif self._styles.is_list(paragraph):
                yield f"- {line}"
            else:
                yield "\n".join(collapse_spaces(part) for part in text.split("\n") if part.strip())
        for box in paragraph.iter(f"{W}txbxContent"):
            if not any(above.tag == FALLBACK for above in box.iterancestors()):
                yield from self._inside(box)
        yield from chart_blocks(paragraph, self._archive, self._parts, self._notes)

    def _item(self, number: etree._Element, line: str) -> str:
        level, identity = (number.find(f"{W}{name}") for name in ("ilvl", "numId"))
        depth = _integer(level, 0)
        mark = "1." if (_integer(identity, 0), depth) in self._numbered else "-"
        return f"{'   ' * depth}{mark} {line}"

    def _table(self, element: etree._Element) -> str:
        """Write a table; a cell that spans several columns or rows is repeated in each."""
        rows: list[list[str]] = []
        for row in _rows(element):
            cells: list[str] = []
            for cell in row.iter(f"{W}tc"):
                if next(cell.iterancestors(f"{W}tr"), None) is not row:
                    continue
                text = " ".join(collapse_spaces(block) for block in self._inside(cell))
                properties = cell.find(f"{W}tcPr")
                merge = properties.find(f"{W}vMerge") if properties is not None else None
                if merge is not None and merge.get(f"{W}val") != "restart" and rows and len(cells) < len(rows[-1]):
                    text = text or rows[-1][len(cells)]
                span = _integer(properties.find(f"{W}gridSpan"), 1) if properties is not None else 1
                cells += [text] + [text if len(text) < 80 else ""] * min(span - 1, 50)  # noqa: PLR2004
            rows.append(cells)
        return table(rows)


class _Styles:
    """Finds out which styles are headings or lists, also by inheritance."""

    def __init__(self, root: etree._Element | None) -> None:
        self._styles = {style.get(f"{W}styleId"): style for style in root} if root is not None else {}

    def level(self, paragraph: etree._Element) -> int:
        """Return 1 to 6 for a heading, else 0."""
        own = paragraph.find(f"{W}pPr/{W}outlineLvl")
        if own is not None and (level := _integer(own, 9)) < 6:  # noqa: PLR2004
            return level + 1
        for style in self._style_chain(paragraph):
            name = style.find(f"{W}name")
            text = name.get(f"{W}val", "") if name is not None else ""
            if text.lower() in TITLES:
                return 1
            if found := HEADING_NAME.match(text):
                return min(int(found[1]) or 1, 6)
            outline = style.find(f"{W}pPr/{W}outlineLvl")
            if outline is not None and (level := _integer(outline, 9)) < 6:  # noqa: PLR2004
                return level + 1
        return 0

    def is_list(self, paragraph: etree._Element) -> bool:
        """Return whether the style of a paragraph makes it a list item."""
        return any(style.find(f"{W}pPr/{W}numPr") is not None for style in self._style_chain(paragraph))

    def _style_chain(self, paragraph: etree._Element) -> Iterator[etree._Element]:
        style = paragraph.find(f"{W}pPr/{W}pStyle")
        name = style.get(f"{W}val") if style is not None else None
        for _ in range(MAX_STYLE_DEPTH):
            found = self._styles.get(name)
            if found is None:
                return
            yield found
            based = found.find(f"{W}basedOn")
            name = based.get(f"{W}val") if based is not None else None


def _ordered_lists(root: etree._Element | None) -> set[tuple[int, int]]:
    """Return the lists and depths that are numbered, not bulleted."""
    if root is None:
        return set()
    ordered: dict[str | None, set[int]] = {}
    for abstract in root.findall(f"{W}abstractNum"):
        levels = {
            int(level.get(f"{W}ilvl", "0"))
            for level in abstract.findall(f"{W}lvl")
            if (kind := level.find(f"{W}numFmt")) is not None and kind.get(f"{W}val") not in ("bullet", "none")
        }
        ordered[abstract.get(f"{W}abstractNumId")] = levels
    found = set()
    for number in root.findall(f"{W}num"):
        reference = number.find(f"{W}abstractNumId")
        identity = number.get(f"{W}numId", "")
        if reference is not None and identity.isdigit():
            found |= {(int(identity), level) for level in ordered.get(reference.get(f"{W}val"), ())}
    return found


def _rows(element: etree._Element) -> Iterator[etree._Element]:
    for row in element.iter(f"{W}tr"):
        if next(row.iterancestors(f"{W}tbl"), None) is element:
            yield row


def _text(element: etree._Element) -> str:
    """Return running text with tabs and breaks, without text boxes."""
    parts: list[str] = []
    _collect(element, parts)
    return "".join(parts)


def _collect(element: etree._Element, parts: list[str]) -> None:
    for child in element:
        tag = child.tag
        if tag in SKIPPED or tag == f"{W}txbxContent" or not isinstance(tag, str):
            continue
        if tag in (f"{W}t", A_TEXT, M_TEXT):
            parts.append(child.text or "")
        elif tag == f"{W}tab":
            parts.append("\t")
        elif tag in (f"{W}br", f"{W}cr"):
            parts.append("\n")
        elif tag == f"{W}noBreakHyphen":
            parts.append("-")
        elif tag == DRAWING and (child.get("descr") or "").strip():
            parts.append(f" {child.get('descr')} ")
        elif tag == TEXT_PATH:
            parts.append(f" {child.get('string') or ''} ")
        elif tag == f"{W}p":
            _collect(child, parts)
            parts.append("\n")
        else:
            _collect(child, parts)


def _integer(element: etree._Element | None, default: int) -> int:
    value = element.get(f"{W}val", "") if element is not None else ""
    return int(value) if value.lstrip("-").isdigit() else default
