"""Rules about subqueries with IN (semi-joins and anti-joins)."""

from bedstone.salesforce.graph.model import ID_TYPES
from bedstone.salesforce.graph.names import join_names
from bedstone.salesforce.soql import write
from bedstone.salesforce.soql.tree import Membership, SemiJoin
from bedstone.salesforce.validation.findings import Finding
from bedstone.salesforce.validation.query_facts import is_plain
from bedstone.salesforce.validation.rule import Site, broken_by, corrected_to, rule

MAX_SEMI_JOINS = 2
ACCOUNTS = "SELECT Id FROM Account"
CHILDREN = ("Contact", "Case", "Opportunity")
EXCLUDED_OBJECTS = frozenset({"activityhistory", "attachment", "event", "note", "openactivity", "task"})


@rule("SEMIJOIN_NESTED", "A subquery with IN does not contain another one.")
@broken_by(
    "SELECT Id FROM Account WHERE Id IN (SELECT AccountId FROM Contact WHERE Id IN (SELECT ContactId FROM Case))"
)
@corrected_to("SELECT Id FROM Account WHERE Id IN (SELECT AccountId FROM Case WHERE ContactId != null)")
def nested_subquery(node: Membership, at: Site) -> Finding | None:
    return Finding("A subquery with IN cannot be nested.", node.span) if at.depth else None


@rule("SEMIJOIN_OR", "A subquery with IN is not an alternative of OR.")
@broken_by("SELECT Id FROM Account WHERE Industry = 'Banking' OR Id IN (SELECT AccountId FROM Contact)")
@corrected_to("SELECT Id FROM Account WHERE Industry = 'Banking' AND Id IN (SELECT AccountId FROM Contact)")
def under_or(node: Membership, at: Site) -> Finding | None:
    return Finding("A subquery with IN cannot stand under OR.", node.span) if at.junction == "OR" else None


@rule("SEMIJOIN_NOT", "A subquery with IN is negated by NOT IN, not by NOT.")
@broken_by("SELECT Id FROM Account WHERE NOT Id IN (SELECT AccountId FROM Contact)")
@corrected_to("SELECT Id FROM Account WHERE Id NOT IN (SELECT AccountId FROM Contact)")
def under_not(node: Membership, at: Site) -> Finding | None:
    if at.junction == "NOT":
        return Finding("A subquery with IN cannot stand under NOT; use NOT IN.", node.span)
    return None


@rule("SEMIJOIN_COUNT", "A statement has at most two subqueries with IN.", stops=False)
@broken_by(f"{ACCOUNTS} WHERE {' AND '.join(f'Id IN (SELECT AccountId FROM {name})' for name in CHILDREN)}")  # noqa: S608
@corrected_to(
    "SELECT Id FROM Account WHERE Id IN (SELECT AccountId FROM Contact) AND Id IN (SELECT AccountId FROM Case)"
)
def too_many(node: Membership, at: Site) -> Finding | None:
    return Finding("Only 2 subqueries with IN are allowed.", node.span) if at.semi_joins > MAX_SEMI_JOINS else None


@rule("SEMIJOIN_LEFT", "An id or reference field of the object itself stands before IN.")
@broken_by("SELECT Id FROM Account WHERE Name IN (SELECT AccountId FROM Contact)")
@corrected_to("SELECT Id FROM Account WHERE Id IN (SELECT AccountId FROM Contact)")
def left_side(node: Membership, at: Site) -> Finding | None:
    if at.left.field.type not in ID_TYPES or not is_plain(node.left):
        return Finding("The left side must be an id or reference field without a dot.", node.left.span)
    return None


@rule("SEMIJOIN_OBJECT", "Some objects, such as Task and Event, do not allow a subquery with IN.", stops=False)
@broken_by("SELECT Id FROM Account WHERE Id IN (SELECT WhatId FROM Task)")
@corrected_to("SELECT Id, (SELECT Id FROM Tasks) FROM Account LIMIT 10")
def excluded_object(inner: SemiJoin, at: Site) -> Finding | None:
    if at.scope.root.name.lower() in EXCLUDED_OBJECTS:
        message = f'"{at.scope.root.name}" is not allowed in a subquery with IN.'
        return Finding(message, inner.sources[0].path.span)
    return None


@rule("SEMIJOIN_SAME", "The subquery uses another object than the query.", stops=False)
@broken_by("SELECT Id FROM Account WHERE Id IN (SELECT ParentId FROM Account WHERE Industry = 'Banking')")
@corrected_to("SELECT ParentId FROM Account WHERE Industry = 'Banking'")
def same_object(inner: SemiJoin, at: Site) -> Finding | None:
    if at.outer is not None and at.scope.root is at.outer.scope.root:
        message = "The subquery cannot use the same object; filter directly instead."
        return Finding(message, inner.sources[0].path.span)
    return None


@rule("SEMIJOIN_FIELD", "The subquery selects one id or reference field of its object.")
@broken_by("SELECT Id FROM Account WHERE Id IN (SELECT LastName FROM Contact)")
@corrected_to("SELECT Id FROM Account WHERE Id IN (SELECT AccountId FROM Contact)")
def selected_field(inner: SemiJoin, at: Site) -> Finding | None:
    if at.left.field.type not in ID_TYPES or not is_plain(inner.field):
        message = f'The subquery must select one id or reference field, not "{write(inner.field)}".'
        return Finding(message, inner.field.span)
    return None


@rule("SEMIJOIN_TARGET", "Both sides of IN hold ids of the same object.")
@broken_by("SELECT Id FROM Account WHERE Id IN (SELECT OwnerId FROM Contact)")
@corrected_to("SELECT Id FROM Account WHERE OwnerId IN (SELECT OwnerId FROM Contact)")
def target(inner: SemiJoin, at: Site) -> Finding | None:
    assert at.outer is not None
    mine, theirs = _targets(at.outer), _targets(at)
    if not mine & theirs:
        points = join_names(sorted(theirs), 3)
        message = f'"{at.left.field.name}" points to {points}, not to {join_names(sorted(mine), 3)}.'
        return Finding(message, inner.field.span)
    return None


@rule("SEMIJOIN_HAVING", "HAVING has no subquery with IN.")
@broken_by("SELECT OwnerId FROM Account GROUP BY OwnerId HAVING OwnerId IN (SELECT OwnerId FROM Contact)")
@corrected_to("SELECT OwnerId FROM Account WHERE OwnerId IN (SELECT OwnerId FROM Contact) GROUP BY OwnerId")
def in_having(term: Membership, _at: Site) -> Finding | None:
    return Finding("A subquery with IN cannot stand in HAVING.", term.span)


PLACE = (nested_subquery, under_or, under_not, too_many)
OBJECT = (excluded_object, same_object)


def _targets(at: Site) -> set[str]:
    """Return the objects whose ids the field holds."""
    return set(at.left.field.reference_to) or {at.scope.root.name}
