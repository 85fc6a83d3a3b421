"""Writes trees as text in one canonical form, so that parsing and writing again changes nothing."""

from collections.abc import Iterable
from functools import singledispatch

from bedstone.salesforce.soql.quoting import pattern_string, soql_string
from bedstone.salesforce.soql.tree import (
    And,
    Bind,
    Boolean,
    Call,
    CategorySelection,
    Choice,
    Column,
    Comparison,
    Condition,
    DataCategories,
    DateLiteral,
    Distance,
    Geolocation,
    GroupBy,
    Membership,
    Moment,
    Money,
    Not,
    Null,
    Number,
    Option,
    Or,
    Order,
    Path,
    Query,
    Returning,
    Search,
    SearchOption,
    SemiJoin,
    Source,
    Sum,
    Text,
    TypeOf,
    Using,
    Value,
)


@singledispatch
def write(node: object) -> str:
    """Return a tree, or any part of it, as text."""
    raise TypeError(f"not a part of a statement: {type(node).__name__}")


def _all(nodes: Iterable[object]) -> str:
    return ", ".join(write(node) for node in nodes)


def _values(values: tuple[Value, ...]) -> str:
    is_bind = len(values) == 1 and isinstance(values[0], Bind)
    return write(values[0]) if is_bind else f"({_all(values)})"


def _settings(settings: tuple[tuple[str, Value], ...]) -> str:
    return ", ".join(f"{name}={write(value)}" for name, value in settings)


@write.register
def _(node: Text) -> str:
    return soql_string(node.value)


@write.register
def _(node: Number) -> str:
    return node.written


@write.register
def _(node: Boolean) -> str:
    return "true" if node.value else "false"


@write.register
def _(node: Null) -> str:
    return "null"


@write.register
def _(node: Moment) -> str:
    return node.written


@write.register
def _(node: DateLiteral) -> str:
    return node.name if node.count is None else f"{node.name}:{node.count}"


@write.register
def _(node: Money) -> str:
    return f"{node.currency}{node.amount}"


@write.register
def _(node: Bind) -> str:
    return f":{node.expression}"


@write.register
def _(node: Path) -> str:
    return node.name


@write.register
def _(node: Geolocation) -> str:
    return f"GEOLOCATION({write(node.latitude)}, {write(node.longitude)})"


@write.register
def _(node: Distance) -> str:
    return f"DISTANCE({write(node.field)}, {write(node.point)}, '{node.unit}')"


@write.register
def _(node: Call) -> str:
    return f"{node.name}({_all(node.arguments)})"


@write.register
def _(node: Sum) -> str:
    return f"{write(node.left)} {node.operator} {write(node.right)}"


@write.register
def _(node: Comparison) -> str:
    is_pattern = node.operator == "LIKE" and isinstance(node.right, Text)
    right = pattern_string(node.right.value) if is_pattern and isinstance(node.right, Text) else write(node.right)
    return f"{write(node.left)} {node.operator} {right}"


@write.register
def _(node: Membership) -> str:
    operator = "NOT IN" if node.negated else "IN"
    values = _values(node.values) if isinstance(node.values, tuple) else write(node.values)
    return f"{write(node.left)} {operator} {values}"


@write.register
def _(node: Choice) -> str:
    return f"{write(node.left)} {node.operator} {_values(node.values)}"


@write.register
def _(node: And) -> str:
    return " AND ".join(_term(term) for term in node.terms)


@write.register
def _(node: Or) -> str:
    return " OR ".join(_term(term) for term in node.terms)


@write.register
def _(node: Not) -> str:
    return f"NOT {_term(node.term)}"


def _term(condition: Condition) -> str:
    """Return a term of a condition, in parentheses if it has terms of its own."""
    return f"({write(condition)})" if isinstance(condition, And | Or | Not) else write(condition)


@write.register
def _(node: Column) -> str:
    inner = f"({write(node.expression)})" if isinstance(node.expression, Query) else write(node.expression)
    return f"{inner} {node.alias}" if node.alias else inner


