"""In which order a question wants the records."""

from bedstone.salesforce.graph.model import Field
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.field_names import FieldMention
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.questions.values import AMOUNT_TYPES, DATE_TYPES, main_amount
from bedstone.salesforce.synonyms import singular

SORTED_BY = (
    *("ordered by", "sorted by", "order by", "sort by", "arranged by", "ranked by", "in order of", "sort them by"),
    *("order them by", "sorted on"),
)
FIRST_BY_RECENCY = ("newest first", "latest first", "most recent first")
FIRST_BY_AGE = ("oldest first", "earliest first")
DESCENDING = (
    *("desc", "descending", "in descending order", "largest first", "highest first", "biggest first"),
    *(*FIRST_BY_RECENCY, "from highest to lowest"),
)
ASCENDING = (
    *("asc", "ascending", "in ascending order", "smallest first", "lowest first", *FIRST_BY_AGE),
    *("from lowest to highest", "alphabetically"),
)
ALPHABETICAL = ("in alphabetical order", "alphabetically", "alphabetical order")
# Phrases for the time of a record, and the order they mean.
ORDERS_BY_AGE = {
    "most recently modified": ("LastModifiedDate", "DESC"), "most recently updated": ("LastModifiedDate", "DESC"),
    "most recently changed": ("LastModifiedDate", "DESC"), "last modified": ("LastModifiedDate", "DESC"),
    "most recently created": ("CreatedDate", "DESC"), "most recently added": ("CreatedDate", "DESC"),
    "most recent": ("CreatedDate", "DESC"), "most recently": ("CreatedDate", "DESC"),
    "newest": ("CreatedDate", "DESC"), "latest": ("CreatedDate", "DESC"), "least recent": ("CreatedDate", ""),
    "oldest": ("CreatedDate", ""), "earliest": ("CreatedDate", ""),
}  # fmt: skip
SIZES = {
    "largest": "DESC", "biggest": "DESC", "highest": "DESC", "greatest": "DESC", "top": "DESC",
    "smallest": "", "lowest": "", "most expensive": "DESC", "cheapest": "", "least expensive": "",
}  # fmt: skip
MAX_DISTANCE = 3  # words between a superlative and the object
NULLS_LAST = "NULLS LAST"


