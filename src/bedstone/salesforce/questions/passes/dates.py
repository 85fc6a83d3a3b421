"""Days and periods, and the date fields they belong to."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from bedstone.salesforce.graph.model import Field, ObjectSchema
from bedstone.salesforce.graph.names import words_of
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import FilterClause, QueryDraft
from bedstone.salesforce.questions.operands import SIZE_OPERATORS, operator_at
from bedstone.salesforce.questions.periods import Period, parse_period
from bedstone.salesforce.questions.question import NUMBERS, Question
from bedstone.salesforce.questions.values import DATE_TYPES, main_date
from bedstone.salesforce.synonyms import STOP_WORDS, singular

MAX_DATE_WORDS = 7
MAX_VERB_DISTANCE = 4  # words
MIN_STEM_LENGTH = 4
ENDING = re.compile(r"(ed|ing|ies|s|y)$")
# The first match wins.
OPERATORS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("on", "or", "after"), ">="), (("on", "or", "before"), "<="), (("prior", "to"), "<"), (("later", "than"), ">"),
    (("earlier", "than"), "<"), (("up", "to"), "<="), (("before",), "<"), (("after",), ">"), (("since",), ">="),
    (("until",), "<="), (("till",), "<="), (("through",), "<="),
)  # fmt: skip
BEFORE_PERIODS = frozenset("in on within during over of from for at throughout for".split())  # noqa: SIM905
BEFORE_YEARS = frozenset("in of from during since before after until year".split())  # noqa: SIM905
# The fields that a verb before a date means.
DATE_WORDS = {
    "created": ("CreatedDate",), "opened": ("CreatedDate",), "added": ("CreatedDate",), "new": ("CreatedDate",),
    "modified": ("LastModifiedDate",), "updated": ("LastModifiedDate",), "changed": ("LastModifiedDate",),
    "edited": ("LastModifiedDate",), "entered": ("CreatedDate",), "registered": ("CreatedDate",),
    "closing": ("CloseDate", "EndDate"), "close": ("CloseDate",), "closes": ("CloseDate",),
    "closed": ("CloseDate", "ClosedDate"), "due": ("ActivityDate", "DueDate"), "starting": ("StartDate",),
    "started": ("StartDate",), "starts": ("StartDate",), "start": ("StartDate",), "ending": ("EndDate",),
    "ended": ("EndDate",), "ends": ("EndDate",), "end": ("EndDate",), "expiring": ("ExpirationDate", "EndDate"),
    "expire": ("ExpirationDate", "EndDate"), "expires": ("ExpirationDate", "EndDate"),
    "expired": ("ExpirationDate", "EndDate"), "birthdays": ("Birthdate",), "birthday": ("Birthdate",),
    "born": ("Birthdate",), "won": ("CloseDate",), "lost": ("CloseDate",), "converted": ("ConvertedDate",),
    "logged": ("LastLoginDate",), "login": ("LastLoginDate",), "logins": ("LastLoginDate",),
    "viewed": ("LastViewedDate",), "scheduled": ("ActivityDate", "StartDate"), "placed": ("EffectiveDate",),
}  # fmt: skip
# Also values of a picklist or a state, so they are not consumed.
STATES = frozenset({"closed", "won", "lost", "new", "converted", "expired"})
PAST_AND_FUTURE = {"in the past": "<", "in the future": ">"}
AGES = {"older": "<", "newer": ">", "more": "<", "over": "<", "less": ">", "fewer": ">"}


class DateField(NamedTuple):
    """The field that a date belongs to, and the words that say so."""

    field: Field
    places: Sequence[int] = ()


def read_dates(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `created last month`, `closing before 2026-01-31`, `older than 30 days`, `in March 2024`."""
    draft.filters += find_dates(question, schema, draft.object, 0, len(question))


