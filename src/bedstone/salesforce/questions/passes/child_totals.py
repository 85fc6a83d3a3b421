"""Totals over the children of records: `accounts with the most cases`, `accounts with more than 3 contacts`."""

from itertools import pairwise

from bedstone.salesforce.graph.model import Edge
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import FilterClause, QueryDraft
from bedstone.salesforce.questions.operands import SIZE_OPERATORS, number_at, operator_at
from bedstone.salesforce.questions.passes.dates import find_dates
from bedstone.salesforce.questions.passes.grouping import AGGREGATES, COUNT_WORDS
from bedstone.salesforce.questions.passes.picklists import find_picklist_values
from bedstone.salesforce.questions.question import Mention, Question
from bedstone.salesforce.questions.values import AMOUNT_TYPES, MAIN_AMOUNTS
from bedstone.salesforce.synonyms import STOP_WORDS, singular

SUPERLATIVES = {"most": "DESC", "highest": "DESC", "largest": "DESC", "fewest": "", "least": "", "lowest": ""}
VALUES_BEFORE = 3  # words before an object that can be values of it
FILLERS = STOP_WORDS | {"number", "count", "total"}


def read_child_totals(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Count or sum the children of each record; the query is then about the children, grouped by their parent."""
    consumed = set(question.consumed)
    found = _counted_children(question, draft, schema) or _summed_children(question, draft, schema)
    if found is None:
        return
    mention, edge, function, name = found
    start = mention.start if mention is not None else 0
    child = schema.graph.get(edge.child)
    if child is None:
        return
    filters: list[FilterClause] = []
    if mention is not None:
        question.consume(mention.start, mention.end)
        filters += find_picklist_values(question, schema, child, max(0, start - VALUES_BEFORE), mention.end)
        filters += find_dates(question, schema, child, mention.end, len(question))
    direction, having = _extreme(question, start), _take_bound(question, start, name)
    is_ranked = direction is not None or draft.limit is not None
    is_asked = is_ranked or having or mention is None or _is_counted(question, start)
    if _has_other_words(question) or not is_asked:
        question.consumed = consumed  # something else is asked as well: leave it all
        return
    _count_children(draft, schema, edge, (function, name), filters)
    draft.having = f"{function}({name}) {having}" if having else ""
    if is_ranked:
        draft.orders = [f"{function}({name}) {direction if direction is not None else 'DESC'}".strip()]
        if draft.limit is None and _is_singular(question):
            draft.limit = 1


def _count_children(
    draft: QueryDraft, schema: SchemaContext, edge: Edge, aggregate: tuple[str, str], filters: list[FilterClause]
) -> None:
    child, parent = schema.graph.get(edge.child), draft.object
    name = parent.name_field.name if parent.name_field is not None else "Id"
    if child is None:
        return
    draft.assumptions.append(
        f"{child.label} records are counted by {parent.label}; {parent.plural} without are left out"
    )
    draft.subject, draft.object = parent, child
    draft.groups = [f"{edge.field.relationship}.{name}"]
    draft.aggregates = [aggregate]
    draft.filters += filters
    draft.intent = "group"


def _counted_children(
    question: Question, draft: QueryDraft, schema: SchemaContext
) -> tuple[Mention | None, Edge, str, str] | None:
    """Find children that are counted: `the most cases`, `number of cases`, `more than 3 contacts`."""
    for mention in question.mentions:
        edge = _edge_to(draft, schema, mention)
        if edge is None or not question.is_free(mention.start):
            continue
        before = question.folded[max(0, mention.start - VALUES_BEFORE - 2) : mention.start]
        is_extreme = any(word in SUPERLATIVES and "at" not in before for word in before)
        is_extreme = is_extreme or _is_counted(question, mention.start)
        is_more_than_one = any(
            number != "1" or operator != ">=" for operator, number in _bounds(question, mention.start)
        )
        if is_extreme or is_more_than_one:
            return mention, edge, "COUNT", "Id"
    return None


def _summed_children(
    question: Question, draft: QueryDraft, schema: SchemaContext
) -> tuple[Mention | None, Edge, str, str] | None:
    """Find a sum over children: `sum of amount for each account`, `total opportunity amount over 1 million`."""
    place = next((at for at, word in enumerate(question.folded) if word in AGGREGATES and question.is_free(at)), None)
    if place is None or schema.fields.after(question, draft.object, place + 1) is not None:
        return None
    named = [mention for mention in question.mentions if _edge_to(draft, schema, mention) is not None]
    main = next((name for name in MAIN_AMOUNTS if name != draft.object.name and _child(draft, schema, name)), None)
    edge = _edge_to(draft, schema, named[0]) if named else _child(draft, schema, main or "")
    child = schema.graph.get(edge.child) if edge is not None else None
    found = schema.fields.after(question, child, place + 1) if child is not None else None
    if edge is None or found is None or found.field.type not in AMOUNT_TYPES:
        return None
    if not named and question.find_any("for each", "per", "for every", "by") is None:
        return None
    question.consume(place, place + 1)
    question.consume(found.start, found.end)
    question.consume_words("per", "each", "every", "by")
    return (named[0] if named else None), edge, AGGREGATES[question.folded[place]], found.field.name


def _is_counted(question: Question, place: int) -> bool:
    """Whether `number of` or `count of` precedes, perhaps with a value between: `number of open cases`."""
    before = question.folded[max(0, place - VALUES_BEFORE - 1) : place]
    return any(pair in (("number", "of"), ("count", "of")) for pair in pairwise(before))


def _edge_to(draft: QueryDraft, schema: SchemaContext, mention: Mention) -> Edge | None:
    return _child(draft, schema, mention.object.name) if mention.object is not draft.object else None


def _child(draft: QueryDraft, schema: SchemaContext, name: str) -> Edge | None:
    """Return the relationship of a child to the object of the query; one that is named after it wins."""
    edges = [
        edge for edge in schema.graph.children(draft.object.name) if edge.child == name and edge.field.relationship
    ]
    edges = [edge for edge in edges if len(edge.field.reference_to) == 1]
    named = [edge for edge in edges if edge.field.relationship == draft.object.name]
    return next(iter([*named, *edges]), None)


def _bounds(question: Question, end: int) -> list[tuple[str, str]]:
    """Return the bounds right before a place, with at most some values between: `more than 3 open cases`."""
    for at in range(max(0, end - VALUES_BEFORE - 6), end):
        operator = operator_at(question, at) if question.is_free(at) else None
        number = number_at(question, operator[1]) if operator is not None and operator[0] in SIZE_OPERATORS else None
        if operator is not None and number is not None and end - VALUES_BEFORE <= number[1] <= end:
            return [(operator[0], number[0])]
    return []


def _take_bound(question: Question, start: int, name: str) -> str:
    """Read the bound of a total, and consume it: before the children if they are counted, else anywhere."""
    places = range(start) if name == "Id" else range(len(question))
    for at in places:
        operator = operator_at(question, at) if question.is_free(at) else None
        number = number_at(question, operator[1]) if operator is not None and operator[0] in SIZE_OPERATORS else None
        if operator is not None and number is not None:
            question.consume(at, number[1])
            return f"{operator[0]} {number[0]}"
    return ""


def _extreme(question: Question, start: int) -> str | None:
    """Read `the most`, `the highest number of`, `by number of`."""
    direction = None
    for at in range(start):
        word = question.folded[at]
        if word in SUPERLATIVES and question.is_free(at) and question.folded_at(at - 1) != "at":
            direction = SUPERLATIVES[word]
            question.consume(at, at + 1)
    if _is_counted(question, start) or direction is not None:
        question.consume_words(*COUNT_WORDS)
        question.consume_words("by")
    return direction


def _has_other_words(question: Question) -> bool:
    return any(
        question.is_free(place) and (word not in FILLERS or word in ("or", "by", "not"))
        for place, word in enumerate(question.folded)
        if word not in (",", "which", "whose")
    )


def _is_singular(question: Question) -> bool:
    """Whether one record is asked for: `which account has the most cases`."""
    mention = question.mentions[0]
    word = question.folded[mention.end - 1]
    return singular(word) == word and question.folded_at(mention.start - 1) in ("which", "what", "the")
