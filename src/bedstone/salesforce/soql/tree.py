"""Syntax trees of SOQL and SOSL: frozen, comparable, and every node has its span in the statement.

The span of a node that was not parsed is (0, 0). Comparing trees ignores spans.
"""

from dataclasses import dataclass, field
from typing import Literal

Span = tuple[int, int]
NOWHERE: Span = (0, 0)


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False)


# Values


@dataclass(frozen=True, slots=True)
class Text:
    """A string, without its quotes and escapes; a pattern of LIKE keeps its own escapes."""

    value: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written: 5, -2.50, .5."""

    written: str
    span: Span = _span()

    @property
    def value(self) -> float:
        """The number."""
        return float(self.written)


@dataclass(frozen=True, slots=True)
class Boolean:
    value: bool
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Null:
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Moment:
    """A date, a date with a time, or a time, as it was written."""

    kind: Literal["date", "datetime", "time"]
    written: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class DateLiteral:
    """TODAY, LAST_N_DAYS:5; the name in upper case."""

    name: str
    count: int | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Money:
    """USD5000.01."""

    currency: str
    amount: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Bind:
    """An expression of Apex, as it was written after the colon."""

    expression: str
    span: Span = _span()


Value = Text | Number | Boolean | Null | Moment | DateLiteral | Money | Bind


# Expressions


@dataclass(frozen=True, slots=True)
class Path:
    """A field, or a field of a parent: Account.Owner.Name."""

    parts: tuple[str, ...]
    span: Span = _span()

    @property
    def name(self) -> str:
        """The name as it is written."""
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Geolocation:
    latitude: Number
    longitude: Number
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Distance:
    """DISTANCE(field, GEOLOCATION(1, 2), 'mi')."""

    field: Path
    point: "Geolocation | Path | Bind"
    unit: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """A function of a field, of another call, or of nothing: COUNT(), FORMAT(MIN(Amount))."""

    name: str
    arguments: "tuple[Expression, ...]" = ()
    span: Span = _span()


Expression = Path | Call | Distance


@dataclass(frozen=True, slots=True)
class Sum:
    """`a + b`, which the grammar accepts and no org computes."""

    left: Path
    operator: Literal["+", "-"]
    right: Path
    span: Span = _span()


# Conditions


@dataclass(frozen=True, slots=True)
class Comparison:
    left: Expression | Sum
    operator: Literal["=", "!=", "<>", "<", ">", "<=", ">=", "LIKE"]
    right: Value
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Membership:
    """IN and NOT IN a list, a bind, or a semi-join."""

    left: Expression
    values: "tuple[Value, ...] | SemiJoin | Bind"
    negated: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Choice:
    """INCLUDES and EXCLUDES."""

    left: Expression
    operator: Literal["INCLUDES", "EXCLUDES"]
    values: tuple[Value, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class And:
    terms: "tuple[Condition, ...]"
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Or:
    terms: "tuple[Condition, ...]"
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Not:
    term: "Condition"
    span: Span = _span()


Condition = Comparison | Membership | Choice | And | Or | Not


# Clauses


@dataclass(frozen=True, slots=True)
class Column:
    """An item of SELECT."""

    expression: "Expression | TypeOf | Query"
    alias: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class When:
    type: str
    fields: tuple[Path, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class TypeOf:
    """TYPEOF What WHEN Account THEN Phone ELSE Name END."""

    relationship: Path
    branches: tuple[When, ...]
    otherwise: tuple[Path, ...] | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Using:
    """USING SCOPE mine; USING LOOKUP, which no org supports."""

    kind: Literal["SCOPE", "LOOKUP"]
    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Source:
    """A name in FROM: an object, or a relationship of one named before."""

    path: Path
    alias: str | None = None
    using: tuple[Using, ...] = ()
    span: Span = _span()

    @property
    def name(self) -> str:
        """The name as it is written."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class CategorySelection:
    group: str
    operator: Literal["AT", "ABOVE", "BELOW", "ABOVE_OR_BELOW"]
    categories: tuple[str, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class DataCategories:
    """WITH DATA CATEGORY."""

    selections: tuple[CategorySelection, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Option:
    """WITH SECURITY_ENFORCED, WITH UserId = 'x', WITH RecordVisibilityContext(maxDescriptorPerRecord=100)."""

    name: str
    value: Value | None = None
    settings: tuple[tuple[str, Value], ...] = ()
    span: Span = _span()


With = DataCategories | Option


@dataclass(frozen=True, slots=True)
class GroupBy:
    expressions: tuple[Expression, ...]
    kind: Literal["", "ROLLUP", "CUBE"] = ""
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Order:
    expression: Expression
    direction: Literal["ASC", "DESC"] | None = None
    nulls: Literal["FIRST", "LAST"] | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """The inner select of IN."""

    field: Expression
    sources: tuple[Source, ...]
    where: Condition | None = None
    options: tuple[With, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT statement, or a child subquery."""

    columns: tuple[Column, ...]
    sources: tuple[Source, ...]
    where: Condition | None = None
    options: tuple[With, ...] = ()
    group_by: GroupBy | None = None
    having: Condition | None = None
    order_by: tuple[Order, ...] = ()
    limit: Number | Bind | None = None
    offset: Number | Bind | None = None
    binds: tuple[tuple[str, Value], ...] = ()
    purpose: Literal["VIEW", "REFERENCE", "UPDATE"] | None = None  # FOR ...
    updates: tuple[str, ...] = ()
    all_rows: bool = False
    span: Span = _span()


# SOSL


@dataclass(frozen=True, slots=True)
class Returning:
    """An object of RETURNING with its fields and clauses."""

    name: str
    fields: tuple[Column, ...] = ()
    where: Condition | None = None
    list_view: str | None = None
    order_by: tuple[Order, ...] = ()
    limit: Number | Bind | None = None
    offset: Number | Bind | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class SearchOption:
    """WITH HIGHLIGHT, WITH SNIPPET(target_length=120), WITH NETWORK IN ('a', 'b')."""

    name: str
    operator: Literal["", "=", "IN"] = ""
    values: tuple[Value, ...] = ()
    settings: tuple[tuple[str, Value], ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Search:
    """A FIND statement; `term` is what stands between the braces, as written."""

    term: str
    within: Literal["ALL", "NAME", "EMAIL", "PHONE", "SIDEBAR"] | None = None
    returning: tuple[Returning, ...] = ()
    options: tuple[SearchOption | DataCategories, ...] = ()
    limit: Number | Bind | None = None
    updates: tuple[str, ...] = ()
    is_bind: bool = False
    span: Span = _span()
