"""Words that are values of picklists."""

from dataclasses import replace

from bedstone.salesforce.graph.model import ObjectSchema
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import FilterClause, QueryDraft
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.questions.values import choice_condition
from bedstone.salesforce.synonyms import STOP_WORDS

MAX_VALUE_WORDS = 4
MIN_VALUE_LENGTH = 3  # characters of a single word
MIN_CONFIDENCE = 0.75
WORDS_NEAR_VALUES = ("industry", "stage", "status", "priority", "type", "rating")


def read_picklist_values(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `closed won opportunities`, `open cases`, `not high priority`."""
    draft.filters += find_picklist_values(question, schema, draft.object, 0, len(question))


def find_picklist_values(
    question: Question, schema: SchemaContext, item: ObjectSchema, start: int, end: int
) -> list[FilterClause]:
    """Return the values of an object's picklists in a stretch of words, and consume their words."""
    clauses = []
    place = max(0, start)
    while place < end:
        following = place + 1
        for stop in range(min(end, place + MAX_VALUE_WORDS), place, -1):
            clause = _value_at(question, schema, item, place, stop)
            if clause is not None:
                clauses.append(clause)
                following = stop
                break
        place = following
    return clauses


def _value_at(
    question: Question, schema: SchemaContext, item: ObjectSchema, place: int, end: int
) -> FilterClause | None:
    """Read the words from one place to another as one value."""
    text = question.phrase(place, end)
    is_single = end == place + 1
    is_filler = text.lower() in STOP_WORDS or (is_single and len(text) < MIN_VALUE_LENGTH)
    if is_filler or not question.consumed.isdisjoint(range(place, end)):
        return None
    closed = item.field("IsClosed") if text.lower() in ("open", "closed") else None
    if closed is not None:
        is_open = (text.lower() == "open") != question.take_negation(place)
        question.consume(place, end)
        return FilterClause(item.name, closed.name, "=", str(not is_open).lower(), "phrase", 0.85)
    found = schema.grounder.best_value(text, item)
    if found is None or found.confidence < MIN_CONFIDENCE:
        return None
    operator, value = choice_condition(found.field, found.value)
    if question.take_negation(place):
        operator = "!="
    question.consume_near(place, *WORDS_NEAR_VALUES)
    question.consume(place, end)
    return FilterClause(item.name, found.field.name, operator, value, "picklist", found.confidence)


def merge_alternatives(question: Question, draft: QueryDraft, _: SchemaContext) -> None:
    """Merge several values of one field into `IN`: no record has two at once."""
    merged: list[FilterClause] = []
    for entry in draft.filters:
        same = next((other for other in merged if other.path == entry.path and other.operator in ("=", "IN")), None)
        if same is not None and entry.operator == "=" and entry.value != same.value and entry.value.startswith("'"):
            values = same.value.strip("()") if same.operator == "IN" else same.value
            merged[merged.index(same)] = replace(same, operator="IN", value=f"({values}, {entry.value})")
            question.consume_words("or", "and")
        elif same is None or same.value != entry.value:
            merged.append(entry)
    draft.filters = merged
