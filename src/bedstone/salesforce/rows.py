"""Flatten records into the rows of a table, for the command line and the web page."""

from collections.abc import Mapping, Sequence
from typing import Any

from bedstone.salesforce.soql import SyntaxProblem, parse_soql, write
from bedstone.salesforce.soql.tree import Call, Column, Path, Query, Source

Record = dict[str, Any]
Parts = tuple[str, ...]
COUNT = "COUNT()"
MAX_CHILDREN = 3  # shown in the cell of a record
TRANSPARENT_FUNCTIONS = frozenset({"format", "tolabel", "convertcurrency"})  # whose column has the name of the field


def table_rows(records: Sequence[Record], max_children: int | None = MAX_CHILDREN) -> list[Record]:
    """Return a row per record: parents as dotted names, children as their count and the first of them.

    `max_children` of None shows all children. The columns of a missing parent stay empty.
    """
    parents: set[str] = set()
    for record in records:
        _collect_parents(record, "", parents)
    return [_flatten(record, parents, max_children) for record in records]


def column_names(rows: Sequence[Record], selected: Sequence[str] = ()) -> list[str]:
    """Return all columns: the selected ones first, as spelled in the rows, then the others."""
    by_key = {name.lower(): name for row in rows for name in row}
    names = [by_key.pop(name.lower(), name) for name in selected]
    parents = {part for name in selected for part in _parents(name.lower())}
    return [*names, *(name for key, name in by_key.items() if key not in parents)]


def selected_columns(query: str) -> list[str]:
    """Return the columns that a query selects, or nothing if the names in the result depend on the org."""
    try:
        tree = parse_soql(query)
    except SyntaxProblem:
        return []
    names = [_column_name(column, _aliases(tree.sources)) for column in tree.columns]
    known = [name for name in names if name]
    return known if len(known) == len(names) and not tree.group_by else []


def _column_name(column: Column, aliases: Mapping[str, Parts]) -> str | None:
    match column:
        case Column(alias=str(alias)):
            return alias
        case Column(expression=Path(parts)):
            return ".".join(_expand(parts, aliases))
        case Column(expression=Call(name, (Path(parts),))) if name.lower() in TRANSPARENT_FUNCTIONS:
            return ".".join(_expand(parts, aliases))
        case Column(expression=Query(sources=(source, *_))):
            return source.path.name
    return None


def _aliases(sources: Sequence[Source]) -> Mapping[str, Parts]:
    """Return the aliases of FROM with the path of each from the first object."""
    known: dict[str, Parts] = {sources[0].path.name.lower(): ()}
    for place, source in enumerate(sources):
        path = _expand(source.path.parts, known) if place else ()
        known[(source.alias or source.path.parts[-1]).lower()] = path
    return known


def _expand(parts: Parts, aliases: Mapping[str, Parts]) -> Parts:
    prefix = aliases.get(parts[0].lower()) if len(parts) > 1 else None
    return parts if prefix is None else (*prefix, *parts[1:])


def count_row(query: str, total: int) -> list[Record]:
    """Return the result of `SELECT COUNT()` as a row; Salesforce returns it without a record."""
    try:
        columns = parse_soql(query).columns
    except SyntaxProblem:
        return []
    is_count = len(columns) == 1 and write(columns[0].expression).upper() == COUNT
    return [{COUNT: total}] if is_count else []


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _collect_parents(record: Record, prefix: str, parents: set[str]) -> None:
    for name, value in record.items():
        if isinstance(value, dict) and "records" not in value and name != "attributes":
            parents.add(f"{prefix}{name}.")
            _collect_parents(value, f"{prefix}{name}.", parents)


def _flatten(record: Record, parents: set[str], max_children: int | None, prefix: str = "") -> Record:
    flat: Record = {}
    for name, value in record.items():
        if name == "attributes" or (value is None and f"{prefix}{name}." in parents):
            continue
        if isinstance(value, dict) and "records" in value:
            flat[prefix + name] = _format_children(value, max_children)
        elif isinstance(value, dict):
            flat |= _flatten(value, parents, max_children, f"{prefix}{name}.")
        else:
            flat[prefix + name] = "" if value is None else value
    return flat


def _format_children(result: Record, limit: int | None) -> str:
    records = result["records"]
    count = result.get("totalSize", len(records))
    texts = [", ".join(str(item) for item in row.values() if item != "") for row in table_rows(records[:limit], limit)]
    more = "; ..." if count > len(texts) else ""
    return f"{count} row{'' if count == 1 else 's'}: {'; '.join(texts)}{more}"
