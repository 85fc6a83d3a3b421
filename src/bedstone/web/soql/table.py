"""The rows of a query as a table for people: numbers, ids, long texts and children are shown each in its way."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bedstone.salesforce.rows import COUNT, column_names, count_row, selected_columns, table_rows

MAX_CHILDREN = 50  # shown in the cell of a record
LONG_TEXT = 120  # characters
SHOWN_OF_LONG = 80
MIN_GROUPED = 10_000  # a column with such a number has separated thousands; one with years has not
RECORD_ID = re.compile(r"[a-zA-Z0-9]{15}(?:[a-zA-Z0-9]{3})?")
CellKind = Literal["text", "long", "number", "id", "children"]


@dataclass(frozen=True)
class Cell:
    """A value: the text that is shown, and the one that is copied and sorted."""

    kind: CellKind
    text: str
    value: str = ""
    children: "Table | None" = None
    left_out: int = 0  # children that are not shown


@dataclass(frozen=True)
class Table:
    """Columns with their names, whether each holds numbers only, and the rows."""

    names: Sequence[str]
    are_numbers: Sequence[bool]
    rows: Sequence[Sequence[Cell]]
    is_count: bool = False  # the answer of COUNT()


class _Children:
    """The children of a record; not a dictionary, so that flattening the record keeps them together."""

    def __init__(self, result: dict[str, Any]) -> None:
        self.records = result["records"]
        self.total = int(result.get("totalSize", len(self.records)))


def build_table(records: Sequence[dict[str, Any]], query: str, total: int) -> Table:
    """Return the rows of an answer as a table."""
    total_row = [] if records else count_row(query, total)
    is_count = bool(total_row) and COUNT in total_row[0]
    return _build(records or total_row, selected_columns(query), is_count=is_count)


def _build(records: Sequence[dict[str, Any]], selected: Sequence[str] = (), *, is_count: bool = False) -> Table:
    flat = table_rows([{name: _keep_children(value) for name, value in record.items()} for record in records])
    names = column_names(flat, selected)
    columns = [_column(name, [row.get(name, "") for row in flat]) for name in names]
    are_numbers = [any(cell.kind == "number" for cell in cells) for cells in columns]
    return Table(names, are_numbers, list(zip(*columns, strict=True)), is_count)


def _column(name: str, values: Sequence[Any]) -> list[Cell]:
    is_grouped = any(_is_number(value) and abs(value) >= MIN_GROUPED for value in values)
    return [_number(value, is_grouped) if _is_number(value) else _cell(name, value) for value in values]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: float, is_grouped: bool) -> Cell:
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return Cell("number", f"{whole:,}" if is_grouped else str(whole), str(whole))


def _keep_children(value: Any) -> Any:
    return _Children(value) if isinstance(value, dict) and "records" in value else value


def _cell(name: str, value: Any) -> Cell:
    if isinstance(value, _Children):
        shown = value.records[:MAX_CHILDREN]
        text = f"{value.total:,} row{'' if value.total == 1 else 's'}"
        return Cell("children", text, str(value.total), _build(shown), value.total - len(shown))
    if isinstance(value, bool):
        return Cell("text", "true" if value else "false")
    text = str(value)
    if name.lower().endswith("id") and RECORD_ID.fullmatch(text):
        return Cell("id", text)
    if len(text) > LONG_TEXT or "\n" in text:
        return Cell("long", f"{' '.join(text[:SHOWN_OF_LONG].split())} …", text)
    return Cell("text", text)
