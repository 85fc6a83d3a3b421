"""Records as rows of one table: for the command line, and for the page."""

from collections.abc import Sequence
from typing import Any

from bedstone.salesforce.soql import SyntaxProblem, parse_soql, write
from bedstone.salesforce.soql.tree import Path

Record = dict[str, Any]
COUNT = "COUNT()"


def table_rows(records: Sequence[Record]) -> list[Record]:
    """Parents as names with dots, children as their number; a parent that is not there leaves its columns empty."""
    parents: set[str] = set()
    for record in records:
        _note_parents(record, "", parents)
    return [_flat(record, parents) for record in records]


def column_names(rows: Sequence[Record], selected: Sequence[str] = ()) -> list[str]:
    """Every column: those that were selected first, as the rows spell them, then whatever else there is."""
    spelt = {name.lower(): name for row in rows for name in row}
    names = [spelt.pop(name.lower(), name) for name in selected]
    parents = {part for name in selected for part in _parents(name.lower())}
    return [*names, *(name for key, name in spelt.items() if key not in parents)]


def selected_columns(query: str) -> list[str]:
    """The columns a query names, if their names alone say how they come back."""
    try:
        columns = parse_soql(query).columns
    except SyntaxProblem:
        return []
    if any(column.alias or not isinstance(column.expression, Path) for column in columns):
        return []
    return [column.expression.name for column in columns if isinstance(column.expression, Path)]


def counted(query: str, total: int) -> list[Record]:
    """What `SELECT COUNT()` found, which comes back without a record."""
    try:
        columns = parse_soql(query).columns
    except SyntaxProblem:
        return []
    is_count = len(columns) == 1 and write(columns[0].expression).upper() == COUNT
    return [{COUNT: total}] if is_count else []


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _note_parents(record: Record, prefix: str, parents: set[str]) -> None:
    for name, value in record.items():
        if isinstance(value, dict) and "records" not in value and name != "attributes":
            parents.add(f"{prefix}{name}.")
            _note_parents(value, f"{prefix}{name}.", parents)


def _flat(record: Record, parents: set[str], prefix: str = "") -> Record:
    flat: Record = {}
    for name, value in record.items():
        if name == "attributes" or (value is None and f"{prefix}{name}." in parents):
            continue
        if isinstance(value, dict) and "records" in value:
            flat[prefix + name] = f"{value.get('totalSize', len(value['records']))} rows"
        elif isinstance(value, dict):
            flat |= _flat(value, parents, f"{prefix}{name}.")
        else:
            flat[prefix + name] = "" if value is None else value
    return flat
