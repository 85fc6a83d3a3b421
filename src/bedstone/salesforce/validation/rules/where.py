"""Rules about conditions: the left side, the operator, and what both allow on the right."""

from bedstone.salesforce.graph.model import ID_TYPES, TEXT_TYPES
from bedstone.salesforce.graph.names import join_names
from bedstone.salesforce.soql.tree import (
    Bind,
    Call,
    Choice,
    Comparison,
    DateLiteral,
    Membership,
    Money,
    Null,
    Path,
    Query,
    Sum,
    Text,
    Value,
)
from bedstone.salesforce.validation.advice import formula_filter, leading_wildcard
from bedstone.salesforce.validation.findings import Finding
from bedstone.salesforce.validation.query_facts import filters_on, has_aggregate
from bedstone.salesforce.validation.rule import Rule, Site, broken_by, corrected_to, not_correctable, rule
from bedstone.salesforce.validation.rules.functions import function_place
from bedstone.salesforce.validation.rules.grouping import grouping_use

REQUIRED_FILTERS = {
    "contentdocumentlink": ("Id", "ContentDocumentId", "LinkedEntityId"),
    "vote": ("ParentId", "Parent.Type", "Id"),
}


@rule("CALCULATION", "A condition does not calculate.")
@broken_by("SELECT Id FROM Opportunity WHERE Amount + ExpectedRevenue > 1000")
@not_correctable("Add a formula field to the object, or compare in the program.")
def calculation(node: Sum, _at: Site) -> Finding | None:
    return Finding("SOQL cannot calculate in WHERE.", node.span)


@rule("AGGREGATE_IN_WHERE", "An aggregate is filtered in HAVING, not in WHERE.")
@broken_by("SELECT Industry FROM Account WHERE COUNT(Id) > 5 GROUP BY Industry")
@corrected_to("SELECT Industry FROM Account GROUP BY Industry HAVING COUNT(Id) > 5")
def aggregate_in_where(call: Call, _at: Site) -> Finding | None:
    return Finding(f"{call.name}() belongs in HAVING, not in WHERE.", call.span) if has_aggregate(call) else None


@rule("ADDRESS_FILTER", "An address or a location is filtered by its parts, or with DISTANCE().")
@broken_by("SELECT Id FROM Account WHERE BillingAddress = 'Hamburg'")
@corrected_to("SELECT Id FROM Account WHERE BillingCity = 'Hamburg'")
def address_filter(path: Path, at: Site) -> Finding | None:
    item, owner = at.left.field, at.left.owner
    if item.type in ("address", "location"):
        parts = [other.name for other in owner.fields if other.compound == item.name] if owner else []
        message = (
            f'"{item.name}" is a compound field; filter on its parts such as '
            f"{join_names(parts, 3) or 'its city'}, or with DISTANCE()."
        )
        return Finding(message, path.span)
    return None


@rule("NOT_FILTERABLE", "A field can be filtered; long text cannot.")
@broken_by("SELECT Id FROM Account WHERE Description = 'key account'")
@not_correctable("Search long text with SOSL, or filter on another field.")
def not_filterable(path: Path, at: Site) -> Finding | None:
    item = at.left.field
    if not item.filterable:
        return Finding(f'Field "{item.name}" ({item.type}) cannot be used in {at.clause}.', path.span)
    return None


@rule("DISTANCE_OPERATOR", "DISTANCE() is compared by < or >.")
@broken_by("SELECT Id FROM Account WHERE DISTANCE(BillingAddress, GEOLOCATION(53.5, 10), 'km') = 20")
@corrected_to("SELECT Id FROM Account WHERE DISTANCE(BillingAddress, GEOLOCATION(53.5, 10), 'km') < 20")
def distance_operator(node: Comparison | Membership, _at: Site) -> Finding | None:
    if isinstance(node, Comparison) and node.operator in ("<", ">"):
        return None
    return Finding("Only < and > are allowed with DISTANCE().", node.span)


@rule("LIKE_ON_ID", "LIKE compares text; a field that holds ids has none.")
@broken_by("SELECT Id FROM Account WHERE OwnerId LIKE 'Anna%'")
@corrected_to("SELECT Id FROM Account WHERE Owner.Name LIKE 'Anna%'")
def like_on_id(node: Comparison, at: Site) -> Finding | None:
    item = at.left.field
    if item.type in ID_TYPES:
        name = f"{item.relationship}.Name" if item.relationship else "Name"
        pattern = node.right.value if isinstance(node.right, Text) else ""
        is_name = item.relationship and not pattern.lstrip("%")[:1].isdigit()
        fix = ".".join((*node.left.parts[:-1], name)) if is_name and isinstance(node.left, Path) else None
        return Finding(f"\"{item.name}\" holds ids, not names. Use {name} LIKE '…'.", node.left.span, fix)
    return None


