"""Literals held against the type of the field they are compared with."""

import re
from datetime import date, time

from bedstone.salesforce.graph.model import ID_TYPES, NUMBER_TYPES, TEXT_TYPES, Field, SchemaGraph
from bedstone.salesforce.graph.names import listed, suggest
from bedstone.salesforce.ids import long_id
from bedstone.salesforce.soql.literals import COUNTED_DATE_LITERALS, DATE_LITERALS
from bedstone.salesforce.soql.quoting import soql_string
from bedstone.salesforce.soql.tree import (
    Bind,
    Boolean,
    DateLiteral,
    Moment,
    Money,
    Null,
    Number,
    Text,
    Value,
)
from bedstone.salesforce.validation.findings import Findings
from bedstone.salesforce.validation.scope import Resolved

LONGEST_TEXT, MOST_UNITS = 4_000, 99_999
FIRST_YEAR, LAST_YEAR = 1700, 4000
PLACEHOLDER = "XXXXXX"  # what models write for an id they do not know: an org takes it, and finds nothing
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)", re.IGNORECASE)
NAMES = {
    "int": "a number",
    "double": "a number",
    "currency": "a number",
    "percent": "a number",
    "long": "a number",
    "boolean": "true or false",
    "date": "a date",
    "datetime": "a datetime",
    "time": "a time",
}


