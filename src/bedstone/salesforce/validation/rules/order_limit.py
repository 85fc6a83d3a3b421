"""Rules about ORDER BY, LIMIT and OFFSET."""

import re

from bedstone.salesforce.soql import write
from bedstone.salesforce.soql.tree import Bind, Expression, Number, Path
from bedstone.salesforce.validation.findings import Finding
from bedstone.salesforce.validation.query_facts import has_aggregate, is_bare_count
from bedstone.salesforce.validation.rule import Site, broken_by, corrected_to, rule

MAX_LIMIT = 2**31 - 1
MAX_OFFSET = 2_000


@rule("ORDER_NOT_GROUPED", "An aggregate query is ordered by what is grouped or aggregated, any other by fields.")
@broken_by("SELECT Industry FROM Account GROUP BY Industry ORDER BY Rating")
@corrected_to("SELECT Industry FROM Account GROUP BY Industry ORDER BY COUNT(Id) DESC")
def order_not_grouped(expression: Expression, at: Site) -> Finding | None:
    if at.is_aggregate and not at.is_grouped(expression):
        return Finding(f'"{write(expression)}" in ORDER BY is neither grouped nor aggregated.', expression.span)
    if not at.is_aggregate and has_aggregate(expression):
        return Finding(f'"{write(expression)}" in ORDER BY needs a grouped query.', expression.span)
    return None


@rule("NOT_SORTABLE", "A field can be sorted; long text cannot.")
@broken_by("SELECT Id FROM Account ORDER BY Description LIMIT 5")
@corrected_to("SELECT Id FROM Account ORDER BY Name LIMIT 5")
def not_sortable(expression: Expression, at: Site) -> Finding | None:
    item = at.left.field
    if not at.is_aggregate and isinstance(expression, Path) and not item.sortable:
        return Finding(f'Field "{item.name}" ({item.type}) cannot be used in ORDER BY.', expression.span)
    return None


@rule("LIMIT_RANGE", "LIMIT and OFFSET are 0 or more.")
@broken_by("SELECT Id FROM Account LIMIT -1")
@corrected_to("SELECT Id FROM Account LIMIT 1")
def limit_range(rows: Number, at: Site) -> Finding | None:
    if at.clause == "LIMIT" and not 0 <= rows.value <= MAX_LIMIT:
        return Finding("LIMIT must be 0 or more, and a number of rows.", rows.span)
    return Finding("OFFSET must be 0 or more.", rows.span) if rows.value < 0 else None


@rule("OFFSET_MAX", "OFFSET is at most 2,000.")
@broken_by("SELECT Id FROM Account ORDER BY CreatedDate LIMIT 5 OFFSET 3000")
@corrected_to("SELECT Id FROM Account WHERE CreatedDate > 2024-01-01T00:00:00Z ORDER BY CreatedDate LIMIT 5")
def offset_max(rows: Number, _at: Site) -> Finding | None:
    message = f"OFFSET {rows.written[:20]} is above {MAX_OFFSET:,}."
    return Finding(message, rows.span) if rows.value > MAX_OFFSET else None


@rule("AGGREGATE_LIMIT", "An aggregate query without GROUP BY returns one row, so it has no LIMIT.")
@broken_by("SELECT SUM(Amount) FROM Opportunity LIMIT 5")
@corrected_to("SELECT SUM(Amount) FROM Opportunity")
def aggregate_limit(part: Number | Bind, at: Site) -> Finding | None:
    if at.is_aggregate and not at.grouping.is_grouped and not is_bare_count(at.query):
        places = re.finditer(at.clause, at.findings.text[: part.span[0]], re.IGNORECASE)
        start = max((found.start() for found in places), default=part.span[0])
        message = f"An aggregate without GROUP BY returns one row; remove {at.clause}."
        return Finding(message, (start, part.span[1]), "")
    return None


ORDER = (order_not_grouped, not_sortable)
BY_CLAUSE = {"LIMIT": (limit_range,), "OFFSET": (limit_range, offset_max)}
