"""Suggestions for a half-typed query: their kinds, their words, and how they are ranked."""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from bedstone.salesforce.graph.model import NAME_FIELDS, Field, ObjectSchema, name_field
from bedstone.salesforce.soql.literals import COUNTED_DATE_LITERALS, PLAIN_DATE_LITERALS

Kind = Literal["object", "field", "parent", "children", "function", "value", "date", "keyword"]
DATES = frozenset({"date", "datetime"})
# Fields that every object has and few people select; they come last.
SYSTEM_FIELDS = frozenset(
    "isdeleted createddate createdbyid lastmodifieddate lastmodifiedbyid systemmodstamp lastactivitydate "  # noqa: SIM905
    "lastvieweddate lastreferenceddate masterrecordid photourl".split()
)
EXACT = 0
BEGINS = 1
WORD_START = re.compile(r"(?:^|_|(?<=[a-z0-9])(?=[A-Z]))")


class Suggestion(NamedTuple):
    """A way to go on: what is inserted, what is shown, and how far the caret goes back afterwards."""

    insert: str
    name: str
    detail: str
    kind: Kind
    label: str = ""
    back: int = 0


def rank(typed: str, candidates: Iterable[Suggestion]) -> list[Suggestion]:
    """Return the candidates that match what is typed: of those that begin with it, the shortest first."""
    if not typed:
        return list(candidates)
    wanted = typed.lower()
    matches = ((score, item) for item in candidates if (score := _score(wanted, item)) is not None)
    return [
        item for _, item in sorted(matches, key=lambda match: (match[0], len(match[1].name) * (match[0] == BEGINS)))
    ]


def _score(wanted: str, item: Suggestion) -> int | None:
    """Return how well a candidate matches, the lower the better; None for not at all."""
    name = item.name.lower()
    if name.startswith(wanted):
        return EXACT if name == wanted else BEGINS
    if item.kind == "keyword":
        return None
    if wanted in name:
        starts = (found.end() for found in WORD_START.finditer(item.name))
        return 2 if any(name.startswith(wanted, start) for start in starts) else 3
    label = item.label.lower()
    if wanted in label:
        return 4 if label.startswith(wanted) else 5
    return None


def order_fields(item: ObjectSchema) -> list[Field]:
    """Return the fields of an object: its id and name first, what every object has last."""
    return sorted(
        item.fields, key=lambda field: (field.name.lower() in SYSTEM_FIELDS, field.name != "Id", not field.is_name)
    )


def suggest_field(item: Field) -> Suggestion:
    """Return the suggestion for a field."""
    target = f" to {item.reference_to[0]}" if len(item.reference_to) == 1 else ""
    return Suggestion(item.name, item.name, f"{item.type}{target}", "field", item.label)


def suggest_name_fields() -> Iterator[Suggestion]:
    """Yield the fields that every target of a polymorphic relationship has."""
    return (suggest_field(item) for name in NAME_FIELDS if (item := name_field(name)) is not None)


def suggest_parent(item: Field) -> Suggestion:
    """Return the suggestion for the relationship of a lookup; a dot and a field follow."""
    target = item.reference_to[0] if len(item.reference_to) == 1 else "several objects"
    return Suggestion(f"{item.relationship}.", f"{item.relationship}", f"to {target}", "parent", item.label)


def suggest_functions(names: Iterable[str]) -> Iterator[Suggestion]:
    """Yield functions; the caret goes between the parentheses."""
    return (Suggestion(f"{name}()", f"{name}()", "function", "function", back=1) for name in names)


def suggest_keywords(*words: str) -> Iterator[Suggestion]:
    """Yield keywords, each with the space that follows it."""
    return (Suggestion(f"{word} ", word, "", "keyword") for word in words)


def suggest_plain_values(field: Field) -> Iterator[Suggestion]:
    """Yield the values of a field that are written without quotes."""
    if field.type == "boolean":
        yield from (Suggestion(word, word, "value", "value") for word in ("true", "false"))
    if field.type in DATES:
        for name in sorted(PLAIN_DATE_LITERALS):
            yield Suggestion(name, name, "date", "date")
        for name in sorted(COUNTED_DATE_LITERALS):
            yield Suggestion(f"{name}:", f"{name}:n", "date, with a number", "date")
    if field.nillable:
        yield Suggestion("null", "null", "no value", "value")
