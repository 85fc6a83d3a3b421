"""Counts, sums and averages, and what they are grouped by."""

from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.field_names import FieldMention
from bedstone.salesforce.questions.operands import SIZE_OPERATORS, number_at, operator_at
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.questions.values import AMOUNT_TYPES, DATE_TYPES, main_amount, main_date
from bedstone.salesforce.synonyms import STOP_WORDS, singular

AGGREGATES = {
    "total": "SUM", "sum": "SUM", "average": "AVG", "avg": "AVG", "mean": "AVG", "max": "MAX", "maximum": "MAX",
    "highest": "MAX", "largest": "MAX", "biggest": "MAX", "min": "MIN", "minimum": "MIN", "lowest": "MIN",
    "smallest": "MIN",
}  # fmt: skip
COUNT_WORDS = frozenset({"count", "number", "many"})
DISTINCT = frozenset({"distinct", "unique", "different"})
DATE_FUNCTIONS = {"year": "CALENDAR_YEAR", "quarter": "CALENDAR_QUARTER", "month": "CALENDAR_MONTH"}
DIRECTIONS = ("desc", "descending", "asc", "ascending")
MAX_GROUPS = 3


def read_grouping(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `how many`, `total amount`, `per industry`, `by stage`, `top 5 by revenue`, `distinct industries`."""
    if draft.groups:  # totals over children
        return
    _read_aggregates(question, draft, schema)
    is_count = any(_is_count(question, at) for at in range(len(question)))
    is_summary = is_count or bool(draft.aggregates)
    is_distinct = _read_distinct(question, draft, schema)
    phrase = _group_phrase(question, draft, is_summary=is_summary)
    if phrase is not None and not is_distinct:
        if _read_groups(question, draft, schema, phrase[1]):
            question.consume(*phrase)
    elif draft.limit is not None and not is_summary:
        _read_top_order(question, draft, schema)
    if not draft.aggregates and not is_distinct and (is_count or draft.groups):
        draft.aggregates.append(("COUNT", "Id"))
        question.consume_words(*COUNT_WORDS, "how")
    if draft.aggregates:
        draft.intent = "group" if draft.groups else "count" if draft.aggregates[0][0] == "COUNT" else "sum"
    if draft.groups and draft.aggregates:
        _read_having(question, draft)
        _read_order_of_totals(question, draft)


def _is_count(question: Question, at: int) -> bool:
    """Whether a word asks how many there are: `how many`, `number of`, `count`; not the number of a phone."""
    word = question.folded[at]
    if word == "total" and question.is_free(at) and any(item.start == at + 1 for item in question.mentions):
        question.consume(at, at + 1)  # total cases: an amount to sum is read before
        return True
    if word not in COUNT_WORDS or not question.is_free(at):
        return False
    if word == "number" and question.folded_at(at - 1) == "total":
        question.consume(at - 1, at)
    return word == "count" or question.folded_at(at + 1) == "of" or question.folded_at(at - 1) == "how"


def _read_aggregates(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    main = main_amount(draft.object)
    for place, word in enumerate(question.folded):
        is_bound = "having" in question.folded[max(0, place - 2) : place]
        is_named = schema.fields.at(question, draft.object, place + 1) is not None  # Number of Employees
        is_counted = question.folded_at(place + 1) in (*COUNT_WORDS, *AGGREGATES) and not is_named  # highest total
        if word not in AGGREGATES or not question.is_free(place) or is_bound or is_counted:
            continue
        named = schema.fields.at(question, draft.object, place)
        if named is not None and named.end > place + 1:  # Total Amount is the name of a field
            continue
        found = schema.fields.after(question, draft.object, place + 1)
        if found is not None and (found.field.type in AMOUNT_TYPES or found.field.type in DATE_TYPES):
            draft.aggregates.append((AGGREGATES[word], found.path))
            question.consume(place, place + 1)
            question.consume(found.start, found.end)
        elif main is not None:
            draft.assumptions.append(f"no field is named; {main.name} is taken")
            draft.aggregates.append((AGGREGATES[word], main.name))
            question.consume(place, place + 1)
            question.consume_words("size", "value", "pipeline")


def _read_distinct(question: Question, draft: QueryDraft, schema: SchemaContext) -> bool:
    for place, word in enumerate(question.folded):
        found = schema.fields.at(question, draft.object, place + 1) if word in DISTINCT else None
        if found is not None and found.field.groupable:
            draft.groups.append(found.path)
            question.consume(place, found.end)
            return True
    return False


def _group_phrase(question: Question, draft: QueryDraft, *, is_summary: bool) -> tuple[int, int] | None:
    """Find the words before the group; a plain `by` groups a summary, or periods."""
    found = question.find_any("grouped by", "group by", "broken down by", "for each", "for every", "per")
    at = question.find("by")
    if found is not None or at is None:
        return found
    is_period = question.folded_at(at + 1) in DATE_FUNCTIONS
    return (at, at + 1) if question.is_free(at) and (is_summary or (is_period and not draft.orders)) else None


def _read_groups(question: Question, draft: QueryDraft, schema: SchemaContext, place: int) -> bool:
    """Read one or more fields: `by stage`, `by stage and owner`."""
    at: int | None = place
    while at is not None and len(draft.groups) < MAX_GROUPS:
        end = _read_group(question, draft, schema, at)
        is_joined = end is not None and question.folded_at(end) in ("and", ",")
        at = end + 1 if end is not None and is_joined and question.is_free(end) else None
    return bool(draft.groups)


def _read_group(question: Question, draft: QueryDraft, schema: SchemaContext, place: int) -> int | None:
    item = draft.object
    while question.folded_at(place) in ("the", "their", "each"):
        place += 1
    word = question.folded_at(place)
    date = main_date(item)
    if word in DATE_FUNCTIONS and date is not None:
        draft.groups.append(f"{DATE_FUNCTIONS[word]}({date.name})")
        question.consume(place, place + 1)
        return place + 1
    found = _group_field(question, schema, draft, place) if word else None
    if found is None:
        return None
    draft.groups.append(found.path)
    question.consume(place, found.end)
    return found.end


def _group_field(question: Question, schema: SchemaContext, draft: QueryDraft, place: int) -> FieldMention | None:
    """Return what to group by at a place: a parent by its name, or a field."""
    found = schema.fields.at(question, draft.object, place)
    if found is None or found.field.type == "reference":
        found = schema.fields.comparable_at(question, draft.object, place)
    return found if found is not None and found.field.groupable else None


def _read_top_order(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `by revenue` in `the top five by revenue`."""
    at = question.find("by")
    found = schema.fields.next(question, draft.object, at + 1) if at is not None and question.is_free(at) else None
    if (
        at is not None
        and found is not None
        and found.field.sortable
        and found.field.type != "boolean"
        and not draft.orders
    ):
        draft.add_order(found.path, "DESC NULLS LAST")
        question.consume(at, found.end)


def read_field_totals(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `industries with more than 25 accounts`: groups of records, by how many there are."""
    mention = next((item for item in question.mentions if item.object is draft.object), None)
    joint = next((at for at, word in enumerate(question.folded) if word in ("with", "having", "have", "has")), None)
    if mention is None or joint is None or draft.groups or mention.start < joint:
        return
    places = range(joint)
    found = next((named for at in places if (named := _group_field(question, schema, draft, at))), None)
    if found is None or found.end > joint:
        return
    draft.aggregates.append(("COUNT", "Id"))
    having = having_at(question, draft, joint + 1)
    if having is None and question.folded[joint + 1 : mention.start] in (("the", "most"), ("most",)):
        having = ("", mention.end)
        draft.orders.append("COUNT(Id) DESC")
        draft.limit = 1 if question.folded_at(found.start - 1) in ("which", "what", "the") else draft.limit
    if having is None:
        draft.aggregates.pop()
        return
    draft.groups.append(found.path)
    draft.having, draft.intent = having[0], "group"
    question.consume(found.start, found.end)
    question.consume(joint, having[1])


def _read_having(question: Question, draft: QueryDraft) -> None:
    """Read `having more than 5 records`, `with more than 10 accounts`."""
    for place, word in enumerate(question.folded):
        if word not in ("having", "with", "where", "have") or not question.is_free(place):
            continue
        at = place + 1
        while question.folded_at(at) in ("a", "the", "count", "of", "number", "total", "sum", "average", "amount"):
            at += 1
        having = having_at(question, draft, at)
        if having is not None:
            draft.having = having[0]
            question.consume(place, having[1])
            return


def _read_order_of_totals(question: Question, draft: QueryDraft) -> None:
    """Read `ordered by count descending`."""
    found = question.find_any("ordered by", "sorted by", "order by", "sort by")
    if found is None or not question.is_free(found[0]):
        return
    at = found[1] + (question.folded_at(found[1]) == "the")
    if question.folded_at(at) in (*COUNT_WORDS, *AGGREGATES):
        function, name = draft.aggregates[0]
        is_descending = question.folded_at(at + 1) in ("desc", "descending")
        draft.orders.append(f"{function}({name})" + (" DESC" if is_descending else ""))
        question.consume(found[0], at + 1 + (question.folded_at(at + 1) in DIRECTIONS))


def having_at(question: Question, draft: QueryDraft, place: int) -> tuple[str, int] | None:
    """Read a bound of the first aggregate: `more than 5 records`."""
    operator = operator_at(question, place)
    number = number_at(question, operator[1]) if operator is not None and operator[0] in SIZE_OPERATORS else None
    if operator is None or number is None:
        return None
    end = number[1]
    mentioned = next((mention for mention in question.mentions if mention.start == end), None)
    if mentioned is not None and mentioned.object is draft.object:
        end = mentioned.end
    elif singular(question.folded_at(end)) == "record":
        end += 1
    elif question.folded_at(end) and question.folded_at(end) not in STOP_WORDS:
        return None
    function, name = draft.aggregates[0]
    return f"{function}({name}) {operator[0]} {number[0]}", end
