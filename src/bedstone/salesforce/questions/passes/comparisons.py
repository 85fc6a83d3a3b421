"""Fields compared with values, missing values, and amounts of money."""

from bedstone.salesforce.graph.model import ObjectSchema
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import FilterClause, QueryDraft
from bedstone.salesforce.questions.operands import CURRENCY_SIGNS, SIZE_OPERATORS, number_at, operator_at, value_at
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.questions.values import AMOUNT_TYPES, main_amount

MIN_MONEY = 1_000  # from here a number is money without a currency sign
UNITS = frozenset("day days week weeks month months year years hour hours minute minutes percent times".split())  # noqa: SIM905


def read_comparisons(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `revenue is over 5m`, `more than 100 employees`, `without a phone`, `over $50k`."""
    draft.filters += find_comparisons(question, schema, draft.object, 0, len(question))
    _read_missing_values(question, draft, schema)
    _read_amounts(question, draft)


def find_comparisons(
    question: Question, schema: SchemaContext, item: ObjectSchema, start: int, end: int
) -> list[FilterClause]:
    """Return the conditions on fields of an object in a stretch of words, and consume their words."""
    clauses = []
    place = start
    while place < end:
        found = _comparison_at(question, schema, item, place) if question.is_free(place) else None
        following = place + 1
        if found is not None:
            clause, following = found
            clauses.append(clause)
            question.consume(place, following)
        place = following
    return clauses


def _comparison_at(
    question: Question, schema: SchemaContext, item: ObjectSchema, place: int
) -> tuple[FilterClause, int] | None:
    """Return the condition that begins at a word, and where it ends."""
    found = schema.fields.at(question, item, place)
    operator = operator_at(question, found.end) if found is not None else None
    if found is None or operator is None:
        return _number_before_field(question, schema, item, place)
    value = value_at(question, found.field, *operator)
    if value is None:
        return None
    return FilterClause(item.name, found.path, operator[0], value[0], "comparison", 0.9), value[1]


def _number_before_field(
    question: Question, schema: SchemaContext, item: ObjectSchema, place: int
) -> tuple[FilterClause, int] | None:
    """Read `more than 100 employees`."""
    operator = operator_at(question, place)
    if operator is None or operator[0] not in SIZE_OPERATORS:
        return None
    number = number_at(question, operator[1])
    found = schema.fields.at(question, item, number[1]) if number is not None else None
    if number is None or found is None or found.field.type not in AMOUNT_TYPES:
        return None
    return FilterClause(item.name, found.field.name, operator[0], number[0], "comparison", 0.9), found.end


def _read_missing_values(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `without a phone`, `no email`."""
    for at, word in enumerate(question.folded):
        if word not in ("without", "no") or not question.is_free(at):
            continue
        place = at + 1
        while question.folded_at(place) in ("a", "an", "any"):
            place += 1
        found = schema.fields.at(question, draft.object, place)
        if found is not None:
            draft.add_filter(found.field.name, "=", "null", "phrase", 0.9)
            question.consume(at, found.end)


def _read_amounts(question: Question, draft: QueryDraft) -> None:
    """Read amounts of money without a field: `over $50k`, `between 10000 and 50000`."""
    main = main_amount(draft.object)
    if main is None:
        return
    for place in range(len(question)):
        if not question.is_free(place):
            continue
        bounds, end = _range_at(question, place) if question.folded[place] == "between" else _bound_at(question, place)
        for operator, number in bounds:
            draft.add_filter(main.name, operator, number, "amount", 0.8)
        question.consume(place, end)


def _range_at(question: Question, place: int) -> tuple[list[tuple[str, str]], int]:
    low = number_at(question, place + 1)
    is_range = low is not None and question.folded_at(low[1]) == "and"
    high = number_at(question, low[1] + 1) if low is not None and is_range else None
    if low is None or high is None:
        return [], place
    return [(">=", low[0]), ("<=", high[0])], high[1]


def _bound_at(question: Question, place: int) -> tuple[list[tuple[str, str]], int]:
    operator = operator_at(question, place)
    number = number_at(question, operator[1]) if operator is not None and operator[0] in SIZE_OPERATORS else None
    if operator is None or number is None or not _is_money(question, operator[1], number[0], number[1]):
        return [], place
    return [(operator[0], number[0])], number[1]


def _is_money(question: Question, start: int, number: str, end: int) -> bool:
    """Whether a number has a currency sign or a unit, or is large and not a number of days or the like."""
    if question.words[start] in CURRENCY_SIGNS or not question.words[end - 1].isdigit():
        return True
    return float(number) >= MIN_MONEY and question.folded_at(end) not in UNITS
