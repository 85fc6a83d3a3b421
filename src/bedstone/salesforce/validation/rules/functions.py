"""Rules about functions, wherever they stand."""

from functools import lru_cache

from bedstone.salesforce.graph.model import NUMBER_TYPES, Field
from bedstone.salesforce.graph.names import suggest
from bedstone.salesforce.soql.tree import Call, Distance, Expression, Geolocation, Path
from bedstone.salesforce.validation.findings import Finding
from bedstone.salesforce.validation.query_facts import (
    AGGREGATES,
    DATE_FUNCTIONS,
    has_aggregate,
    is_call,
    is_date_function,
)
from bedstone.salesforce.validation.rule import Rule, Site, broken_by, corrected_to, rule
from bedstone.salesforce.validation.scope import Resolved

FUNCTIONS = {
    name.lower(): name
    for name in (
        *("AVG", "COUNT", "COUNT_DISTINCT", "MIN", "MAX", "SUM", "GROUPING", "FORMAT", "toLabel", "convertCurrency"),
        *("convertTimezone", "FIELDS", "DISTANCE", "GEOLOCATION"),
        *(name.upper() for name in DATE_FUNCTIONS),
    )
}
LABELLED = frozenset({"picklist", "multipicklist", "combobox"})
CATEGORY_FIELDS = frozenset({"DataCategoryGroupName", "DataCategoryName"})
HISTORY_FIELDS = frozenset({"Field", "OldValue", "NewValue"})
NOT_AGGREGATED = frozenset(
    {"boolean", "time", "base64", "address", "location", "multipicklist", "encryptedstring", "anyType"}
)
NEED_TIME = ("day_only", "hour_in_day")
NUMBER = Resolved(Field("", "", "double"), None)
DATE = Resolved(Field("", "", "date"), None)
LOCATION = Resolved(Field("", "", "location"), None)
TEXT_FIELD = Field("", "", "string")


@rule("FUNCTION_UNKNOWN", "A function is one of those that SOQL defines.")
@broken_by("SELECT Id FROM Account WHERE YEAR(CreatedDate) = 2024")
@corrected_to("SELECT Id FROM Account WHERE CALENDAR_YEAR(CreatedDate) = 2024")
def function_unknown(call: Call, _at: Site) -> Finding | None:
    found = suggest(call.name, dict.fromkeys(FUNCTIONS.values(), ""))
    meant = f" Did you mean {found.names[0]}?" if found else ""
    return Finding(f'Unknown function "{call.name}".{meant}', call.span)


@rule("SYNTAX", "FIELDS() stands only in SELECT, and GEOLOCATION() only in DISTANCE().")
@broken_by("SELECT Id FROM Account ORDER BY FIELDS(ALL) LIMIT 5")
@corrected_to("SELECT FIELDS(ALL) FROM Account LIMIT 5")
def function_misplaced(call: Call, _at: Site) -> Finding | None:
    return Finding(f'"{call.name}" cannot stand here.', call.span)


@rule("CONVERT_TZ", "convertTimezone() stands only inside a date function.")
@broken_by("SELECT convertTimezone(CreatedDate) FROM Account LIMIT 1")
@corrected_to(
    "SELECT DAY_ONLY(convertTimezone(CreatedDate)) FROM Account GROUP BY DAY_ONLY(convertTimezone(CreatedDate))"
)
def convert_timezone(call: Call, _at: Site) -> Finding | None:
    return Finding("convertTimezone() only works inside a date function.", call.span) if call.arguments else None


@rule("DATE_FN_TYPE", "A date function takes a date or datetime field; DAY_ONLY() and HOUR_IN_DAY() need a datetime.")
@broken_by("SELECT Id FROM Opportunity WHERE HOUR_IN_DAY(CloseDate) = 9")
@corrected_to("SELECT Id FROM Opportunity WHERE HOUR_IN_DAY(CreatedDate) = 9")
def date_function_type(call: Call, at: Site) -> Finding | None:
    item = at.argument.field
    needs_time = call.name.lower() in NEED_TIME
    if item.type not in ("date", "datetime") or (needs_time and item.type != "datetime"):
        wanted = "datetime" if needs_time else "date or datetime"
        return Finding(f'{call.name}() needs a {wanted} field; "{item.name}" is {item.type}.', call.span)
    return None


@rule("DATE_FN_GROUP", "A date function in SELECT is in GROUP BY too.")
@broken_by("SELECT CALENDAR_YEAR(CloseDate) FROM Opportunity LIMIT 5")
@corrected_to("SELECT CALENDAR_YEAR(CloseDate) FROM Opportunity GROUP BY CALENDAR_YEAR(CloseDate)")
def date_function_group(expression: Expression, at: Site) -> Finding | None:
    if isinstance(expression, Call) and is_date_function(expression) and not at.is_grouped(expression):
        return Finding(f"{expression.name}() in SELECT must also be in GROUP BY.", expression.span)
    return None


