"""What has been understood of a question, and the query that follows from it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bedstone.salesforce.graph.columns import build_select, short_columns
from bedstone.salesforce.graph.model import ObjectSchema

MIN_CONFIDENCE = 0.35  # below it, no query is offered


@dataclass(frozen=True)
class FilterClause:
    """One condition: a field with its object, and the value as SOQL writes it."""

    object: str
    path: str
    operator: str
    value: str
    source: str
    confidence: float
    place: int = -1  # of its first word
    is_negated: bool = False

    @property
    def soql(self) -> str:
        condition = f"{self.path} {self.operator} {self.value}"
        return f"(NOT {condition})" if self.is_negated else condition


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
    parent: str = "Id"  # the field of the record that the children point to

    @property
    def soql(self) -> str:
        operator = "NOT IN" if self.is_negated else "IN"
        return f"{self.parent} {operator} (SELECT {self.field} FROM {self.object}{_where(self.filters)})"


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
    either: list[FilterClause] = field(default_factory=list)  # at least one of these holds
    joins: list[SemiJoin] = field(default_factory=list)
    aggregates: list[tuple[str, str]] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    having: str = ""
    orders: list[str] = field(default_factory=list)
    limit: int | None = None
    offset: int | None = None
    purpose: str = ""
    scope: str = ""
    subject: ObjectSchema | None = None  # the object of the question, if the query counts its children
    ungrounded: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether every word of the question is in the query; otherwise it is not the answer."""
        return not self.ungrounded and self.confidence >= MIN_CONFIDENCE

    def add_filter(  # noqa: PLR0917 - the parts of a condition
        self, path: str, operator: str, value: str, source: str, confidence: float, place: int = -1
    ) -> None:
        """Add a condition on the object of the query."""
        self.filters.append(FilterClause(self.object.name, path, operator, value, source, confidence, place))

    def add_order(self, path: str, direction: str = "") -> None:
        """Sort by a field, and show it."""
        self.orders.append(f"{path} {direction}".strip())
        self.columns.append(path)

    @property
    def all_filters(self) -> list[FilterClause]:
        """The conditions of the query, then those of its semi-joins and subqueries."""
        joined = [entry for join in self.joins for entry in join.filters]
        return [*self.filters, *self.either, *joined, *(entry for child in self.children for entry in child.filters)]

    def soql(self) -> str:
        """Return the query."""
        either = [f"({' OR '.join(entry.soql for entry in self.either)})"] if self.either else []
        filters = [entry.soql for entry in self.filters]
        where = dict.fromkeys([*filters, *either, *(join.soql for join in self.joins)])
        columns = [*self.columns, *(child.soql for child in self.children)]
        if self.aggregates or self.groups:
            columns = [*self.groups, *(f"{function}({name})" for function, name in self.aggregates)]
        clauses = [
            f"WHERE {' AND '.join(where)}" if where else "",
            f"GROUP BY {', '.join(self.groups)}" if self.groups else "",
            f"HAVING {self.having}" if self.having else "",
            f"ORDER BY {', '.join(dict.fromkeys(self.orders))}" if self.orders else "",
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
