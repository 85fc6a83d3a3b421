"""Words that are values of picklists."""

from dataclasses import replace

from bedstone.salesforce.graph.model import ObjectSchema
from bedstone.salesforce.graph.names import words_of
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import FilterClause, QueryDraft
from bedstone.salesforce.questions.grounding import ChoiceMatch
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.questions.values import choice_condition
from bedstone.salesforce.synonyms import STOP_WORDS, plain_words, singular

MAX_VALUE_WORDS = 4
MIN_VALUE_LENGTH = 3  # characters of a single word
MIN_CONFIDENCE = 0.75


def read_picklist_values(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `closed won opportunities`, `open cases`, `not high priority`."""
    draft.filters += find_picklist_values(question, schema, draft.object, 0, len(question))


def find_picklist_values(
    question: Question, schema: SchemaContext, item: ObjectSchema, start: int, end: int
) -> list[FilterClause]:
    """Return the values of an object's picklists in a stretch of words, and consume their words."""
    clauses = []
    place = max(0, start)
    end = min(end, len(question))
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
        if question.folded_at(place - 1) == "still":
            question.consume(place - 1, place)
        return FilterClause(item.name, closed.name, "=", str(not is_open).lower(), "phrase", 0.85, place)
    found = _best_value(text, schema, item)
    if found is None or found.confidence < MIN_CONFIDENCE:
        return None
    operator, value = choice_condition(found.field, found.value)
    if question.take_negation(place):
        operator = "!=" if operator == "=" else "EXCLUDES"
    question.consume_near(place, *words_of(found.field.name), *plain_words(found.field.label))
    question.consume(place, end)
    return FilterClause(item.name, found.field.name, operator, value, "picklist", found.confidence, place)


def _best_value(text: str, schema: SchemaContext, item: ObjectSchema) -> ChoiceMatch | None:
    """Return the value that a text means, as it is or in the singular."""
    found = schema.grounder.best_value(text, item)
    *others, last = text.split()
    is_plural = singular(last) != last
    if (found is None or found.confidence < MIN_CONFIDENCE) and is_plural:
        return schema.grounder.best_value(" ".join([*others, singular(last)]), item)
    return found


def read_parent_values(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `Finance industry` in a question about contacts: a value beside the name of a parent's field."""
    for edge in schema.graph.parents(draft.object.name):
        parent = schema.graph.get(edge.parent)
        link = edge.field.relationship
        if parent is None or not link or len(edge.field.reference_to) > 1 or link != parent.name:
            continue
        for place in range(len(question)):
            named = schema.fields.at(question, parent, place) if question.is_free(place) else None
            if named is not None and named.field.choices and not named.prefix:
                consumed = set(question.consumed)
                near = max(0, named.start - MAX_VALUE_WORDS)
                found = find_picklist_values(question, schema, parent, near, named.end + MAX_VALUE_WORDS)
                own = [entry for entry in found if entry.path == named.field.name]
                if not own or len(own) < len(found):  # values of other fields are not meant
                    question.consumed = consumed
                    continue
                draft.filters += [replace(entry, path=f"{link}.{entry.path}") for entry in own]
                question.consume(named.start, named.end)


def merge_alternatives(question: Question, draft: QueryDraft, _: SchemaContext) -> None:
    """Merge several values of one field into `IN`: no record has two at once. Two fields may be joined by `or`."""
    merged: list[FilterClause] = []
    for entry in draft.filters:
        same = next((other for other in merged if other.path == entry.path and other.operator in ("=", "IN")), None)
        is_value = entry.value.startswith("'") and entry.operator == "="
        if same is not None and is_value and entry.value != same.value:
            values = same.value.strip("()") if same.operator == "IN" else same.value
            ordered = (values, entry.value) if same.place <= entry.place else (entry.value, values)
            merged[merged.index(same)] = replace(same, operator="IN", value=f"({', '.join(ordered)})")
            _consume_joints(question, same.place, entry.place)
        elif same is None or same.value != entry.value:
            merged.append(entry)
    draft.filters = merged
    _join_by_or(question, draft)


def _consume_joints(question: Question, one: int, other: int) -> None:
    """Consume the words that join two values: `or` elsewhere joins something else."""
    for place in range(min(one, other), max(one, other)):
        if question.folded_at(place) in ("or", "and"):
            question.consume(place, place + 1)


def _join_by_or(question: Question, draft: QueryDraft) -> None:
    """Read `A or B` if there is nothing else: with a third condition it could mean two things."""
    places = [place for place, word in enumerate(question.folded) if word == "or" and question.is_free(place)]
    if len(places) != 1 or len(draft.filters) != 2 or draft.joins:  # noqa: PLR2004 - one on either side
        return
    first, second = sorted(draft.filters, key=lambda entry: entry.place)
    is_clear = first.path != second.path and "!=" not in (first.operator, second.operator)
    if is_clear and 0 <= first.place < places[0] < second.place:
        draft.either, draft.filters = [first, second], []
        question.consumed.add(places[0])