def find_dates(
    question: Question, schema: SchemaContext, item: ObjectSchema, start: int, end: int
) -> list[FilterClause]:
    """Return the conditions on dates of an object in a stretch of words, and consume their words."""
    clauses: list[FilterClause] = []
    for place in range(start, end):
        if question.is_free(place):
            clauses += (
                _never_at(question, item, place)
                or _age_at(question, schema, item, place)
                or _range_at(question, schema, item, place)
                or _comparison_at(question, schema, item, place, end)
            )
    return clauses


def _never_at(question: Question, item: ObjectSchema, place: int) -> list[FilterClause]:
    """Read `never logged in`."""
    names = DATE_WORDS.get(question.folded_at(place + 1), ()) if question.folded[place] == "never" else ()
    field = next((found for name in names if (found := item.field(name)) is not None), None)
    if field is None:
        return []
    question.consume(place, place + 2)
    return [FilterClause(item.name, field.name, "=", "null", "phrase", 0.9, place)]


def _age_at(question: Question, schema: SchemaContext, item: ObjectSchema, place: int) -> list[FilterClause]:
    """Read `older than 30 days`, `more than two weeks ago`."""
    word, at = question.folded[place], place + 1
    at += question.folded_at(at) == "than"
    count = 1 if question.folded_at(at) in ("a", "an") else question.number_at(at)
    if word not in AGES or count is None or not question.is_period(at + 1):
        return []
    unit = singular(question.folded[at + 1]).upper()
    is_age, has_ago = word in ("older", "newer"), question.folded_at(at + 2) == "ago"
    found = _date_field(question, schema, item, place)
    field = item.field("CreatedDate") if is_age and not has_ago else found.field if found is not None else None
    if field is None or not (is_age or has_ago):
        return []
    literal = f"N_{unit}S_AGO:{count}" if has_ago or AGES[word] == ">" else f"LAST_N_{unit}S:{count}"
    question.consume(place, at + 2 + has_ago)
    question.consumed.update(found.places if found is not None and has_ago else ())
    return [FilterClause(item.name, field.name, AGES[word], literal, "date", 0.9, place)]


def _range_at(question: Question, schema: SchemaContext, item: ObjectSchema, place: int) -> list[FilterClause]:
    """Read `between January 1 2024 and March 31 2024`, `from 2024-01-01 to 2024-03-31`."""
    joint = {"between": "and", "from": "to"}.get(question.folded[place])
    first = _period_at(question, place + 1, len(question), is_year_enough=True) if joint else None
    is_range = first is not None and question.folded_at(first[1]) == joint
    last = _period_at(question, first[1] + 1, len(question), is_year_enough=True) if first and is_range else None
    found = _date_field(question, schema, item, place) if last is not None else None
    if first is None or last is None or found is None:
        return []
    _consume(question, found, place, last[1])
    conditions = [*first[0].conditions(found.field, ">="), *last[0].conditions(found.field, "<=")]
    return [FilterClause(item.name, *parts, "date", 0.95, place) for parts in conditions]


def _comparison_at(
    question: Question, schema: SchemaContext, item: ObjectSchema, place: int, end: int
) -> list[FilterClause]:
    """Read `before March 2024`, `> 2024-01-01`, `in 2024`, `last week`."""
    operator, at = _operator_at(question, place)
    before = question.folded_at(at - 1)
    is_year_enough = before in BEFORE_YEARS
    if operator == "=" and question.folded[place] in BEFORE_PERIODS and not question.is_period(place):
        at = place + 1
        is_year_enough = is_year_enough or question.folded[place] in BEFORE_YEARS
    period = _period_at(question, at, end, is_year_enough=is_year_enough)
    if (relative := PAST_AND_FUTURE.get(" ".join(question.folded[place : place + 3]))) is not None:
        operator, period = relative, (Period("TODAY"), place + 3)
    found = _date_field(question, schema, item, place) if period is not None else None
    found = _future_field(found, period[0], item) if found is not None and period is not None else None
    if period is None or found is None:
        return []
    if found.places and question.negation_before(min(found.places)) is not None:
        operator = _opposite(operator, period[0])
        if operator == "!=" and not period[0].literal:  # SOQL has no way to say: outside these days
            return []
        question.take_negation(min(found.places))
    _consume(question, found, place, period[1])
    return [
        FilterClause(item.name, *parts, "date", 0.95, place) for parts in period[0].conditions(found.field, operator)
    ]


