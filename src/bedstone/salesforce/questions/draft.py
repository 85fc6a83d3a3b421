"""What has been understood of a question, and the query that follows from it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bedstone.salesforce.graph.columns import build_select, short_columns
from bedstone.salesforce.graph.model import ObjectSchema


@dataclass(frozen=True)
class FilterClause:
    """One condition: a field with its object, and the value as SOQL writes it."""

    object: str
    path: str
    operator: str
    value: str
    source: str
    confidence: float

    @property
    def soql(self) -> str:
        return f"{self.path} {self.operator} {self.value}"


@dataclass(frozen=True)
class ChildQuery:
    """A subquery for the children of each record."""

    relationship: str
    object: ObjectSchema
    filters: Sequence[FilterClause]

    @property
    def soql(self) -> str:
        return f"(SELECT {', '.join(short_columns(self.object))} FROM {self.relationship}{_where(self.filters)})"


@dataclass(frozen=True)
class SemiJoin:
    """A condition on the children of a record: it has some that match the filters, or none."""

    object: str
    field: str
    filters: Sequence[FilterClause]
    is_negated: bool

    @property
    def soql(self) -> str:
        operator = "NOT IN" if self.is_negated else "IN"
        return f"Id {operator} (SELECT {self.field} FROM {self.object}{_where(self.filters)})"


@dataclass
class QueryDraft:
    """What a question asks for, as far as the passes have understood it."""

    object: ObjectSchema
    confidence: float
    explanation: str
    intent: str = "list"
    columns: list[str] = field(default_factory=list)
    children: list[ChildQuery] = field(default_factory=list)
    filters: list[FilterClause] = field(default_factory=list)
    joins: list[SemiJoin] = field(default_factory=list)
    aggregates: list[tuple[str, str]] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)
    limit: int | None = None
    offset: int | None = None
    purpose: str = ""
    scope: str = ""
    ungrounded: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    has_guessed_amount: bool = False  # every other word must be understood then

    def add_filter(self, path: str, operator: str, value: str, source: str, confidence: float) -> None:
        """Add a condition on the object of the query."""
        self.filters.append(FilterClause(self.object.name, path, operator, value, source, confidence))

    @property
    def all_filters(self) -> list[FilterClause]:
        """The conditions of the query, then those of its semi-joins and subqueries."""
        joined = [entry for join in self.joins for entry in join.filters]
        return [*self.filters, *joined, *(entry for child in self.children for entry in child.filters)]

    def soql(self) -> str:
        """Return the query."""
        where = dict.fromkeys([*(entry.soql for entry in self.filters), *(join.soql for join in self.joins)])
        columns = [*self.columns, *(child.soql for child in self.children)]
        if self.aggregates or self.groups:
            columns = [*self.groups, *(f"{function}({name})" for function, name in self.aggregates)]
        clauses = [
            f"WHERE {' AND '.join(where)}" if where else "",
            f"GROUP BY {', '.join(self.groups)}" if self.groups else "",
            f"ORDER BY {', '.join(self.orders)}" if self.orders else "",
            f"LIMIT {self.limit}" if self.limit is not None else "",
            f"OFFSET {self.offset}" if self.offset is not None else "",
            f"FOR {self.purpose}" if self.purpose else "",
        ]
        return build_select(columns, f"{self.object.name}{f' USING SCOPE {self.scope}' if self.scope else ''}", clauses)


def describe_filters(filters: Iterable[FilterClause]) -> list[dict[str, object]]:
    """Return filters as a tool lists them."""
    return [
        {
            "field": f"{entry.object}.{entry.path}",
            "operator": entry.operator,
            "value": _unquote(entry.value),
            "source": entry.source,
            "confidence": entry.confidence,
        }
        for entry in filters
    ]


def _where(filters: Sequence[FilterClause]) -> str:
    return f" WHERE {' AND '.join(entry.soql for entry in filters)}" if filters else ""


def _unquote(value: str) -> str:
    if value.startswith("'") and value.endswith("'"):
        return value[1:-1].replace("\\'", "'").replace("\\\\", "\\")
    return value
