"""Rules about literals, by the type of the field they are compared with."""

import re
from datetime import date, time

from bedstone.salesforce.graph.model import ID_TYPES, NUMBER_TYPES, TEXT_TYPES, Field
from bedstone.salesforce.graph.names import join_names, suggest
from bedstone.salesforce.ids import long_id
from bedstone.salesforce.soql.literals import COUNTED_DATE_LITERALS, DATE_LITERALS
from bedstone.salesforce.soql.quoting import soql_string
from bedstone.salesforce.soql.tree import Boolean, DateLiteral, Moment, Money, Number, Text, Value
from bedstone.salesforce.validation.findings import Finding
from bedstone.salesforce.validation.rule import Rule, Site, broken_by, corrected_to, rule

MAX_TEXT_CHARACTERS = 4_000
MAX_UNITS = 99_999  # of a date literal such as LAST_N_DAYS:n
MIN_YEAR = 1700
MAX_YEAR = 4000
PLACEHOLDER = "XXXXXX"  # in ids that a model made up: an org accepts them, and finds nothing
PICKLISTS = frozenset({"picklist", "combobox", "multipicklist"})
ANY_TEXT = (TEXT_TYPES | {"anyType", "base64"}) - PICKLISTS
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)", re.IGNORECASE)
TYPE_NAMES = {
    **dict.fromkeys(NUMBER_TYPES, "a number"),
    "boolean": "true or false",
    "date": "a date",
    "datetime": "a datetime",
    "time": "a time",
}


@rule("LITERAL_UNQUOTED", "A value that is compared with text stands in single quotes.")
@broken_by("SELECT Id FROM Account WHERE Name = Acme")
@corrected_to("SELECT Id FROM Account WHERE Name = 'Acme'")
def literal_unquoted(value: Value, at: Site) -> Finding | None:
    item = at.left.field
    if item.type not in TEXT_TYPES or (isinstance(value, Text) and value.span[0] not in at.unquoted):
        return None
    quoted = soql_string(_source_of(value))
    return Finding(f'"{item.name}" is text: put {quoted} in quotes.', value.span, quoted)


@rule("STRING_LENGTH", "A text has at most 4,000 characters.", stops=False)
@broken_by("SELECT Id FROM Account WHERE Name = '" + "x" * 5_000 + "'")
@corrected_to("SELECT Id FROM Account WHERE Name LIKE 'xxx%'")
def string_length(value: Text, _at: Site) -> Finding | None:
    if len(value.value) <= MAX_TEXT_CHARACTERS:
        return None
    message = f"A string has {len(value.value):,} characters; {MAX_TEXT_CHARACTERS:,} is the maximum."
    return Finding(message, value.span)


@rule("ID_INVALID", "An id has 15 or 18 characters, and its checksum is right.")
@broken_by("SELECT Id FROM Account WHERE Id = '001XXXXXXXXXXXX'")
@corrected_to("SELECT Id FROM Account WHERE Id = '001000000000001AAA'")
def id_invalid(value: Text, _at: Site) -> Finding | None:
    if value.value and (long_id(value.value) is None or PLACEHOLDER in value.value.upper()):
        return Finding(f'"{value.value}" is not a valid Salesforce id.', value.span)
    return None


@rule("ID_WRONG_OBJECT", "The prefix of an id belongs to an object that the field points to.", severity="warning")
@broken_by("SELECT Id FROM Account WHERE OwnerId = '001000000000001AAA' LIMIT 1")
@corrected_to("SELECT Id FROM Account WHERE OwnerId = '005000000000001AAA' LIMIT 1")
def id_wrong_object(value: Text, at: Site) -> Finding | None:
    item, owner = at.left.field, at.left.owner
    found = at.scope.graph.by_prefix.get((long_id(value.value) or "")[:3])
    expected = item.reference_to or ((owner.name,) if owner else ())
    if found is None or owner is None or found.name in expected:
        return None
    points = f'"{item.name}" points to {join_names(expected, 3)}'
    return Finding(f'Id "{value.value}" has the prefix of {found.name}, but {points}.', value.span)