def read_ordering(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `ordered by name`, `newest accounts`, `the ten largest deals by amount`, `with the highest revenue`."""
    _read_recency(question, draft)
    _read_sizes(question, draft, schema)
    _read_sorting(question, draft, schema)
    _read_alphabet(question, draft)


def _read_recency(question: Question, draft: QueryDraft) -> None:
    for phrase, (name, direction) in ORDERS_BY_AGE.items():
        found = question.find_any(phrase)
        if found is None or not question.consumed.isdisjoint(range(*found)) or draft.object.field(name) is None:
            continue
        if question.folded_at(found[1]) == "first" or (
            phrase == "last modified" and not _names(question, draft, found[1])
        ):
            continue
        draft.add_order(name, direction)
        draft.intent = "top"
        question.consume(*found)
        _limit_to_one(question, draft, found[1])
        return


def _names(question: Question, draft: QueryDraft, place: int) -> bool:
    """Whether the object of the query is named within a few words."""
    places = range(place, place + MAX_DISTANCE)
    return any(mention.object is draft.object and mention.start in places for mention in question.mentions)


def _limit_to_one(question: Question, draft: QueryDraft, place: int) -> None:
    """Read the singular: `the latest lead`, `which account has the highest revenue`."""
    for mention in question.mentions:
        word = question.folded[mention.end - 1]
        if mention.object is draft.object and draft.limit is None and singular(word) == word:
            is_near = mention.start in range(place, place + MAX_DISTANCE)
            if is_near or question.folded_at(mention.start - 1) in ("which", "what"):
                draft.limit = 1


def _read_sizes(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    for phrase, direction in SIZES.items():
        found = question.find_any(phrase)
        if found is None or not question.consumed.isdisjoint(range(*found)):
            continue
        named = _field_of_size(question, draft, schema, found[0], found[1])
        if named is not None:
            draft.add_order(named.path, f"{direction} {NULLS_LAST}".strip())
            draft.intent = "top"
            question.consume(*found)
            question.consume(named.start, named.end)
            _limit_to_one(question, draft, found[1])


def _field_of_size(
    question: Question, draft: QueryDraft, schema: SchemaContext, start: int, end: int
) -> FieldMention | None:
    """Return the field that a superlative means: named after `by`, right after `with the highest`, or the amount."""
    is_price = question.folded[end - 1] in ("expensive", "cheapest")
    before = start - 1 - (question.folded_at(start - 1) == "the")
    if question.folded_at(before) in ("with", "having", "has", "have"):
        found = schema.fields.at(question, draft.object, end)
        return found if found is not None and _can_be_largest(found.field) else None
    named = next((item.end for item in question.mentions if item.start == end), None)
    found = schema.fields.at(question, draft.object, named) if named is not None else None
    if found is not None and _can_be_largest(found.field):
        return None  # the smallest opportunity amount is a number
    if not _names(question, draft, end) and not is_price:
        return None
    by = next((at for at in range(end, len(question)) if question.folded[at] == "by"), None)
    found = schema.fields.next(question, draft.object, by + 1) if by is not None else None
    if by is not None and found is not None and _can_sort(found.field):
        return FieldMention(found.field, by, found.end, found.prefix)
    field = _price(draft) if is_price else main_amount(draft.object)
    return FieldMention(field, start, start) if field is not None and by is None else None


def _price(draft: QueryDraft) -> Field | None:
    prices = [entry for entry in draft.object.fields if entry.type == "currency" and "price" in entry.name.lower()]
    return min(prices, key=lambda entry: len(entry.name), default=None)


def _can_sort(field: Field) -> bool:
    return field.sortable and field.type != "boolean"


def _can_be_largest(field: Field) -> bool:
    return field.type in AMOUNT_TYPES or field.type in DATE_TYPES


def _read_sorting(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    found = question.find_any(*SORTED_BY)
    if found is None and question.folded[:1] in (("sort",), ("order",), ("rank",)):
        at = question.find("by")
        found = (at, at + 1) if at is not None else None
        question.consume(0, 1 if found is not None else 0)
    place = found[1] if found is not None else None
    while found is not None and place is not None:
        named = schema.fields.next(question, draft.object, place)
        if named is None or not _can_sort(named.field):
            return
        question.consume(*found)
        question.consume(named.start, named.end)
        draft.add_order(named.path, _direction(question))
        place = _next_key(question, draft, schema, named.end)
    for phrases, direction in ((FIRST_BY_RECENCY, "DESC"), (FIRST_BY_AGE, "")):
        first = question.find_any(*phrases) if found is None and draft.object.field("CreatedDate") else None
        if first is not None:
            draft.add_order("CreatedDate", direction)
            question.consume(*first)


def _direction(question: Question) -> str:
    for phrases, direction in ((DESCENDING, "DESC"), (ASCENDING, "")):
        found = question.find_any(*phrases)
        if found is not None and question.consumed.isdisjoint(range(*found)):
            question.consume(*found)
            return direction
    return ""


def _next_key(question: Question, draft: QueryDraft, schema: SchemaContext, place: int) -> int | None:
    """Return where the next field to sort by begins: `and then by`, `then`, `, FirstName`."""
    at = place
    while question.folded_at(at) in ("and", "then", "by", ","):
        at += 1
    if at == place or schema.fields.at(question, draft.object, at) is None:
        return None
    question.consume(place, at)
    return at


def _read_alphabet(question: Question, draft: QueryDraft) -> None:
    found = question.find_any(*ALPHABETICAL)
    if found is not None and question.is_free(found[0]):
        question.consume(*found)
        if not draft.orders and draft.object.name_field is not None:
            draft.add_order(draft.object.name_field.name)
