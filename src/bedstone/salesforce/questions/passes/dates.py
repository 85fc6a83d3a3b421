"""Days and periods, and the date fields they belong to."""

import re

from bedstone.salesforce.graph.model import ObjectSchema
from bedstone.salesforce.graph.names import words_of
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import FilterClause, QueryDraft
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.questions.values import DATE_TYPES, date_literal, day_boundary, is_day
from bedstone.salesforce.synonyms import STOP_WORDS, singular

MAX_DATE_WORDS = 6
MAX_VERB_DISTANCE = 4  # words
MIN_STEM_LENGTH = 4
YEAR = re.compile(r"(19|20)\d\d")
ENDING = re.compile(r"(ed|ing|ies|s|y)$")
OPERATORS = {"before": "<", "after": ">", "since": ">=", "until": "<="}
# The fields that a verb before a date means.
DATE_WORDS = {
    "created": ("CreatedDate",), "opened": ("CreatedDate",), "added": ("CreatedDate",), "new": ("CreatedDate",),
    "modified": ("LastModifiedDate",), "updated": ("LastModifiedDate",), "changed": ("LastModifiedDate",),
    "closing": ("CloseDate", "EndDate"), "close": ("CloseDate",), "closed": ("CloseDate", "ClosedDate"),
    "due": ("ActivityDate", "DueDate"), "starting": ("StartDate",), "ending": ("EndDate",),
    "expiring": ("ExpirationDate", "EndDate"), "birthdays": ("Birthdate",), "birthday": ("Birthdate",),
    "won": ("CloseDate",), "lost": ("CloseDate",),
}  # fmt: skip
STATES = frozenset({"closed", "won", "lost", "new"})  # also values of a picklist, so they are not consumed
WORDS_NEAR_DATES = ("in", "the", *(DATE_WORDS.keys() - STATES))


def read_dates(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `created last month`, `closing before 2026-01-31`, `older than 30 days`, `in 2024`."""
    draft.filters += find_dates(question, schema, draft.object, 0, len(question))


def find_dates(
    question: Question, schema: SchemaContext, item: ObjectSchema, start: int, end: int
) -> list[FilterClause]:
    """Return the conditions on dates of an object in a stretch of words, and consume their words."""
    places = range(start, end)
    literals = [_literal_at(question, schema, item, place, end) for place in places]
    ages = [_age_at(question, item, place) or _year_at(question, schema, item, place) for place in places]
    return [clause for clause in (*literals, *ages) if clause is not None]


def _literal_at(
    question: Question, schema: SchemaContext, item: ObjectSchema, place: int, end: int
) -> FilterClause | None:
    found = _longest_literal(question, place, end) if question.is_free(place) else None
    name = _date_field(question, schema, item, place) if found is not None else None
    if found is None or name is None:
        return None
    literal, following = found
    operator = OPERATORS.get(question.folded_at(place - 1), "=")
    if operator != "=":
        question.consume(place - 1, place)
    if literal == "LAST_YEAR" and "the" in question.folded[max(0, place - 2) : place + 1]:
        literal = "LAST_N_DAYS:365"
    field = item.field(name)
    if is_day(literal) and field is not None and field.type == "datetime":
        if operator == "=":
            return None
        literal = day_boundary(literal, operator)
    question.consume(place, following)
    question.consume_near(place, *WORDS_NEAR_DATES)
    return FilterClause(item.name, name, operator, literal, "date", 0.95)


def _longest_literal(question: Question, place: int, end: int) -> tuple[str, int] | None:
    for stop in range(min(end, place + MAX_DATE_WORDS), place, -1):
        literal = date_literal(" ".join(question.folded[place:stop]))
        if literal is not None:
            return literal, stop
    return None


def _age_at(question: Question, item: ObjectSchema, place: int) -> FilterClause | None:
    """Read `older than 30 days`."""
    count = question.folded_at(place + 2)
    is_age = question.folded[place : place + 2] == ("older", "than") and question.is_free(place)
    if not is_age or not count.isdigit() or not question.is_period(place + 3) or item.field("CreatedDate") is None:
        return None
    unit = singular(question.folded[place + 3]).upper()
    question.consume(place, place + 4)
    return FilterClause(item.name, "CreatedDate", "<", f"LAST_N_{unit}S:{int(count)}", "date", 0.9)


def _year_at(question: Question, schema: SchemaContext, item: ObjectSchema, place: int) -> FilterClause | None:
    """Read `in 2024`."""
    year = question.folded_at(place + 1)
    if question.folded[place] != "in" or not YEAR.fullmatch(year) or not question.is_free(place):
        return None
    name = _date_field(question, schema, item, place)
    if name is None:
        return None
    question.consume(place, place + 2)
    return FilterClause(item.name, f"CALENDAR_YEAR({name})", "=", year, "date", 0.9)


def _date_field(question: Question, schema: SchemaContext, item: ObjectSchema, place: int) -> str | None:
    """Return the date that the verb before it means, or that is named like a word before it, or the usual one."""
    for word in reversed(question.folded[max(0, place - MAX_VERB_DISTANCE) : place]):
        for name in DATE_WORDS.get(word, ()):
            if item.field(name) is not None:
                return name
        stem = ENDING.sub("", word)
        if len(stem) < MIN_STEM_LENGTH or word in STOP_WORDS:
            continue
        dates = [entry.name for entry in item.fields if entry.type in DATE_TYPES]
        named = [name for name in dates if any(part.startswith(stem) for part in words_of(name))]
        if named and not schema.names.find(word):
            return min(named, key=len)
    usual = "CloseDate" if item.name == "Opportunity" else "CreatedDate"
    return usual if item.field(usual) is not None else None