@write.register
def _(node: TypeOf) -> str:
    branches = "".join(f" WHEN {branch.type} THEN {_all(branch.fields)}" for branch in node.branches)
    otherwise = f" ELSE {_all(node.otherwise)}" if node.otherwise is not None else ""
    return f"TYPEOF {write(node.relationship)}{branches}{otherwise} END"


@write.register
def _(node: Source) -> str:
    using = f"USING {_all(node.using)}" if node.using else None
    return " ".join(part for part in (node.name, node.alias, using) if part)


@write.register
def _(node: Using) -> str:
    return f"{node.kind} {node.name}"


@write.register
def _(node: CategorySelection) -> str:
    several = len(node.categories) > 1
    categories = f"({', '.join(node.categories)})" if several else node.categories[0]
    return f"{node.group} {node.operator} {categories}"


@write.register
def _(node: DataCategories) -> str:
    return "WITH DATA CATEGORY " + " AND ".join(write(item) for item in node.selections)


@write.register
def _(node: Option) -> str:
    if node.value is not None:
        return f"WITH {node.name} = {write(node.value)}"
    return f"WITH {node.name}({_settings(node.settings)})" if node.settings else f"WITH {node.name}"


@write.register
def _(node: GroupBy) -> str:
    return f"GROUP BY {node.kind}({_all(node.expressions)})" if node.kind else f"GROUP BY {_all(node.expressions)}"


@write.register
def _(node: Order) -> str:
    nulls = f"NULLS {node.nulls}" if node.nulls else None
    return " ".join(part for part in (write(node.expression), node.direction, nulls) if part)


@write.register
def _(node: SemiJoin) -> str:
    parts = [
        f"SELECT {write(node.field)} FROM {_all(node.sources)}",
        f"WHERE {write(node.where)}" if node.where else "",
        *(write(option) for option in node.options),
    ]
    return f"({' '.join(part for part in parts if part)})"


@write.register
def _(node: Query) -> str:
    parts = [
        f"SELECT {_all(node.columns)} FROM {_all(node.sources)}",
        f"WHERE {write(node.where)}" if node.where else "",
        *(write(option) for option in node.options),
        write(node.group_by) if node.group_by else "",
        f"HAVING {write(node.having)}" if node.having else "",
        f"ORDER BY {_all(node.order_by)}" if node.order_by else "",
        f"LIMIT {write(node.limit)}" if node.limit else "",
        f"OFFSET {write(node.offset)}" if node.offset else "",
        "BIND " + ", ".join(f"{name} = {write(value)}" for name, value in node.binds) if node.binds else "",
        f"FOR {node.purpose}" if node.purpose else "",
        f"UPDATE {', '.join(node.updates)}" if node.updates else "",
        "ALL ROWS" if node.all_rows else "",
    ]
    return " ".join(part for part in parts if part)


@write.register
def _(node: Returning) -> str:
    parts = [
        _all(node.fields),
        f"WHERE {write(node.where)}" if node.where else "",
        f"USING ListView = {node.list_view}" if node.list_view else "",
        f"ORDER BY {_all(node.order_by)}" if node.order_by else "",
        f"LIMIT {write(node.limit)}" if node.limit else "",
        f"OFFSET {write(node.offset)}" if node.offset else "",
    ]
    inside = " ".join(part for part in parts if part)
    return f"{node.name}({inside})" if inside else node.name


@write.register
def _(node: SearchOption) -> str:
    if node.operator:
        values = f"({_all(node.values)})" if node.operator == "IN" else write(node.values[0])
        return f"WITH {node.name} {node.operator} {values}"
    return f"WITH {node.name}({_settings(node.settings)})" if node.settings else f"WITH {node.name}"


@write.register
def _(node: Search) -> str:
    parts = [
        f"FIND :{node.term}" if node.is_bind else f"FIND {{{node.term}}}",
        f"IN {node.within} FIELDS" if node.within else "",
        f"RETURNING {_all(node.returning)}" if node.returning else "",
        *(write(option) for option in node.options),
        f"LIMIT {write(node.limit)}" if node.limit else "",
        f"UPDATE {', '.join(node.updates)}" if node.updates else "",
    ]
    return " ".join(part for part in parts if part)
