"""How many records a question asks for, and from where."""

from bedstone.salesforce.graph.object_names import ObjectNames
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.question import Question

DEFAULT_LIMIT = 10
BEFORE_COUNTS = ("top", "first", "latest", "last")
AFTER_COUNTS = ("most", "latest", "newest", "records")
# A number after one of these is not a count.
BEFORE_OTHER_NUMBERS = ("last", "next", "past", "than", "over", "above", "below", "under", "is", "=", ">", "<")


def read_limits(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `top 5`, `50 contacts`, `first 20 skipping first 40`, `most recent`."""
    _read_counts(question, draft, schema.names)
    _read_recency(question, draft)
    if draft.offset is not None:
        question.consume_words("skipping", "after")
        if not draft.orders and draft.object.name_field is not None:
            draft.orders.append(draft.object.name_field.name)
    elif draft.limit is not None and draft.intent == "list" and "top" in question.folded:
        draft.intent = "top"


def _read_counts(question: Question, draft: QueryDraft, names: ObjectNames) -> None:
    for place, word in enumerate(question.folded):
        following = question.folded_at(place + 1)
        if word == "top" and following.isdigit():
            question.consume(place, place + 1)
        if word in BEFORE_COUNTS and following.isdigit() and not question.is_period(place + 2):
            if "skipping" in question.folded[max(0, place - 3) : place]:
                draft.offset = int(following)
            else:
                draft.limit = int(following)
            question.consume(place, place + 2)
        elif word.isdigit() and question.is_free(place) and _is_count(question, names, place):
            draft.limit = int(word)
            question.consume(place, place + 1)


def _is_count(question: Question, names: ObjectNames, place: int) -> bool:
    """Whether a number says how many records: `the 5 most recent`, `50 contacts`."""
    following = question.folded_at(place + 1)
    if not following or question.folded_at(place - 1) in BEFORE_OTHER_NUMBERS:
        return False
    return following in AFTER_COUNTS or bool(names.find(following))


def _read_recency(question: Question, draft: QueryDraft) -> None:
    at = (
        question.find("most", "recently")
        or question.find("most", "recent")
        or question.find("newest")
        or question.find("latest")
    )
    if at is not None and draft.object.field("CreatedDate"):
        draft.orders.append("CreatedDate DESC")
        draft.columns.append("CreatedDate")
        draft.intent = "top"
        draft.limit = draft.limit or DEFAULT_LIMIT
        question.consume(at, at + 2)
        question.consume_words("created", "modified", "updated")
