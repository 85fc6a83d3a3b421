"""Rules about GROUP BY, HAVING, and SELECT in an aggregate query."""

from bedstone.salesforce.soql import write
from bedstone.salesforce.soql.tree import Call, Column, Distance, Expression, GroupBy, Path, Query
from bedstone.salesforce.validation.findings import Finding
from bedstone.salesforce.validation.query_facts import is_bare_count, is_call
from bedstone.salesforce.validation.rule import Site, broken_by, corrected_to, rule
from bedstone.salesforce.validation.rules.functions import date_function_group

MAX_ROLLUP_FIELDS = 3


@rule("NOT_GROUPABLE", "GROUP BY takes no aggregate.")
@broken_by("SELECT COUNT(Id) FROM Account GROUP BY COUNT(Id)")
@corrected_to("SELECT Industry, COUNT(Id) FROM Account GROUP BY Industry")
def group_aggregate(expression: Expression, _at: Site) -> Finding | None:
    return Finding(f'"{write(expression)}" is an aggregate; it cannot be grouped.', expression.span)


@rule("NOT_GROUPABLE", "A field can be grouped; long text and DISTANCE() cannot.")
@broken_by("SELECT Description, COUNT(Id) FROM Account GROUP BY Description")
@corrected_to("SELECT Industry, COUNT(Id) FROM Account GROUP BY Industry")
def not_groupable(expression: Expression, at: Site) -> Finding | None:
    item = at.left.field
    if isinstance(expression, Distance):
        return Finding("DISTANCE() cannot be grouped.", expression.span)
    if isinstance(expression, Path) and not item.groupable:
        return Finding(f'Field "{item.name}" ({item.type}) cannot be used in GROUP BY.', expression.span)
    return None


@rule("ROLLUP_SIZE", "ROLLUP and CUBE take at most three fields.")
@broken_by("SELECT COUNT(Id) FROM Account GROUP BY ROLLUP(Industry, Rating, BillingCity, Site)")
@corrected_to("SELECT COUNT(Id) FROM Account GROUP BY ROLLUP(Industry, Rating, BillingCity)")
def rollup_size(node: GroupBy, _at: Site) -> Finding | None:
    if len(node.expressions) > MAX_ROLLUP_FIELDS:
        return Finding(f"{node.kind} takes at most {MAX_ROLLUP_FIELDS} fields and nothing outside it.", node.span)
    return None


@rule("AGGREGATE_SUBQUERY", "An aggregate query has no child subquery.")
@broken_by("SELECT COUNT(Id), (SELECT Id FROM Contacts) FROM Account")
@corrected_to("SELECT AccountId, COUNT(Id) FROM Contact GROUP BY AccountId")
def aggregate_subquery(column: Column, _at: Site) -> Finding | None:
    return Finding("A child subquery cannot stand in an aggregate query.", column.span)


@rule("TYPEOF_AGGREGATE", "An aggregate query has no TYPEOF.")
@broken_by("SELECT COUNT(Id), TYPEOF What WHEN Account THEN Name END FROM Task")
@corrected_to("SELECT WhatId, COUNT(Id) FROM Task GROUP BY WhatId")
def typeof_aggregate(column: Column, _at: Site) -> Finding | None:
    return Finding("TYPEOF cannot be combined with aggregates.", column.span)


@rule("NOT_GROUPED", "An aggregate query has no FIELDS().")
@broken_by("SELECT FIELDS(STANDARD), COUNT(Id) FROM Account")
@corrected_to("SELECT Industry, COUNT(Id) FROM Account GROUP BY Industry")
def fields_aggregate(column: Column, _at: Site) -> Finding | None:
    return Finding("FIELDS() cannot be combined with aggregates.", column.span)


@rule("NOT_GROUPED", "A column of an aggregate query is grouped or aggregated.")
@broken_by("SELECT Industry, Rating, COUNT(Id) FROM Account GROUP BY Industry")
@corrected_to("SELECT Industry, Rating, COUNT(Id) FROM Account GROUP BY Industry, Rating")
def not_grouped(expression: Expression, at: Site) -> Finding | None:
    inner = expression.arguments[0] if isinstance(expression, Call) and expression.arguments else None
    if inner is None or at.scope.key(inner) not in at.grouping.keys:
        message = f'"{write(expression)}" is neither grouped nor aggregated. Add it to GROUP BY or aggregate it.'
        return Finding(message, expression.span)
    return None


@rule("GROUPING_USE", "GROUPING() needs GROUP BY ROLLUP or CUBE, and does not stand in WHERE.")
@broken_by("SELECT Industry, GROUPING(Industry) FROM Account GROUP BY Industry")
@corrected_to("SELECT Industry, GROUPING(Industry) FROM Account GROUP BY ROLLUP(Industry)")
def grouping_use(call: Call, at: Site) -> Finding | None:
    is_filter = at.clause == "WHERE"
    if is_call(call, "grouping") and (is_filter or not at.grouping.kind):
        return Finding("GROUPING() needs ROLLUP or CUBE.", call.span, clause="WHERE" if is_filter else "SELECT")
    return None


@rule("NOT_GROUPED", "GROUPING() takes a field that is grouped.")
@broken_by("SELECT Industry, GROUPING(Rating) FROM Account GROUP BY ROLLUP(Industry)")
@corrected_to("SELECT Industry, GROUPING(Industry) FROM Account GROUP BY ROLLUP(Industry)")
def grouping_field(call: Call, at: Site) -> Finding | None:
    if call.arguments and at.scope.key(call.arguments[0]) not in at.grouping.keys:
        return Finding(f'"{write(call.arguments[0])}" is not grouped.', call.span, clause="SELECT")
    return None


@rule("DUPLICATE_ALIAS", "Two columns of an aggregate query have different names.")
@broken_by("SELECT Industry total, COUNT(Id) total FROM Account GROUP BY Industry")
@corrected_to("SELECT Industry, COUNT(Id) total FROM Account GROUP BY Industry")
def duplicate_alias(column: Column, at: Site) -> Finding | None:
    if at.name.lower() in at.names:
        return Finding(f'Two columns would be named "{at.name}". Give one an alias.', column.span)
    return None


@rule("COUNT_ALONE", "COUNT() without a field counts all rows, not groups.")
@broken_by("SELECT COUNT() FROM Account GROUP BY Industry")
@corrected_to("SELECT COUNT(Id) FROM Account GROUP BY Industry")
def count_grouped(query: Query, at: Site) -> Finding | None:
    if at.grouping.is_grouped and is_bare_count(query):
        message = "COUNT() must be the only item and takes no alias; use COUNT(Id) instead."
        return Finding(message, query.columns[0].span)
    return None


@rule("HAVING_FIELD", "HAVING filters on what is grouped or aggregated.")
@broken_by("SELECT Industry FROM Account GROUP BY Industry HAVING Rating = 'Hot'")
@corrected_to("SELECT Industry FROM Account WHERE Rating = 'Hot' GROUP BY Industry")
def having_field(expression: Expression, at: Site) -> Finding | None:
    if not at.is_grouped(expression):
        return Finding(f'"{write(expression)}" in HAVING is neither grouped nor aggregated.', expression.span)
    return None


GROUPING = (grouping_use, grouping_field)
UNGROUPED = (date_function_group, not_grouped)