def _opposite(operator: str, period: Period) -> str:
    """Return the operator for `not modified in the last 90 days`: up to today, so before it is the opposite."""
    if operator == "=" and period.literal.startswith("LAST_N_"):
        return "<"
    return {">=": "<", ">": "<=", "<": ">=", "<=": ">"}.get(operator, "!=")


def _operator_at(question: Question, place: int) -> tuple[str, int]:
    for words, operator in OPERATORS:
        if question.folded[place : place + len(words)] == words:
            return operator, place + len(words)
    compared = operator_at(question, place) if question.folded[place] != "over" else None  # over the next year
    if compared is not None and compared[0] in (*SIZE_OPERATORS, "="):
        return compared
    return "=", place


def _period_at(question: Question, place: int, end: int, *, is_year_enough: bool) -> tuple[Period, int] | None:
    for stop in range(min(end, place + MAX_DATE_WORDS), place, -1):
        if not question.consumed.isdisjoint(range(place, stop)):
            continue
        words = (str(NUMBERS.get(word, word)) for word in question.folded[place:stop])
        period = parse_period(" ".join(words), is_year_enough=is_year_enough)
        if period is not None:
            return period, stop
    return None


def _consume(question: Question, found: DateField, place: int, end: int) -> None:
    question.consume(place, end)
    question.consumed.update(found.places)


def _date_field(question: Question, schema: SchemaContext, item: ObjectSchema, place: int) -> DateField | None:
    """Return the date that is named before a place, or that the verb there means, or the usual one."""
    start = max(0, place - MAX_VERB_DISTANCE)
    for at in range(start, place):
        named = schema.fields.at(question, item, at)
        if named is not None and not named.prefix and named.field.type in DATE_TYPES and named.end <= place:
            return DateField(named.field, range(named.start, named.end))
    for at in range(place - 1, start - 1, -1):
        field = _meant_by(question.folded[at], schema, item)
        if field is not None:
            is_state = question.folded[at] in STATES
            return DateField(field, () if is_state else (at, *_particle(question, at)))
    usual = main_date(item)
    is_other_verb = question.folded_at(place - 1).endswith("ed")  # escalated yesterday: no field has that date
    return DateField(usual) if usual is not None and not is_other_verb else None


def _future_field(found: DateField, period: Period, item: ObjectSchema) -> DateField | None:
    """Return the field for a period to come: records are not created then, so another date is meant if there is one."""
    is_future = period.literal.startswith(("NEXT_", "TOMORROW"))
    if not is_future or found.field.name != "CreatedDate" or found.places:
        return found
    others = [entry for entry in item.fields if entry.type in DATE_TYPES and entry.is_custom]
    return DateField(others[0]) if len(others) == 1 else None


def _particle(question: Question, at: int) -> list[int]:
    """Return the place of `in` in `logged in`."""
    return [at + 1] if question.folded[at] == "logged" and question.folded_at(at + 1) == "in" else []


def _meant_by(word: str, schema: SchemaContext, item: ObjectSchema) -> Field | None:
    """Return the date field that a verb means: by the table, or by its stem."""
    for name in DATE_WORDS.get(word, ()):
        if (field := item.field(name)) is not None:
            return field
    stem = ENDING.sub("", word)
    if len(stem) < MIN_STEM_LENGTH or word in STOP_WORDS or schema.names.find(word):
        return None
    dates = [entry for entry in item.fields if entry.type in DATE_TYPES]
    named = [entry for entry in dates if any(part.startswith(stem) for part in words_of(entry.name))]
    return min(named, key=lambda entry: len(entry.name), default=None)
