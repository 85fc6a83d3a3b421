"""What a question asks for, and the query that follows from it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from bedstone.library.schema.columns import short_columns, written
from bedstone.salesforce.graph.model import ObjectSchema


@dataclass(frozen=True)
class Filter:
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


@dataclass
class Frame:
    """What a question asks for."""

    object: ObjectSchema
    confidence: float
    explanation: str
    intent: str = "list"
    columns: list[str] = field(default_factory=list)
    children: list[tuple[str, ObjectSchema, list[Filter]]] = field(default_factory=list)
    filters: list[Filter] = field(default_factory=list)
    joins: list[tuple[str, str, list[Filter], bool]] = field(default_factory=list)  # my field, SELECT, filters, NOT
    aggregates: list[tuple[str, str]] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)
    limit: int | None = None
    offset: int | None = None
    purpose: str = ""
    scope: str = ""
    ungrounded: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)

    def soql(self) -> str:
        """The query it stands for."""
        item = self.object
        where = [entry.soql for entry in self.filters]
        for mine, select, filters, is_not in self.joins:
            inner = f" WHERE {' AND '.join(entry.soql for entry in filters)}" if filters else ""
            where.append(f"{mine} {'NOT IN' if is_not else 'IN'} ({select}{inner})")
        clauses = [f"WHERE {' AND '.join(dict.fromkeys(where))}" if where else ""]
        if self.aggregates or self.groups:
            columns = [*self.groups, *(f"{function}({name})" for function, name in self.aggregates)]
            clauses.append(f"GROUP BY {', '.join(self.groups)}" if self.groups else "")
        else:
            columns = self.columns
            for relationship, child, filters in self.children:
                inner = f" WHERE {' AND '.join(entry.soql for entry in filters)}" if filters else ""
                columns = [*columns, f"(SELECT {', '.join(short_columns(child))} FROM {relationship}{inner})"]
        clauses.append(f"ORDER BY {', '.join(self.orders)}" if self.orders else "")
        clauses.append(f"LIMIT {self.limit}" if self.limit is not None else "")
        clauses.append(f"OFFSET {self.offset}" if self.offset is not None else "")
        clauses.append(f"FOR {self.purpose}" if self.purpose else "")
        return written(columns, f"{item.name}{f' USING SCOPE {self.scope}' if self.scope else ''}", clauses)


def shown_filters(filters: Iterable[Filter]) -> list[dict[str, object]]:
    """Filters as a tool shows them."""
    return [
        {
            "field": f"{entry.object}.{entry.path}",
            "operator": entry.operator,
            "value": _unquoted(entry.value),
            "source": entry.source,
            "confidence": entry.confidence,
        }
        for entry in filters
    ]


def _unquoted(value: str) -> str:
    if value.startswith("'") and value.endswith("'"):
        return value[1:-1].replace("\\'", "'").replace("\\\\", "\\")
    return value