@rule(
    "PICKLIST_VALUE",
    "A value is an active value of its picklist; an org runs any other, also if the picklist is restricted.",
    severity="warning",
)
@broken_by("SELECT Id FROM Account WHERE Rating = 'Hott' LIMIT 1")
@corrected_to("SELECT Id FROM Account WHERE Rating = 'Hot' LIMIT 1")
def picklist_value(value: Text, at: Site) -> Finding | None:
    item, written = at.left.field, value.value
    if not item.choices or not written:
        return None
    folded = written.casefold()
    known = next((choice for choice in item.choices if choice.value.casefold() == folded), None)
    if known is not None and known.is_active:
        return None
    found = suggest(written, {choice.value: choice.label for choice in item.choices if choice.is_active})
    name = f"{at.left.owner.name}.{item.name}" if at.left.owner else item.name
    state = "is an inactive value" if known is not None else "is not a value"
    meant = f' Did you mean "{found.names[0]}"?' if found else ""
    message = f'"{written}" {state} of {name}.{meant} Values: {join_names(item.values)}.'
    return Finding(message, value.span)


@rule("LITERAL_QUOTED", "Numbers, booleans, dates and date literals stand without quotes.")
@broken_by("SELECT Id FROM Opportunity WHERE Amount > '5000'")
@corrected_to("SELECT Id FROM Opportunity WHERE Amount > 5000")
def literal_quoted(value: Text, at: Site) -> Finding | None:
    item = at.left.field
    bare = _without_quotes(item.type, value.value)
    if bare is None:
        return None
    return Finding(f'"{item.name}" is {item.type}: write {bare} without quotes.', value.span, bare)


@rule("DATE_LITERAL_MISUSE", "A date literal is compared with a date or datetime field.")
@broken_by("SELECT Id FROM Account WHERE Name = TODAY")
@corrected_to("SELECT Id FROM Account WHERE CreatedDate = TODAY")
def date_literal_misuse(value: DateLiteral, at: Site) -> Finding | None:
    if value.name in DATE_LITERALS and at.left.field.type not in ("date", "datetime"):
        return Finding(f"{value.name} only fits date and datetime fields.", value.span)
    return None


@rule("DATE_LITERAL_N", "Date literals with N take a number, and no others.")
@broken_by("SELECT Id FROM Account WHERE CreatedDate = LAST_N_DAYS")
@corrected_to("SELECT Id FROM Account WHERE CreatedDate = LAST_N_DAYS:30")
def date_literal_count(value: DateLiteral, _at: Site) -> Finding | None:
    if value.name in COUNTED_DATE_LITERALS:
        message = f'{value.name} needs ":n" with n of 0 to {MAX_UNITS:,}.'
        return Finding(message, value.span) if value.count is None or not 0 <= value.count <= MAX_UNITS else None
    if value.name in DATE_LITERALS and value.count is not None:
        return Finding(f"{value.name} takes no number.", value.span)
    return None


@rule("DATE_RANGE", "A date lies between 1700 and 4000.")
@broken_by("SELECT Id FROM Opportunity WHERE CloseDate < 9999-01-01")
@corrected_to("SELECT Id FROM Opportunity WHERE CloseDate < 3999-01-01")
def date_range(value: Moment, _at: Site) -> Finding | None:
    if value.kind != "time" and not MIN_YEAR <= int(value.written[:4]) <= MAX_YEAR:
        return Finding(f"Date {value.written} is outside {MIN_YEAR} to {MAX_YEAR}.", value.span)
    return None


@rule("LITERAL_TYPE", "A date exists in the calendar.")
@broken_by("SELECT Id FROM Opportunity WHERE CloseDate = 2024-02-30")
@corrected_to("SELECT Id FROM Opportunity WHERE CloseDate = 2024-02-29")
def date_exists(value: Moment, _at: Site) -> Finding | None:
    try:
        if value.kind != "time":
            date.fromisoformat(value.written[:10])
        if value.kind == "datetime":
            time.fromisoformat(value.written[11:19])
    except ValueError:
        return Finding(f'"{value.written}" is no day of any calendar.', value.span)  # prose: ok - wire
    return None


