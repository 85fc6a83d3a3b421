"""Operators and the values they compare with, as questions write them."""

from bedstone.salesforce.graph.model import Field
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.questions.values import AMOUNT_TYPES, best_choice, field_literal, parse_amount
from bedstone.salesforce.soql.quoting import soql_string

# The first match wins.
OPERATORS = (
    (("greater", "than"), ">"), (("more", "than"), ">"), (("larger", "than"), ">"), (("less", "than"), "<"),
    (("fewer", "than"), "<"), (("smaller", "than"), "<"), (("at", "least"), ">="), (("at", "most"), "<="),
    (("not", "in"), "NOT IN"), (("is", "not"), "!="), (("not", "equal", "to"), "!="), (("over",), ">"),
    (("above",), ">"), (("exceeding",), ">"), (("under",), "<"), (("below",), "<"), (("is",), "="), (("are",), "="),
    (("equals",), "="), (("=",), "="), (("!=",), "!="), ((">=",), ">="), (("<=",), "<="), ((">",), ">"), (("<",), "<"),
    (("in",), "IN"), (("like",), "LIKE"), (("contains",), "LIKE"), (("containing",), "LIKE"), (("of",), "="),
)  # fmt: skip
SIZE_OPERATORS = frozenset({">", "<", ">=", "<="})
CURRENCY_SIGNS = "$€£"
NUMBER_UNITS = frozenset({"million", "thousand", "billion", "k", "m"})
MAX_VALUE_WORDS = 3
MIN_CHOICE_CONFIDENCE = 0.8

# What was read, and where it ends.
Operand = tuple[str, int]


def operator_at(question: Question, place: int) -> Operand | None:
    """Read an operator: `is greater than`, `=`, `not in`."""
    while question.folded_at(place) in ("field", "value"):
        place += 1
    if question.folded_at(place) in ("is", "are", "was"):
        following = operator_at(question, place + 1)
        if following is not None and question.folded[place + 1] not in ("in", "is"):
            return following
    for words, operator in OPERATORS:
        if question.folded[place : place + len(words)] == words:
            return operator, place + len(words)
    return None


def number_at(question: Question, place: int) -> Operand | None:
    """Read a number: `$1.5m`, `20%`, `5 thousand`."""
    if place < len(question) and question.words[place] in CURRENCY_SIGNS:
        place += 1
    if place >= len(question) or not question.words[place][0].isdigit():
        return None
    word, end = question.folded[place], place + 1
    if (word[-1].isdigit() or word.endswith("%")) and question.folded_at(end) in NUMBER_UNITS:
        word, end = f"{question.words[place]} {question.folded[end]}", end + 1
    value = parse_amount(word.rstrip("%"))
    return (value, end) if value is not None else None


def value_at(question: Question, field: Field, operator: str, place: int) -> Operand | None:
    """Read a literal that fits a field."""
    if operator in ("IN", "NOT IN"):
        return _list_at(question, place)
    if place >= len(question):
        return None
    if question.is_quoted(place):
        text = question.text(place)
        choice = _choice(field, text)
        return soql_string(choice[0] if choice is not None else text), place + 1
    if field.type in AMOUNT_TYPES:
        return number_at(question, place)
    return (
        _literal_at(question, field, place)
        or _choice_at(question, field, place)
        or _name_at(question, field, operator, place)
    )


def _literal_at(question: Question, field: Field, place: int) -> Operand | None:
    literal = field_literal(field, question.words[place])
    return (literal[2:], place + 1) if literal is not None and literal.startswith("= ") else None


def _name_at(question: Question, field: Field, operator: str, place: int) -> Operand | None:
    """Read a capitalized word as a text."""
    word = question.words[place]
    is_text = operator in ("=", "!=") and field.type in ("string", "picklist")
    return (soql_string(word), place + 1) if is_text and word[0].isupper() else None


def _list_at(question: Question, place: int) -> Operand | None:
    """Read `('a', 'b')`."""
    values = []
    while place < len(question) and (question.words[place] in "(,)" or question.is_quoted(place)):
        if question.is_quoted(place):
            values.append(soql_string(question.text(place)))
        place += 1
    return (f"({', '.join(values)})", place) if values else None


def _choice_at(question: Question, field: Field, place: int) -> Operand | None:
    for length in range(MAX_VALUE_WORDS, 0, -1):
        choice = _choice(field, question.phrase(place, place + length))
        if choice is not None and choice[1] >= MIN_CHOICE_CONFIDENCE:
            return soql_string(choice[0]), place + length
    return None


def _choice(field: Field, text: str) -> tuple[str, float] | None:
    """Return the value of a picklist that a text means; None for a field with several values at once."""
    if not field.choices or not field.filterable or field.type == "multipicklist":
        return None
    value, confidence = best_choice(field, text.strip().strip("\"'"))
    return (value, confidence) if value is not None else None
