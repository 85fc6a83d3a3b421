"""Read workbooks: one table per sheet, numbers and dates as people write them."""

import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from bedstone.ingest.archives import OLD_OFFICE, Archive
from bedstone.ingest.extraction import ExtractionError, Notes, Page, ReadOptions
from bedstone.ingest.format import Format
from bedstone.ingest.markdown_writer import heading, join_blocks, table
from bedstone.ingest.office import learn_properties

FORMAT = Format(
    name="xlsx",
    reader=f"{__name__}:read",
    suffixes=(".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"),
    media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    zip_member="xl/",
    zip_media_type=b"spreadsheet",
    in_contract=True,
)
MAX_CELLS = 20_000_000  # of one sheet
CELL = re.compile(rb'<c\b[^>]*?\br="([A-Z]{1,3})([0-9]{1,7})"')
MAX_COLUMNS = 16_384


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield one page per sheet."""
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError  # noqa: PLC0415

    _check(path, notes)
    try:
        book = CalamineWorkbook.from_path(str(path))
        names = book.sheet_names
        for number, name in enumerate(names, start=1):
            rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
            text = table([[_format_value(value) for value in row] for row in rows])
            yield Page(join_blocks([heading(1, name), text]), number, len(names))
    except PasswordError:
        raise ExtractionError("password_required", "The workbook requires a password.") from None
    except (CalamineError, OSError, ValueError) as error:
        raise ExtractionError("damaged", f"The workbook is corrupt ({error}).") from None


def _check(path: Path, notes: Notes) -> None:
    """Count cells first: two cells in opposite corners would make calamine exceed the memory limit."""
    with path.open("rb") as file:
        start = file.read(4)
    if start == OLD_OFFICE:
        return  # an old workbook or an encrypted one: calamine reports which
    archive = Archive(path)
    learn_properties(archive, notes)
    for name in archive.names:
        if name.startswith("xl/worksheets/") and name.endswith(".xml"):
            columns = rows = 0
            for column, row in CELL.findall(archive.read(name)):
                columns, rows = max(columns, _column_number(column)), max(rows, int(row))
            if columns * rows > MAX_CELLS or columns > MAX_COLUMNS:
                raise ExtractionError("too_many_cells", f"A sheet exceeds the limit of {MAX_CELLS:,} cells.")


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
