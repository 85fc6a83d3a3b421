"""How many records a question asks for, and from where."""

from bedstone.salesforce.graph.object_names import ObjectNames
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.question import Question

BEFORE_COUNTS = ("top", "first", "latest", "last", "newest", "oldest", "earliest", "largest", "biggest", "smallest")
AFTER_COUNTS = (
    *("most", "least", "latest", "newest", "oldest", "earliest", "records", "largest", "biggest", "smallest"),
    *("highest", "lowest", "cheapest"),
)
# A number after one of these is not a count.
BEFORE_OTHER_NUMBERS = (
    *("last", "next", "past", "than", "over", "above", "below", "under", "is", "=", ">", "<", ">=", "<=", "least"),
    *("most", "to", "exactly", "of", "and", "between"),
)


def read_limits(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `top 5`, `50 contacts`, `first 20 skipping first 40`."""
    _read_counts(question, draft, schema.names)
    if draft.offset is not None:
        skipping = question.find("skipping")
        if skipping is not None:
            question.consume(skipping - (question.folded_at(skipping - 1) == "after"), skipping + 1)
        if not draft.orders and draft.object.name_field is not None:
            last_name = draft.object.field("LastName")
            draft.orders.append((last_name or draft.object.name_field).name)
    elif draft.limit is not None and "top" in question.folded:
        draft.intent = "top"


def _read_counts(question: Question, draft: QueryDraft, names: ObjectNames) -> None:
    for place, word in enumerate(question.folded):
        count = question.number_at(place + 1)
        if word in ("limit", "limited") and (found := question.number_at(place + 1 + (word == "limited"))):
            draft.limit = found
            question.consume(place, place + 2 + (word == "limited"))
            continue
        if word in BEFORE_COUNTS and count is not None and not question.is_period(place + 2):
            if "skipping" in question.folded[max(0, place - 3) : place]:
                draft.offset = count
            else:
                draft.limit = count
            question.consume(place + 1, place + 2)
            if word in ("top", "first"):
                question.consume(place, place + 1)
            elif word == "last":  # of all there are, in the order they came
                question.consume(place, place + 1)
                draft.add_order("CreatedDate", "DESC")
                draft.intent = "top"
        elif question.number_at(place) is not None and _is_count(question, names, place):
            draft.limit = question.number_at(place)
            question.consume(place, place + 1)


def _is_count(question: Question, names: ObjectNames, place: int) -> bool:
    """Whether a number says how many records: `the 5 most recent`, `50 contacts`."""
    following = question.folded_at(place + 1)
    if not following or not question.is_free(place) or question.folded_at(place - 1) in BEFORE_OTHER_NUMBERS:
        return False
    return following in AFTER_COUNTS or bool(names.find(following))
