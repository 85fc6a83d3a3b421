"""Counts, sums and averages, and what they are grouped by."""

from bedstone.salesforce.graph.names import squeeze
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.questions.values import AMOUNT_TYPES, DATE_TYPES, main_amount
from bedstone.salesforce.synonyms import singular

AGGREGATES = {
    "total": "SUM", "sum": "SUM", "average": "AVG", "avg": "AVG", "mean": "AVG", "max": "MAX", "maximum": "MAX",
    "highest": "MAX", "largest": "MAX", "min": "MIN", "minimum": "MIN", "lowest": "MIN", "smallest": "MIN",
}  # fmt: skip
COUNT_WORDS = frozenset({"count", "number", "many"})
DATE_FUNCTIONS = {"year": "CALENDAR_YEAR", "quarter": "CALENDAR_QUARTER", "month": "CALENDAR_MONTH"}


def read_grouping(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `how many`, `total amount`, `per industry`, `by stage`, `top 5 by revenue`."""
    _read_aggregates(question, draft, schema)
    is_count = not COUNT_WORDS.isdisjoint(question.folded)
    is_summary = is_count or bool(draft.aggregates)
    phrase = _group_phrase(question, is_summary=is_summary)
    if phrase is not None:
        _read_group(question, draft, schema, phrase[1])
        question.consume(*phrase)
    elif draft.limit is not None and not is_summary:
        _read_top_order(question, draft, schema)
    if not draft.aggregates and (is_count or draft.groups):
        draft.aggregates.append(("COUNT", "Id"))
        question.consume_words(*COUNT_WORDS, "how")
    if draft.aggregates:
        draft.intent = "group" if draft.groups else "count" if draft.aggregates[0][0] == "COUNT" else "sum"


def _read_aggregates(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    main = main_amount(draft.object)
    for place, word in enumerate(question.folded):
        if word not in AGGREGATES:
            continue
        found = schema.fields.after(question, draft.object, place + 1)
        if found is not None and (found.field.type in AMOUNT_TYPES or found.field.type in DATE_TYPES):
            draft.aggregates.append((AGGREGATES[word], found.field.name))
            question.consume(place, place + 1)
            question.consume(found.start, found.end)
        elif main is not None:
            draft.has_guessed_amount = True
            draft.aggregates.append((AGGREGATES[word], main.name))
            question.consume(place, place + 1)
            question.consume_words("size", "value", "pipeline")


def _group_phrase(question: Question, *, is_summary: bool) -> tuple[int, int] | None:
    """Find the words before the group; a plain `by` groups a summary only."""
    at = question.find("grouped", "by") or question.find("group", "by")
    if at is not None:
        return at, at + 2
    phrases: list[tuple[str, ...]] = [("for", "each"), ("per",)]
    for phrase in [*phrases, ("by",)] if is_summary else phrases:
        at = question.find(*phrase)
        if at is not None:
            return at, at + len(phrase)
    return None


def _read_group(question: Question, draft: QueryDraft, schema: SchemaContext, place: int) -> None:
    item = draft.object
    word = question.folded_at(place)
    if word in DATE_FUNCTIONS:
        name = "CloseDate" if item.field("CloseDate") and item.name != "Case" else "CreatedDate"
        draft.groups.append(f"{DATE_FUNCTIONS[word]}({name})")
        question.consume(place, place + 1)
        return
    found = schema.fields.after(question, item, place)
    link = item.by_relationship.get(squeeze(word)) or item.by_relationship.get(singular(squeeze(word)))
    if link is not None and len(link.reference_to) == 1:
        draft.groups.append(f"{link.relationship}.Name")
        question.consume(place, place + 1)
    elif found is not None:
        draft.groups.append(found.field.name)
        question.consume(found.start, found.end)


def _read_top_order(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `by revenue` in `the top five by revenue`."""
    at = question.find("by")
    found = schema.fields.after(question, draft.object, at + 1) if at is not None else None
    if at is not None and found is not None and found.field.sortable:
        draft.orders.append(f"{found.field.name} DESC NULLS LAST")
        draft.columns.append(found.field.name)
        question.consume(at, found.end)
