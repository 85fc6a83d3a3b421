"""Records as rows of one table: for the command line, and for the page."""

from collections.abc import Mapping, Sequence
from typing import Any

from bedstone.salesforce.soql import SyntaxProblem, parse_soql, write
from bedstone.salesforce.soql.tree import Call, Column, Path, Query, Source

Record = dict[str, Any]
Parts = tuple[str, ...]
COUNT = "COUNT()"
MOST_CHILDREN = 3  # of a record that are shown in its cell
SAME_NAME = frozenset({"format", "tolabel", "convertcurrency"})  # functions whose column is called like their field


def table_rows(records: Sequence[Record], most_children: int | None = MOST_CHILDREN) -> list[Record]:
    """Parents as names with dots, children as their number and the first of them, or all.

    A parent that is not there leaves its columns empty.
    """
    parents: set[str] = set()
    for record in records:
        _note_parents(record, "", parents)
    return [_flat(record, parents, most_children) for record in records]


def column_names(rows: Sequence[Record], selected: Sequence[str] = ()) -> list[str]:
    """Every column: those that were selected first, as the rows spell them, then whatever else there is."""
    spelt = {name.lower(): name for row in rows for name in row}
    names = [spelt.pop(name.lower(), name) for name in selected]
    parents = {part for name in selected for part in _parents(name.lower())}
    return [*names, *(name for key, name in spelt.items() if key not in parents)]


def selected_columns(query: str) -> list[str]:
    """The columns a query names, if that alone says how they come back."""
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
            return ".".join(_expanded(parts, aliases))
        case Column(expression=Call(name, (Path(parts),))) if name.lower() in SAME_NAME:
            return ".".join(_expanded(parts, aliases))
        case Column(expression=Query(sources=(source, *_))):
            return source.path.name
    return None


def _aliases(sources: Sequence[Source]) -> Mapping[str, Parts]:
    """What FROM calls objects, and the way to each from the first one."""
    known: dict[str, Parts] = {sources[0].path.name.lower(): ()}
    for place, source in enumerate(sources):
        way = _expanded(source.path.parts, known) if place else ()
        known[(source.alias or source.path.parts[-1]).lower()] = way
    return known


def _expanded(parts: Parts, aliases: Mapping[str, Parts]) -> Parts:
    way = aliases.get(parts[0].lower()) if len(parts) > 1 else None
    return parts if way is None else (*way, *parts[1:])


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


def _flat(record: Record, parents: set[str], most_children: int | None, prefix: str = "") -> Record:
    flat: Record = {}
    for name, value in record.items():
        if name == "attributes" or (value is None and f"{prefix}{name}." in parents):
            continue
        if isinstance(value, dict) and "records" in value:
            flat[prefix + name] = _children(value, most_children)
        elif isinstance(value, dict):
            flat |= _flat(value, parents, most_children, f"{prefix}{name}.")
        else:
            flat[prefix + name] = "" if value is None else value
    return flat


def _children(found: Record, most: int | None) -> str:
    records = found["records"]
    count = found.get("totalSize", len(records))
    shown = [", ".join(str(item) for item in row.values() if item != "") for row in table_rows(records[:most], most)]
    more = "; ..." if count > len(shown) else ""
    return f"{count} row{'' if count == 1 else 's'}: {'; '.join(shown)}{more}"
