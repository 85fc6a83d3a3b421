"""Read workbooks: one table per sheet, numbers and dates as people write them; comments, text boxes and charts."""

import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedstone.ingest.archives import OLD_OFFICE, Archive
from bedstone.ingest.charts import chart_blocks, paragraphs
from bedstone.ingest.extraction import ExtractionError, Notes, Page, ReadOptions
from bedstone.ingest.format import Format
from bedstone.ingest.left_out import PAGE_NUMBER
from bedstone.ingest.markdown_writer import collapse_spaces, heading, join_blocks, table
from bedstone.ingest.office import learn_properties, note_embedded, read_pictures, relationships

if TYPE_CHECKING:
    from lxml import etree

FORMAT = Format(
    name="xlsx",
    reader=f"{__name__}:read",
    suffixes=(".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"),
    media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    zip_member="xl/",
    zip_media_type=b"spreadsheet",
    splits_pages=True,
    in_contract=True,
)
MAX_CELLS = 20_000_000  # of one sheet
CELL = re.compile(rb'<c\b[^>]*?\br="([A-Z]{1,3})([0-9]{1,7})"')
MAX_COLUMNS = 16_384
BOOK = "xl/workbook.xml"
S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
R_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
EDGE = re.compile(rb"<(?:odd|even|first)(?:Header|Footer)>([^<]*)<")  # printed at the top or foot of every page
_Edges = dict[str, list[bytes]]  # by sheet
FIELD = re.compile(r"&(?:\"[^\"]*\"|\d+|K[0-9A-F]{6}|.)")


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield one page per sheet."""
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError  # noqa: PLC0415

    archive, edges = _check(path, notes)
    extras = _Extras(archive, edges, options, notes)
    try:
        book = CalamineWorkbook.from_path(str(path))
        names = book.sheet_names
        for number, name in enumerate(names, start=1):
            rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
            text = table([[_format_value(value) for value in row] for row in rows])
            yield Page(join_blocks([heading(1, name), text, *extras.blocks(name, number)]), number, len(names))
    except PasswordError:
        raise ExtractionError("password_required", "The workbook requires a password.") from None
    except (CalamineError, OSError, ValueError):
        raise ExtractionError("damaged", "Not a workbook, or the file is corrupt.") from None


class _Extras:
    """What a sheet has beside its cells: comments, text boxes, charts, pictures, headers and footers for printing."""

    def __init__(self, archive: Archive | None, edges: _Edges, options: ReadOptions, notes: Notes) -> None:
        self._archive = archive
        self._edges = edges
        self._options = options
        self._notes = notes
        self._seen: set[str] = set()
        self._parts: dict[str, str] = {}
        book = archive.optional_xml(BOOK, notes) if archive is not None else None
        if archive is not None and book is not None:
            parts = relationships(archive, BOOK, notes).by_id
            self._parts = {
                sheet.get("name", ""): parts.get(sheet.get(R_ID, ""), "") for sheet in book.iter(f"{S}sheet")
            }

    def blocks(self, name: str, number: int) -> Iterator[str]:
        """Yield the texts of a sheet."""
        part = self._parts.get(name, "")
        if self._archive is None or part not in self._archive.names:
            return
        parts = relationships(self._archive, part, self._notes)
        note_embedded(parts, self._notes, number)
        comments = [
            text for kind in ("comments", "threadedComment") for item in parts.all_of_type(kind)
            for text in self._comments(item)
        ]  # fmt: skip
        if comments:
            yield "Comments:"
            yield "\n".join(f"- {text}" for text in dict.fromkeys(comments))
        for drawing in parts.all_of_type("drawing"):
            yield from self._drawing(drawing, number)
        yield from self._edge_texts(self._edges.get(part, []), number)

    def _comments(self, name: str) -> Iterator[str]:
        assert self._archive is not None
        root = self._archive.optional_xml(name, self._notes)
        for item in root.iter() if root is not None else ():
            if _local_name(item) in ("comment", "threadedComment"):
                texts = [str(text) for child in item if _local_name(child) == "text" for text in child.itertext()]
                if text := collapse_spaces("".join(texts)):
                    yield f"{item.get('ref')}: {text}" if item.get("ref") else text

    def _drawing(self, name: str, number: int) -> Iterator[str]:
        assert self._archive is not None
        root = self._archive.optional_xml(name, self._notes)
        if root is None:
            return
        parts = relationships(self._archive, name, self._notes)
        yield "\n".join(paragraphs(root))
        yield from chart_blocks(root, self._archive, parts, self._notes)
        yield from read_pictures(self._archive, parts, self._options, self._notes, number)

    def _edge_texts(self, edges: list[bytes], number: int) -> Iterator[str]:
        """Yield headers and footers that no sheet had before."""
        for edge in edges:
            written = unescape(edge.decode("utf-8", "replace"))
            text = collapse_spaces(FIELD.sub(" ", written))
            if not text or (PAGE_NUMBER.fullmatch(text) and "&P" in written and not any(map(str.isdigit, text))):
                self._notes.leave_out("page number", text, number)
            elif text in self._seen:
                self._notes.leave_out("repeated line", text, number)
            else:
                self._seen.add(text)
                yield text


def _check(path: Path, notes: Notes) -> tuple[Archive | None, _Edges]:
    """Return the archive, and the headers and footers in it.

    Count cells first: two cells in opposite corners would make calamine exceed the memory limit.
    """
    with path.open("rb") as file:
        start = file.read(4)
    if start == OLD_OFFICE:
        return None, {}  # an old workbook or an encrypted one: calamine reports which
    archive = Archive(path)
    learn_properties(archive, notes)
    edges: _Edges = {}
    for name in archive.names:
        if name.startswith("xl/worksheets/") and name.endswith(".xml"):
            columns = rows = 0
            sheet = archive.read(name)
            edges[name] = EDGE.findall(sheet)
            for column, row in CELL.findall(sheet):
                columns, rows = max(columns, _column_number(column)), max(rows, int(row))
            if columns * rows > MAX_CELLS or columns > MAX_COLUMNS:
                raise ExtractionError("too_many_cells", f"A sheet exceeds the limit of {MAX_CELLS:,} cells.")
    return archive, edges


def _local_name(element: "etree._Element") -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _column_number(column: bytes) -> int:
    value = 0
    for letter in column:
        value = value * 26 + letter - 64
    return value


def _format_value(value: Any) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.15g}"  # noqa: PLR2004
        case datetime():
            return value.isoformat(sep=" ") if value.time() != time() else value.date().isoformat()
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case _:
            return str(value)