@rule("FUNCTION_PLACE", "FORMAT() and convertCurrency() stand in SELECT alone; toLabel() not in ORDER BY.")
@broken_by("SELECT Id FROM Opportunity WHERE FORMAT(Amount) = '5'")
@corrected_to("SELECT FORMAT(Amount) FROM Opportunity WHERE Amount = 5")
def function_place(call: Call, at: Site) -> Finding | None:
    name = call.name.lower()
    if name in ("format", "convertcurrency") or (name == "tolabel" and at.clause == "ORDER BY"):
        return Finding(f"{call.name}() cannot be used in {at.clause}.", call.span)
    return None


@rule("AGGREGATE_NESTED", "An aggregate does not contain another one.")
@broken_by("SELECT MAX(SUM(Amount)) FROM Opportunity")
@corrected_to("SELECT SUM(Amount) FROM Opportunity")
def aggregate_nested(call: Call, _at: Site) -> Finding | None:
    if has_aggregate(call.arguments[0]):
        return Finding(f"{call.name}() cannot hold another aggregate.", call.span)
    return None


@rule("EXTERNAL_OBJECT", "An external object has no aggregate but COUNT().")
@broken_by("SELECT SUM(Total__c) FROM Invoice__x")
@corrected_to("SELECT COUNT() FROM Invoice__x")
def aggregate_external(call: Call, at: Site) -> Finding | None:
    if at.argument.owner is not None and at.argument.owner.name.endswith("__x"):
        message = f"{call.name.upper()}() is not supported on external objects; COUNT() alone is."
        return Finding(message, call.span)
    return None


@rule("AGGREGATE_TYPE", "An aggregate fits the type of its field: SUM() and AVG() take numbers.")
@broken_by("SELECT SUM(Name) FROM Account")
@corrected_to("SELECT SUM(AnnualRevenue) FROM Account")
def aggregate_type(call: Call, at: Site) -> Finding | None:
    item = at.argument.field
    if item.type in NOT_AGGREGATED or (call.name.lower() in ("sum", "avg") and item.type not in NUMBER_TYPES):
        return Finding(f'{call.name.upper()}() cannot be used on {item.type} field "{item.name}".', call.span)
    return None


@rule("FUNCTION_TYPE", "toLabel() takes a picklist, convertCurrency() a currency, and no function an address.")
@broken_by("SELECT toLabel(Name) FROM Account LIMIT 1")
@corrected_to("SELECT toLabel(Industry) FROM Account LIMIT 1")
def function_type(call: Call, at: Site) -> Finding | None:
    item = at.argument.field
    if (
        item.type in ("address", "location")
        or (is_call(call, "tolabel") and not _has_label(at.argument))
        or (is_call(call, "convertcurrency") and item.type != "currency")
    ):
        return Finding(f'{call.name}() cannot be used on {item.type} field "{item.name}".', call.span)
    return None


def _has_label(found: Resolved) -> bool:
    """Whether the values of a field are translated: picklists, names of record types and categories, histories."""
    item, owner = found.field, found.owner.name if found.owner is not None else ""
    if item.choices or item.type in LABELLED:
        return True
    is_history = owner.endswith("History") and item.name in HISTORY_FIELDS
    return (owner, item.name) == ("RecordType", "Name") or item.name in CATEGORY_FIELDS or is_history


@rule("DISTANCE_FORM", "DISTANCE() measures from a location or an address to GEOLOCATION(), in 'mi' or 'km'.")
@broken_by("SELECT Id FROM Account WHERE DISTANCE(Name, GEOLOCATION(53.5, 10), 'km') < 20")
@corrected_to("SELECT Id FROM Account WHERE DISTANCE(BillingAddress, GEOLOCATION(53.5, 10), 'km') < 20")
def distance_form(node: Distance, at: Site) -> Finding | None:
    is_formed = isinstance(node.point, Geolocation) and node.unit.lower() in ("mi", "km")
    if is_formed and at.argument.field.type in ("location", "address"):
        return None
    return Finding("DISTANCE() needs a location field first, then GEOLOCATION(), then 'mi' or 'km'.", node.span)


AGGREGATE = (aggregate_nested, aggregate_external, aggregate_type)
PLACES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(FUNCTIONS, ()),
    **dict.fromkeys(("fields", "geolocation"), (function_misplaced,)),
    "converttimezone": (convert_timezone,),
}
UNKNOWN = (function_unknown,)
ARGUMENTS: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(FUNCTIONS, (function_type,)),
    **dict.fromkeys(DATE_FUNCTIONS, (date_function_type,)),
    **dict.fromkeys(AGGREGATES, AGGREGATE),
    "grouping": (),
}
RESULTS = {**dict.fromkeys((*DATE_FUNCTIONS, *AGGREGATES - {"min", "max"}, "grouping"), NUMBER), "day_only": DATE}


def result_of(name: str, argument: Resolved) -> Resolved:
    """Return what a function gives for its argument."""
    return Resolved(TEXT_FIELD, argument.owner) if name == "format" else RESULTS.get(name, argument)


def with_name(found: Resolved, left: object) -> Resolved:
    """Give the result of a function the name of the function, for messages."""
    if found.field.name or isinstance(left, Path):
        return found
    name = f"{left.name}()" if isinstance(left, Call) else "DISTANCE()"
    return Resolved(_result_field(name, found.field.type), None)


@lru_cache(maxsize=128)
def _result_field(name: str, kind: str) -> Field:
    return Field(name, name, kind)
