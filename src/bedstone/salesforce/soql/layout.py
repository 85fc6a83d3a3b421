"""Writes a query for people: a clause per line, and long clauses over several lines."""

from collections.abc import Iterator

from bedstone.salesforce.soql.tree import And, Column, Condition, Not, Or, Query
from bedstone.salesforce.soql.writer import write

WIDTH = 80  # characters of a line, where a name is not longer
INDENT = "  "


def lay_out(query: Query) -> str:
    """Return a query with a clause per line; parsing it again gives the same tree."""
    return "\n".join(_lines(query))


def _lines(query: Query) -> Iterator[str]:
    yield from _columns(query.columns)
    yield f"FROM {', '.join(write(source) for source in query.sources)}"
    if query.where is not None:
        yield from _condition("WHERE", query.where)
    yield from (write(option) for option in query.options)
    if query.group_by is not None:
        yield write(query.group_by)
    if query.having is not None:
        yield from _condition("HAVING", query.having)
    if query.order_by:
        yield f"ORDER BY {', '.join(write(order) for order in query.order_by)}"
    yield from _ending(query)


def _ending(query: Query) -> Iterator[str]:
    """Yield the clauses after ORDER BY."""
    if query.limit is not None:
        yield f"LIMIT {write(query.limit)}"
    if query.offset is not None:
        yield f"OFFSET {write(query.offset)}"
    if query.binds:
        yield "BIND " + ", ".join(f"{name} = {write(value)}" for name, value in query.binds)
    if query.purpose:
        yield f"FOR {query.purpose}"
    if query.updates:
        yield f"UPDATE {', '.join(query.updates)}"
    if query.all_rows:
        yield "ALL ROWS"


def _columns(columns: tuple[Column, ...]) -> Iterator[str]:
    """Yield SELECT: in one line if it is short, else as many columns per line as fit, each subquery in its own."""
    texts = [write(column) for column in columns]
    line = f"SELECT {texts[0]}"
    was_subquery = isinstance(columns[0].expression, Query)
    for column, text in zip(columns[1:], texts[1:], strict=True):
        is_subquery = isinstance(column.expression, Query)
        if is_subquery or was_subquery or len(line) + len(text) + 2 > WIDTH:
            yield f"{line},"
            line = f"{INDENT}{text}"
        else:
            line = f"{line}, {text}"
        was_subquery = is_subquery
    yield line


def _condition(word: str, condition: Condition) -> Iterator[str]:
    """Yield a condition: in one line if it is short, else a term per line."""
    line = f"{word} {write(condition)}"
    if len(line) <= WIDTH or not isinstance(condition, And | Or):
        yield line
        return
    junction = "AND" if isinstance(condition, And) else "OR"
    first, *others = (
        f"({write(term)})" if isinstance(term, And | Or | Not) else write(term) for term in condition.terms
    )
    yield f"{word} {first}"
    yield from (f"{INDENT}{junction} {term}" for term in others)
