"""Fields compared with values, missing values, and amounts of money."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from bedstone.salesforce.graph.model import TEXT_TYPES, ObjectSchema
from bedstone.salesforce.graph.names import squeeze
from bedstone.salesforce.ids import long_id
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import FilterClause, QueryDraft
from bedstone.salesforce.questions.field_names import FieldMention
from bedstone.salesforce.questions.operands import (
    CURRENCY_SIGNS,
    MAX_VALUE_WORDS,
    MIN_CHOICE_CONFIDENCE,
    SIZE_OPERATORS,
    TEXT_OPERATORS,
    number_at,
    operator_at,
    text_at,
    values_at,
)
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.questions.values import AMOUNT_TYPES, best_choice, main_amount
from bedstone.salesforce.soql.quoting import like_string, pattern_string, soql_string

MIN_MONEY = 1_000  # from here a number is money without a currency sign
UNITS = frozenset("day days week weeks month months year years hour hours minute minutes percent times".split())  # noqa: SIM905
MISSING = frozenset({"missing", "empty", "blank", "null", "unset", "unknown", "absent"})
PRESENT = frozenset({"set", "present", "filled", "known", "available", "given", "specified", "provided", "entered"})
VERBS = frozenset({"is", "are", "was", "were", "has", "have", "been", "field", "value", "be"})
ABSENCE = frozenset({"without", "no", "missing", "lacking", "lack"})
TOTALS = frozenset({"sum", "total", "average", "count", "number"})
OWNERSHIP = frozenset({"have", "has", "having"})
Found = tuple[list[FilterClause], int]  # conditions, and where their words end


def read_own_comparisons(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read the conditions before another object is named: what follows it belongs to that object."""
    others = {mention.start for mention in question.mentions if mention.object is not draft.object and mention.start}
    place = 0
    while place < len(question):
        found = _condition_at(question, schema, draft.object, place) if question.is_free(place) else None
        if found is None and place in others and question.is_free(place):
            break
        draft.filters += found[0] if found is not None else []
        question.consume(place, found[1] if found is not None else place)
        place = found[1] if found is not None else place + 1
    _read_missing_values(question, draft, schema, place)


