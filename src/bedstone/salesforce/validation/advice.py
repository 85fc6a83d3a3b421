"""Rules about queries that run but should be written differently, and what `detect-anti-patterns` adds to them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bedstone.salesforce.graph.categories import namespace_of
from bedstone.salesforce.graph.model import SchemaGraph
from bedstone.salesforce.soql import parse_soql
from bedstone.salesforce.soql.tree import Comparison, Membership, Null, Number, Path, Query, Text
from bedstone.salesforce.validation.findings import Finding, Report
from bedstone.salesforce.validation.query_facts import TOOLING_OBJECTS, iter_terms, names_few_ids
from bedstone.salesforce.validation.rule import Site, broken_by, corrected_to, rule

MANY_SUBQUERIES = 6
DEEP_OFFSET = 1000
LONG_TEXT = 256  # characters
Weight = Literal["high", "medium", "low"]
WEIGHTS: dict[str, Weight] = {
    "LEADING_WILDCARD": "high",
    "NO_LIMIT": "medium",
    "NEGATIVE_FILTER": "medium",
    "NULL_FILTER": "medium",
    "FORMULA_FILTER": "high",
    "DEPRECATED": "low",
}


@rule("NO_LIMIT", "A query that may return many rows has a LIMIT.", severity="warning")
@broken_by("SELECT Id FROM Account")
@corrected_to("SELECT Id FROM Account LIMIT 200")
def no_limit(query: Query, at: Site) -> Finding | None:
    if query.limit is not None or at.is_aggregate or names_few_ids(query.where):
        return None
    name = at.scope.root.name
    if name.lower() not in TOOLING_OBJECTS and namespace_of(name) != "Tooling":
        return Finding("No LIMIT: the query may return many rows.", (0, 0), clause="LIMIT")
    return None


@rule("NEGATIVE_FILTER", "A filter by != or NOT IN is not the only one: it matches most rows.", severity="warning")
@broken_by("SELECT Id FROM Account WHERE Industry != 'Banking' LIMIT 10")
@corrected_to("SELECT Id FROM Account WHERE Industry = 'Retail' LIMIT 10")
def negative_filter(node: Comparison | Membership, at: Site) -> Finding | None:
    if isinstance(node, Membership):
        return Finding("NOT IN alone is not selective.", node.span)
    if at.clause == "WHERE" and not isinstance(node.right, Null):
        return Finding(f"{node.operator} alone is not selective.", node.span)
    return None


@rule("NULL_FILTER", "A filter by = null cannot use an index.", severity="warning")
@broken_by("SELECT Id FROM Account WHERE Industry = null LIMIT 10")
@corrected_to("SELECT Id FROM Account WHERE CreatedDate = TODAY LIMIT 10")
def null_filter(node: Comparison, at: Site) -> Finding | None:
    if at.clause == "WHERE" and isinstance(node.right, Null):
        return Finding("= null cannot use an index.", node.span)
    return None


@rule("LEADING_WILDCARD", "A pattern of LIKE starts with letters, so that an index can be used.", severity="warning")
@broken_by("SELECT Id FROM Account WHERE Name LIKE '%bank' LIMIT 10")
@corrected_to("SELECT Id FROM Account WHERE Name LIKE 'bank%' LIMIT 10")
def leading_wildcard(node: Comparison, _at: Site) -> Finding | None:
    if isinstance(node.right, Text) and node.right.value.startswith(("%", "_")):
        return Finding(f"LIKE '{node.right.value[:20]}' cannot use an index.", node.right.span)
    return None


@rule(
    "FORMULA_FILTER",
    "A filter is on a stored field: formulas are computed for every row.",
    severity="warning",
    stops=False,
)
@broken_by("SELECT Id FROM Opportunity WHERE ExpectedRevenue > 1000 LIMIT 10")
@corrected_to("SELECT Id FROM Opportunity WHERE Amount > 1000 LIMIT 10")
def formula_filter(path: Path, at: Site) -> Finding | None:
    if at.left.field.is_calculated:
        return Finding(f'"{at.left.field.name}" is a formula; filtering on it is slow.', path.span)
    return None


BY_OPERATOR = {"=": (null_filter,), "!=": (negative_filter,), "<>": (negative_filter,)}


@dataclass(frozen=True)
class AntiPattern:
    """Something that makes a valid query slow, brittle or misleading."""

    name: str
    message: str
    severity: Weight


def anti_patterns(query: str, report: Report, graph: SchemaGraph) -> list[AntiPattern]:
    """Return the warnings of a valid query, and what its shape shows."""
    warnings = [
        AntiPattern(item.code.lower(), item.message, WEIGHTS[item.code])
        for item in report.messages
        if item.code in WEIGHTS
    ]
    return [*warnings, *_shape_patterns(parse_soql(query), graph)]


def _shape_patterns(query: Query, graph: SchemaGraph) -> Iterator[AntiPattern]:
    children = sum(isinstance(column.expression, Query) for column in query.columns)
    if children >= MANY_SUBQUERIES:
        yield AntiPattern("many_subqueries", f"{children} child subqueries make one slow query of many.", "medium")
    if isinstance(query.offset, Number) and query.offset.value >= DEEP_OFFSET:
        yield AntiPattern("deep_offset", "OFFSET ends at 2,000; page by Id or by date instead.", "medium")
    if query.limit is not None and not query.order_by and query.group_by is None:
        yield AntiPattern("limit_without_order", "LIMIT without ORDER BY gives any rows, others next time.", "low")
    item = graph.get(query.sources[0].name)
    for column in query.columns:
        path = column.expression
        field = item.field(path.parts[-1]) if item and isinstance(path, Path) else None
        if field is not None and field.type == "textarea" and field.length >= LONG_TEXT:
            message = f'"{field.name}" is long text; select it for single records.'
            yield AntiPattern("long_text_in_list", message, "medium")
    for term, _ in iter_terms(query.where) if query.where is not None else ():
        right = getattr(term, "right", None)
        if isinstance(right, Text) and isinstance(term.left, Path) and term.left.parts[-1].lower().endswith("id"):
            message = f'"{right.value}" is an id: it differs from org to org.'
            yield AntiPattern("hard_coded_id", message, "medium")
