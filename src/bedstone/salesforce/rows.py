"""Records as rows of one table: for the command line, and for the page."""

from collections.abc import Sequence
from typing import Any

Record = dict[str, Any]


def table_rows(records: Sequence[Record]) -> list[Record]:
    """Parents as names with dots, children as their number; a parent that is not there leaves its columns empty."""
    parents: set[str] = set()
    for record in records:
        _note_parents(record, "", parents)
    return [_flat(record, parents) for record in records]


def column_names(rows: Sequence[Record]) -> list[str]:
    """Every column, in the order they come."""
    return list(dict.fromkeys(name for row in rows for name in row))


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