def read_comparisons(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `revenue is over 5m`, `more than 100 employees`, `without a phone`, `over $50k`."""
    draft.filters += find_comparisons(question, schema, draft.object, 0, len(question))
    _read_missing_values(question, draft, schema, len(question))
    draft.filters += find_amounts(question, draft.object, 0, len(question))


def find_comparisons(
    question: Question, schema: SchemaContext, item: ObjectSchema, start: int, end: int
) -> list[FilterClause]:
    """Return the conditions on fields of an object in a stretch of words, and consume their words."""
    clauses: list[FilterClause] = []
    place = start
    while place < end:
        found = _condition_at(question, schema, item, place) if question.is_free(place) else None
        following = place + 1
        if found is not None:
            clauses += found[0]
            following = found[1]
            question.consume(place, following)
        place = following
    return clauses


def _condition_at(question: Question, schema: SchemaContext, item: ObjectSchema, place: int) -> Found | None:
    found = schema.fields.comparable_at(question, item, place)
    if found is not None and question.folded[place] in TOTALS and found.end == place + 1:
        found = None  # an aggregate, unless it begins a longer name: Total Amount
    record = long_id(question.words[place]) if found is None and question.words[place][0].isdigit() else None
    if record is not None:
        return [FilterClause(item.name, "Id", "=", soql_string(record), "comparison", 0.9, place)], place + 1
    if found is None:
        return (
            _number_before_field(question, schema, item, place)
            or _pattern_of_name(question, item, place)
            or _choice_before_field(question, schema, item, place)
            or _value_before_field(question, schema, item, place)
        )

    def is_condition(at: int) -> bool:
        following = schema.fields.comparable_at(question, item, at) if at < len(question) else None
        return following is not None and operator_at(question, following.end) is not None

    return (
        _missing_after(question, item, found)
        or _range_after(question, item, found)
        or _comparison_after(question, item, found, is_condition)
        or _value_after(question, item, found, is_condition)
    )


def _missing_after(question: Question, item: ObjectSchema, found: FieldMention) -> Found | None:
    """Read `email is missing`, `phone is not null`, `industry is not set`."""
    at = found.end
    while question.folded_at(at) in VERBS:
        at += 1
    is_negated = question.folded_at(at) in ("not", "never")
    word = question.folded_at(at + is_negated)
    if word not in MISSING and (word not in PRESENT or at == found.end):
        return None
    is_missing = (word in MISSING) != is_negated
    clause = FilterClause(item.name, found.id_path, "=" if is_missing else "!=", "null", "phrase", 0.9, found.start)
    return [clause], at + is_negated + 1


def _range_after(question: Question, item: ObjectSchema, found: FieldMention) -> Found | None:
    """Read `amount between 1000 and 5000`."""
    at = found.end
    while question.folded_at(at) in VERBS:
        at += 1
    if question.folded_at(at) != "between" or found.field.type not in AMOUNT_TYPES:
        return None
    bounds, end = _range_at(question, at)
    return (_range_clauses(item, found.path, bounds, found.start), end) if bounds else None


def _comparison_after(
    question: Question, item: ObjectSchema, found: FieldMention, is_condition: Callable[[int], bool]
) -> Found | None:
    operator = operator_at(question, found.end)
    is_list = operator is not None and operator[0] in ("IN", "NOT IN")
    is_text = found.field.type in TEXT_TYPES and not found.field.choices
    if operator is not None and is_text and question.folded_at(operator[1] - 1) == "of":
        return None  # the subjects of open cases
    if operator is None or (is_list and found.link and not _is_listed(question, operator[1])):
        return None
    values, end = values_at(question, found.field, *operator, is_condition)
    return ([_clause(item, found, operator[0], values)], end) if values else None


def _is_listed(question: Question, place: int) -> bool:
    """Whether names are listed after `in`: the account in ('Acme', 'Globex'), not the accounts in Germany."""
    return question.folded_at(place) == "(" or (place < len(question) and question.is_quoted(place))


def _value_after(
    question: Question, item: ObjectSchema, found: FieldMention, is_condition: Callable[[int], bool]
) -> Found | None:
    """Read `industry Banking`, `title CEO`, `name 'Acme'`: a value right after its field."""
    is_value = found.end < len(question) and (question.is_name(found.end) or bool(found.field.choices))
    if not is_value or found.field.type in AMOUNT_TYPES or found.field.type == "boolean":
        return None
    values, end = values_at(question, found.field, "=", found.end, is_condition)
    return ([_clause(item, found, "=", values)], end) if values else None


def _choice_before_field(question: Question, schema: SchemaContext, item: ObjectSchema, place: int) -> Found | None:
    """Read `negotiation stage`: part of a value is enough beside the name of its field."""
    for end in range(place + MAX_VALUE_WORDS - 1, place, -1):
        if end >= len(question) or not question.consumed.isdisjoint(range(place, end)):
            continue
        found = schema.fields.at(question, item, end)
        if found is None or found.prefix or not found.field.choices or found.field.type == "multipicklist":
            continue
        value, confidence = best_choice(found.field, question.phrase(place, end))
        if value is not None and confidence >= MIN_CHOICE_CONFIDENCE:
            operator = "!=" if question.take_negation(place) else "="
            literal = soql_string(value)
            return [FilterClause(item.name, found.path, operator, literal, "picklist", confidence, place)], found.end
    return None


def _value_before_field(question: Question, schema: SchemaContext, item: ObjectSchema, place: int) -> Found | None:
    """Read `the Sales department`, `the System Administrator profile`."""
    is_value = question.is_name(place) and question.folded_at(place - 1) in ("the", "a", "an", "with", "in")
    text = text_at(question, place) if is_value else None
    if text is None or text[1] >= len(question):
        return None
    found = schema.fields.comparable_at(question, item, text[1])
    is_text = found is not None and found.field.type == "string" and not found.field.choices
    if found is None or not is_text or (found.field.is_name and not found.prefix):
        return None
    return [_clause(item, replace(found, start=place), "=", [soql_string(text[0])])], found.end


def _pattern_of_name(question: Question, item: ObjectSchema, place: int) -> Found | None:
    """Read `accounts starting with A`: without a field, the name is meant."""
    operator = operator_at(question, place)
    if operator is None or operator[0] not in TEXT_OPERATORS or item.name_field is None:
        return None
    text = text_at(question, operator[1])
    is_like = question.folded[place] == "like"
    is_number = text is not None and text[0][:1].isdigit()  # a year: contracts that end in 2026
    if text is None or is_number or is_like or question.folded_at(place) in ("includes", "including"):
        return None
    return [_clause(item, FieldMention(item.name_field, place, place), operator[0], [text[0]])], text[1]


def _clause(item: ObjectSchema, found: FieldMention, operator: str, values: list[str]) -> FilterClause:
    """Write a condition; several values become IN, patterns become LIKE."""
    if operator in TEXT_OPERATORS:
        value = like_string(values[0], before=not operator.startswith("STARTS"), after=operator != "ENDS")
        if "%" in values[0] and operator.endswith("CONTAINS"):  # a pattern already: like 'A%'
            value = pattern_string(values[0])
        is_negated = operator.startswith("NOT")
        return FilterClause(item.name, found.path, "LIKE", value, "comparison", 0.9, found.start, is_negated)
    if operator in ("IN", "NOT IN") or len(values) > 1:
        operator = "NOT IN" if operator in ("!=", "NOT IN") else "IN"
        return FilterClause(item.name, found.path, operator, f"({', '.join(values)})", "comparison", 0.9, found.start)
    return FilterClause(item.name, found.path, operator, values[0], "comparison", 0.9, found.start)


def _number_before_field(question: Question, schema: SchemaContext, item: ObjectSchema, place: int) -> Found | None:
    """Read `more than 100 employees`, `between 50 and 200 employees`."""
    bounds, end = (
        _range_at(question, place) if question.folded[place] == "between" else _compared_number(question, place)
    )
    found = schema.fields.at(question, item, end) if bounds else None
    if found is None or found.prefix or found.field.type not in AMOUNT_TYPES:
        return None
    return _range_clauses(item, found.path, bounds, place), found.end


def _read_missing_values(question: Question, draft: QueryDraft, schema: SchemaContext, end: int) -> None:
    """Read `without a phone`, `no email`, `that have a website`."""
    for at, word in enumerate(question.folded[:end]):
        has_article = question.folded_at(at + 1) in ("a", "an", "any")
        is_absent = word in ABSENCE
        is_present = word in OWNERSHIP or (word == "with" and has_article and question.folded[at + 1] != "any")
        if not (is_absent or is_present) or not question.is_free(at) or question.folded_at(at + 1) in TOTALS:
            continue
        place = at + 1
        while question.folded_at(place) in ("a", "an", "any"):
            place += 1
        found = schema.fields.at(question, draft.object, place) or _link_at(question, draft, schema, place)
        if (
            found is None
            or _is_other_object(question, found)
            or not question.consumed.isdisjoint(range(found.start, found.end))
        ):
            continue
        is_negated = _is_negated_verb(question, at)
        operator = "=" if is_absent or is_negated else "!="
        draft.add_filter(found.id_path, operator, "null", "phrase", 0.9, at)
        question.consume(at - is_negated, found.end)


def _link_at(question: Question, draft: QueryDraft, schema: SchemaContext, place: int) -> FieldMention | None:
    """Return a parent that is named by its relationship alone: `without a manager`."""
    is_mention = any(mention.start == place for mention in question.mentions)
    return (
        schema.fields.comparable_at(question, draft.object, place) if place < len(question) and not is_mention else None
    )


def _is_other_object(question: Question, found: FieldMention) -> bool:
    """Whether a word names another object rather than a field with a longer name: role, PortalRole."""
    is_exact = squeeze(question.phrase(found.start, found.end)) in (
        squeeze(found.field.name),
        squeeze(found.field.label),
    )
    return not is_exact and any(mention.start == found.start for mention in question.mentions)


def _is_negated_verb(question: Question, at: int) -> int:
    """Return how many words before a verb negate it: `do not have`, `don't have`."""
    if question.folded_at(at - 1) in ("don't", "doesn't", "not", "never"):
        return 1 + (question.folded_at(at - 2) in ("do", "does"))
    return 0


def find_amounts(question: Question, item: ObjectSchema, start: int, end: int) -> list[FilterClause]:
    """Read amounts of money without a field: `over $50k`, `between 10000 and 50000`."""
    main = main_amount(item)
    clauses: list[FilterClause] = []
    for place in range(start, end) if main is not None else ():
        if not question.is_free(place) or main is None:
            continue
        bounds, stop = _range_at(question, place) if question.folded[place] == "between" else _bound_at(question, place)
        if bounds:
            clauses += _range_clauses(item, main.name, bounds, place, "amount", 0.8)
            question.consume(place, stop)
    return clauses


def _range_clauses(  # noqa: PLR0917 - the parts of a condition
    item: ObjectSchema,
    path: str,
    bounds: Iterable[tuple[str, str]],
    place: int,
    source: str = "comparison",
    confidence: float = 0.9,
) -> list[FilterClause]:
    return [FilterClause(item.name, path, *bound, source, confidence, place) for bound in bounds]


def _range_at(question: Question, place: int) -> tuple[list[tuple[str, str]], int]:
    low = number_at(question, place + 1)
    is_range = low is not None and question.folded_at(low[1]) == "and"
    high = number_at(question, low[1] + 1) if low is not None and is_range else None
    if low is None or high is None:
        return [], place
    return [(">=", low[0]), ("<=", high[0])], high[1]


def _compared_number(question: Question, place: int) -> tuple[list[tuple[str, str]], int]:
    operator = operator_at(question, place)
    number = number_at(question, operator[1]) if operator is not None and operator[0] in SIZE_OPERATORS else None
    if operator is None or number is None:
        return [], place
    return [(operator[0], number[0])], number[1]


def _bound_at(question: Question, place: int) -> tuple[list[tuple[str, str]], int]:
    bounds, end = _compared_number(question, place)
    start = end - 1
    while start > place and question.words[start - 1][0] in f"{CURRENCY_SIGNS}0123456789":
        start -= 1
    return (bounds, end) if bounds and _is_money(question, start, bounds[0][1], end) else ([], place)


def _is_money(question: Question, start: int, number: str, end: int) -> bool:
    """Whether a number has a currency sign or a unit, or is large and not a number of days or the like."""
    if question.words[start] in CURRENCY_SIGNS or question.number_at(end - 1) is None:
        return True
    return float(number) >= MIN_MONEY and question.folded_at(end) not in UNITS