@rule("LITERAL_TYPE", "A datetime field is compared with a datetime, a date field with a date.")
@broken_by("SELECT Id FROM Account WHERE CreatedDate >= 2024-01-01")
@corrected_to("SELECT Id FROM Account WHERE CreatedDate >= 2024-01-01T00:00:00Z")
def date_or_datetime(value: Moment, at: Site) -> Finding | None:
    item, written = at.left.field, value.written
    if item.type == "datetime" and value.kind == "date":
        moment = f"{written}T00:00:00Z"
        message = f'"{written}" is not a datetime value for "{item.name}": write a time too, such as {moment}.'
        return Finding(message, value.span, moment if at.operator in (">=", "<") else None)
    if item.type == "date" and value.kind == "datetime":
        day = written[:10]
        message = f'"{written}" is not a date value for "{item.name}": write a day, such as {day}.'
        return Finding(message, value.span, day if written[11:19] == "00:00:00" else None)
    return None


@rule("LITERAL_TYPE", "A literal fits the type of the field.")
@broken_by("SELECT Id FROM Opportunity WHERE IsWon = 1")
@corrected_to("SELECT Id FROM Opportunity WHERE IsWon = true")
def literal_type(value: Value, at: Site) -> Finding | None:
    item = at.left.field
    if _fits(value, item.type):
        return None
    wanted = TYPE_NAMES.get(item.type, f"a {item.type} value")
    return Finding(f'"{_source_of(value)}" is not {wanted}, which "{item.name}" needs.', value.span)


TEXT = (literal_unquoted, string_length)
ID = (id_invalid, id_wrong_object)
QUOTED = (literal_quoted, literal_type)
TYPED = (literal_unquoted, literal_type)
BY_TYPE: dict[type, tuple[Rule, ...]] = {
    DateLiteral: (date_literal_misuse, date_literal_count),
    Number: TYPED,
    Money: TYPED,
    Boolean: TYPED,
    Moment: (date_range, date_exists, date_or_datetime, *TYPED),
}


def text_rules(item: Field) -> tuple[Rule, ...]:
    """Return the rules about a text in quotes for a field that is not a picklist."""
    if item.type in ID_TYPES:
        return ID
    return () if item.type in ANY_TEXT else QUOTED


def picklist_parts(value: Text, item: Field) -> list[Text]:
    """Return the values that a text names: several for a multi-select picklist."""
    if item.type != "multipicklist":
        return [value]
    return [Text(part.strip(), value.span) for part in value.value.split(";")]


def _fits(value: Value, kind: str) -> bool:
    if isinstance(value, Moment):
        return kind == value.kind
    return kind == "boolean" if isinstance(value, Boolean) else kind in NUMBER_TYPES and not isinstance(value, Text)


def _source_of(value: Value) -> str:
    match value:
        case Number(written) | Moment(written=written) | Text(written):
            return written
        case Money(currency, amount):
            return f"{currency}{amount}"
        case _:
            return str(getattr(value, "value", "")).lower()


def _without_quotes(kind: str, text: str) -> str | None:
    """Return what was meant by a value in quotes."""
    bare = text.strip()
    name, _, count = bare.upper().partition(":")
    is_literal = name in DATE_LITERALS and (name in COUNTED_DATE_LITERALS) == count.isdigit()
    if kind in NUMBER_TYPES:
        return bare if NUMBER.fullmatch(bare) else None
    if kind == "boolean":
        return bare.lower() if bare.lower() in ("true", "false") else None
    if kind in ("date", "datetime") and is_literal:
        return bare.upper()
    if kind == "date":
        return bare[:10] if DAY.fullmatch(bare) or MOMENT.fullmatch(bare) else None
    if kind == "datetime" and DAY.fullmatch(bare):
        return f"{bare}T00:00:00Z"
    return bare if kind == "datetime" and MOMENT.fullmatch(bare) else None
