"""Sheets: each a page with one table; numbers as people write them."""

import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from bedstone.ingest.archives import OLD_OFFICE, Archive
from bedstone.ingest.extraction import Notes, Page, ReadOptions, Unreadable
from bedstone.ingest.markdown_writer import heading, joined, table
from bedstone.ingest.office import learn_properties

MOST_CELLS = 20_000_000
CELL = re.compile(rb'<c\b[^>]*?\br="([A-Z]{1,3})([0-9]{1,7})"')
MOST_COLUMNS = 16_384


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """One page a sheet."""
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError  # noqa: PLC0415

    _check(path, notes)
    try:
        book = CalamineWorkbook.from_path(str(path))
        names = book.sheet_names
        for number, name in enumerate(names, start=1):
            rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
            text = table([[_shown(value) for value in row] for row in rows])
            yield Page(joined([heading(1, name), text]), number, len(names))
    except PasswordError:
        raise Unreadable("password_required", "The workbook needs a password.") from None
    except (CalamineError, OSError, ValueError) as error:
        raise Unreadable("damaged", f"The workbook is damaged ({error}).") from None


def _check(path: Path, notes: Notes) -> None:
    """Count cells before anything is allocated: two cells in opposite corners would abort the process."""
    with path.open("rb") as file:
        start = file.read(4)
    if start == OLD_OFFICE:
        return  # an old workbook, or an encrypted one: calamine tells which
    archive = Archive(path)
    learn_properties(archive, notes)
    for name in archive.names:
        if name.startswith("xl/worksheets/") and name.endswith(".xml"):
            columns = rows = 0
            for column, row in CELL.findall(archive.read(name)):
                columns, rows = max(columns, _number(column)), max(rows, int(row))
            if columns * rows > MOST_CELLS or columns > MOST_COLUMNS:
                raise Unreadable("too_many_cells", "The workbook is refused: a sheet has more than 20 million cells.")


def _number(column: bytes) -> int:
    value = 0
    for letter in column:
        value = value * 26 + letter - 64
    return value


def _shown(value: Any) -> str:
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