@rule("EXTERNAL_OBJECT", "An external object is not filtered by LIKE.")
@broken_by("SELECT Id FROM Invoice__x WHERE Name LIKE 'A%'")
@corrected_to("SELECT Id FROM Invoice__x WHERE Name = 'A-1'")
def like_external(node: Comparison, at: Site) -> Finding | None:
    if at.left.owner is not None and at.left.owner.name.endswith("__x"):
        return Finding("LIKE is not supported on external objects.", node.span)
    return None


@rule("OPERATOR_TYPE", "LIKE is for text, INCLUDES for multi-select picklists; booleans have no order.")
@broken_by("SELECT Id FROM Opportunity WHERE Amount LIKE '5%'")
@corrected_to("SELECT Id FROM Opportunity WHERE Amount >= 5")
def operator_type(node: Comparison | Choice, at: Site) -> Finding | None:
    item, operator = at.left.field, node.operator
    if _takes(operator, item.type):
        return None
    return Finding(f'Operator {operator} cannot be used on {item.type} field "{item.name}".', node.span)


@rule("DATE_LITERAL_MISUSE", "The result of a date function is compared with numbers.")
@broken_by("SELECT Id FROM Opportunity WHERE CALENDAR_YEAR(CloseDate) = THIS_YEAR")
@corrected_to("SELECT Id FROM Opportunity WHERE CloseDate = THIS_YEAR")
def date_part_value(value: Value, at: Site) -> Finding | None:
    if isinstance(value, DateLiteral):
        return Finding(f"{value.name} cannot be compared with {at.name}; use a number.", value.span)
    return None


@rule("LITERAL_TYPE", "LIKE takes a text in quotes.")
@broken_by("SELECT Id FROM Account WHERE Phone LIKE 40")
@corrected_to("SELECT Id FROM Account WHERE Phone LIKE '40%'")
def like_value(node: Comparison, _at: Site) -> Finding | None:
    if not isinstance(node.right, Text | Null | Bind):
        return Finding("LIKE needs a text in quotes.", node.right.span)
    return None


@rule("LITERAL_TYPE", "An aggregate is compared with a number without a currency code.")
@broken_by("SELECT StageName FROM Opportunity GROUP BY StageName HAVING SUM(Amount) > USD5000")
@corrected_to("SELECT StageName FROM Opportunity GROUP BY StageName HAVING SUM(Amount) > 5000")
def money_compared(node: Comparison, _at: Site) -> Finding | None:
    if isinstance(node.right, Money) and has_aggregate(node.left):
        message = "A currency with its code cannot be compared with an aggregate; write the number alone."
        return Finding(message, node.right.span, node.right.amount)
    return None


@rule("LITERAL_TYPE", "INCLUDES and EXCLUDES take texts in quotes.")
@broken_by("SELECT Id FROM Contact WHERE Interests__c INCLUDES (5)")
@corrected_to("SELECT Id FROM Contact WHERE Interests__c INCLUDES ('Golf')")
def choice_value(value: Value, at: Site) -> Finding | None:
    return Finding(f"{at.operator} needs texts in quotes.", value.span) if not isinstance(value, Text | Bind) else None


@rule("REQUIRED_FILTER", "Some objects are queried only with a filter on certain fields.")
@broken_by("SELECT Id FROM ContentDocumentLink")
@corrected_to("SELECT Id FROM ContentDocumentLink WHERE LinkedEntityId = '001000000000001AAA'")
def required_filter(query: Query, at: Site) -> Finding | None:
    needed = REQUIRED_FILTERS[at.scope.root.name.lower()]
    if not at.depth and not filters_on(query.where, needed, exactly=True):
        message = f"{at.scope.root.name} must be filtered on {join_names(needed)}."
        return Finding(message, query.sources[0].span, clause="WHERE")
    return None


FIELD = (address_filter, not_filterable, formula_filter)
CALL = {"WHERE": (aggregate_in_where, function_place, grouping_use), "HAVING": (function_place,)}
BY_OPERATOR: dict[str, tuple[Rule, ...]] = {
    "LIKE": (like_on_id, like_external, operator_type, like_value, leading_wildcard),
    **dict.fromkeys(("<", ">", "<=", ">="), (operator_type,)),
}


def _takes(operator: str, kind: str) -> bool:
    """Whether fields of a type can be compared by an operator."""
    if operator == "LIKE":
        return kind in TEXT_TYPES and kind not in ("multipicklist", "encryptedstring")
    if operator in ("INCLUDES", "EXCLUDES"):
        return kind == "multipicklist"
    return kind != "boolean"