class Values:
    """Checks literals of one query."""

    def __init__(self, findings: Findings, graph: SchemaGraph, unquoted: set[int]) -> None:
        self._findings = findings
        self._graph = graph
        self._unquoted = unquoted  # where words stand that lack their quotes

    def check(self, resolved: Resolved, value: Value, clause: str, operator: str = "=") -> None:
        """One literal against one field."""
        field = resolved.field
        match value:
            case Null() | Bind():
                return
            case DateLiteral():
                self._date_literal(field, value, clause)
            case Text():
                self._text(resolved, value, clause)
            case Number():
                if field.type not in NUMBER_TYPES:
                    self._wrong_type(field, value, value.written, clause)
            case Money():
                if field.type not in NUMBER_TYPES:
                    self._wrong_type(field, value, f"{value.currency}{value.amount}", clause)
            case Boolean():
                if field.type != "boolean":
                    self._wrong_type(field, value, str(value.value).lower(), clause)
            case Moment():
                self._moment(field, value, clause, operator)

    def picklist(self, resolved: Resolved, value: str, span: tuple[int, int], clause: str) -> None:
        """A value a picklist has, or one it does not."""
        field = resolved.field
        if not field.choices or not value:
            return
        folded = value.casefold()
        known = next((choice for choice in field.choices if choice.value.casefold() == folded), None)
        if known is not None and known.is_active:
            return
        name = f"{resolved.owner.name}.{field.name}" if resolved.owner else field.name
        found = suggest(value, {choice.value: choice.label for choice in field.choices if choice.is_active})
        state = "is inactive" if known is not None else "is not a value"
        meant = f' Did you mean "{found.names[0]}"?' if found else ""
        message = f'"{value}" {state} of {name}.{meant} Values: {listed(field.values)}.'
        if known is not None:
            message = f'"{value}" is an inactive value of {name}.{meant} Values: {listed(field.values)}.'
        if field.is_restricted and known is None:
            corrected = None if found.certain is None else soql_string(found.certain)
            self._findings.error("PICKLIST_VALUE", message, clause, span, corrected)
        else:
            self._findings.warning("PICKLIST_VALUE", message, clause, span)

    def _text(self, resolved: Resolved, value: Text, clause: str) -> None:
        field = resolved.field
        if value.span[0] in self._unquoted and field.type in TEXT_TYPES:
            message = f'"{field.name}" is text: put {soql_string(value.value)} in quotes.'
            self._findings.error("LITERAL_UNQUOTED", message, clause, value.span, soql_string(value.value))
            return
        if len(value.value) > LONGEST_TEXT:
            message = f"A string has {len(value.value):,} characters; {LONGEST_TEXT:,} is the maximum."
            self._findings.error("STRING_LENGTH", message, clause, value.span)
        if field.type in ID_TYPES:
            self._id(resolved, value, clause)
        elif field.type in ("picklist", "combobox"):
            self.picklist(resolved, value.value, value.span, clause)
        elif field.type == "multipicklist":
            for part in value.value.split(";"):
                self.picklist(resolved, part.strip(), value.span, clause)
        elif field.type not in TEXT_TYPES | {"anyType", "base64"}:
            self._quoted_value(field, value, clause)

    def _quoted_value(self, field: Field, value: Text, clause: str) -> None:
        bare = _bare(field.type, value.value)
        if bare is not None:
            message = f'"{field.name}" is {field.type}: write {bare} without quotes.'
            self._findings.error("LITERAL_QUOTED", message, clause, value.span, bare)
            return
        self._told_type(field, value.value, value, clause)

    def _id(self, resolved: Resolved, value: Text, clause: str) -> None:
        field = resolved.field
        if not value.value:
            return
        found = long_id(value.value)
        if found is None or PLACEHOLDER in value.value.upper():
            self._findings.error("ID_INVALID", f'"{value.value}" is not a valid Salesforce id.', clause, value.span)
            return
        points_to = self._graph.by_prefix.get(found[:3])
        own = (resolved.owner.name,) if resolved.owner else ()
        expected = field.reference_to or own
        if points_to is not None and expected and points_to.name not in expected and resolved.owner is not None:
            message = (
                f'Id "{value.value}" has the prefix of {points_to.name}, but "{field.name}" points to '
                f"{listed(expected, 3)}."
            )
            self._findings.warning("ID_WRONG_OBJECT", message, clause, value.span)

    def _date_literal(self, field: Field, value: DateLiteral, clause: str) -> None:
        if value.name not in DATE_LITERALS:
            return  # told when it was read
        if field.type not in ("date", "datetime"):
            message = f"{value.name} only fits date and datetime fields."
            self._findings.error("DATE_LITERAL_MISUSE", message, clause, value.span)
        elif value.name in COUNTED_DATE_LITERALS and not 1 <= (value.count or 0) <= MOST_UNITS:
            message = f'{value.name} needs ":n" with n of 1 to {MOST_UNITS:,}.'
            self._findings.error("DATE_LITERAL_N", message, clause, value.span)
        elif value.name not in COUNTED_DATE_LITERALS and value.count is not None:
            self._findings.error("DATE_LITERAL_N", f"{value.name} takes no number.", clause, value.span)

    def _moment(self, field: Field, value: Moment, clause: str, operator: str) -> None:
        if value.kind in ("date", "datetime"):
            year = int(value.written[:4])
            if not FIRST_YEAR <= year <= LAST_YEAR:
                message = f"Date {value.written} is outside {FIRST_YEAR} to {LAST_YEAR}."
                self._findings.error("DATE_RANGE", message, clause, value.span)
                return
            try:
                date.fromisoformat(value.written[:10])
                if value.kind == "datetime":
                    time.fromisoformat(value.written[11:19])
            except ValueError:
                message = f'"{value.written}" is no day of any calendar.'
                self._findings.error("LITERAL_TYPE", message, clause, value.span)
                return
        if field.type == value.kind:
            return
        if field.type == "datetime" and value.kind == "date":
            meant = f"{value.written}T00:00:00Z"
            message = (
                f'"{value.written}" is not a datetime value for "{field.name}": write a time too, such as {meant}.'
            )
            corrected = meant if operator in (">=", "<") else None  # a day is no moment
            self._findings.error("LITERAL_TYPE", message, clause, value.span, corrected)
        elif field.type == "date" and value.kind == "datetime":
            meant = value.written[:10]
            message = f'"{value.written}" is not a date value for "{field.name}": write a day, such as {meant}.'
            corrected = meant if value.written[11:19] == "00:00:00" else None
            self._findings.error("LITERAL_TYPE", message, clause, value.span, corrected)
        else:
            self._wrong_type(field, value, value.written, clause)

    def _wrong_type(self, field: Field, value: Value, written: str, clause: str) -> None:
        if field.type in TEXT_TYPES:
            message = f'"{field.name}" is text: put {soql_string(written)} in quotes.'
            self._findings.error("LITERAL_UNQUOTED", message, clause, value.span, soql_string(written))
            return
        self._told_type(field, written, value, clause)

    def _told_type(self, field: Field, written: str, value: Value, clause: str) -> None:
        wanted = NAMES.get(field.type, f"a {field.type} value")
        message = f'"{written}" is not {wanted}, which "{field.name}" needs.'
        self._findings.error("LITERAL_TYPE", message, clause, value.span)


def _bare(kind: str, text: str) -> str | None:  # noqa: PLR0911 - one for each kind
    """What was meant by a value in quotes."""
    stripped = text.strip()
    if kind in NUMBER_TYPES and NUMBER.fullmatch(stripped):
        return stripped
    if kind == "boolean" and stripped.lower() in ("true", "false"):
        return stripped.lower()
    name, _, count = stripped.upper().partition(":")
    if kind in ("date", "datetime") and name in DATE_LITERALS and (name in COUNTED_DATE_LITERALS) == count.isdigit():
        return stripped.upper()
    if kind == "date" and DAY.fullmatch(stripped):
        return stripped
    if kind == "date" and MOMENT.fullmatch(stripped):
        return stripped[:10]
    if kind == "datetime" and MOMENT.fullmatch(stripped):
        return stripped
    if kind == "datetime" and DAY.fullmatch(stripped):
        return f"{stripped}T00:00:00Z"
    return None
