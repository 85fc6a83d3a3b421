"""Operators and the values they compare with, as questions write them."""

import re
from collections.abc import Callable

from bedstone.salesforce.graph.model import TEXT_TYPES, Field
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.questions.values import AMOUNT_TYPES, best_choice, field_literal, parse_amount
from bedstone.salesforce.soql.quoting import soql_string
from bedstone.salesforce.synonyms import STOP_WORDS

# The longest match wins. CONTAINS, STARTS and ENDS become patterns of LIKE.
PHRASES = {
    ">=": ("greater than or equal to", "more than or equal to", "greater or equal to", "at least", "no less than",
           "not less than", "a minimum of", ">="),
    "<=": ("less than or equal to", "fewer than or equal to", "smaller than or equal to", "less or equal to",
           "at most", "no more than", "not more than", "up to", "a maximum of", "<="),
    ">": ("greater than", "more than", "larger than", "higher than", "bigger than", "over", "above", "exceeding",
          "exceeds", "exceed", ">"),
    "<": ("less than", "fewer than", "smaller than", "lower than", "under", "below", "<"),
    "!=": ("is not", "are not", "isn't", "aren't", "not equal to", "other than", "does not equal", "!=", "<>"),
    "=": ("equal to", "equals", "is", "are", "was", "=", "of"),
    "NOT IN": ("not in", "not one of"),
    "IN": ("one of", "any of", "in"),
    "CONTAINS": ("contains", "containing", "contain", "includes", "including", "with the word", "like"),
    "NOT CONTAINS": ("does not contain", "doesn't contain", "not containing", "not like"),
    "STARTS": ("starts with", "starting with", "start with", "begins with", "beginning with", "begin with"),
    "ENDS": ("ends with", "ending with", "end with", "ends in", "ending in", "end in"),
}  # fmt: skip
OPERATORS = sorted(
    ((tuple(phrase.split()), operator) for operator, phrases in PHRASES.items() for phrase in phrases),
    key=lambda entry: -len(entry[0]),
)
SIZE_OPERATORS = frozenset({">", "<", ">=", "<="})
TEXT_OPERATORS = frozenset({"CONTAINS", "NOT CONTAINS", "STARTS", "ENDS"})
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
CURRENCY_SIGNS = "$€£"
NUMBER_UNITS = frozenset({"million", "thousand", "billion", "k", "m", "bn"})
UNITS_OF_PROBABILITY = frozenset({"percent", "%"})
MAX_VALUE_WORDS = 4
MAX_TEXT_WORDS = 5
MIN_CHOICE_CONFIDENCE = 0.8

# What was read, and where it ends.
Operand = tuple[str, int]


def operator_at(question: Question, place: int) -> Operand | None:
    """Read an operator: `is greater than`, `=`, `not in`."""
    while question.folded_at(place) in ("field", "value"):
        place += 1
    if question.folded_at(place) in ("is", "are", "was"):
        following = operator_at(question, place + 1)
        if following is not None and question.folded[place + 1] not in ("in", "is", "of"):
            return following
    if question.folded_at(place) == "of":  # an amount of more than 200
        following = operator_at(question, place + 1)
        if following is not None and following[0] in SIZE_OPERATORS:
            return following
    for words, operator in OPERATORS:
        if question.folded[place : place + len(words)] == words:
            return operator, place + len(words)
    return None


def number_at(question: Question, place: int) -> Operand | None:
    """Read a number: `$1.5m`, `20%`, `5 thousand`, `ten`."""
    if place < len(question) and question.words[place] in CURRENCY_SIGNS:
        place += 1
    if place >= len(question) or question.is_quoted(place):
        return None
    count = question.number_at(place)
    word, end = str(count) if count is not None else question.folded[place], place + 1
    if not word[0].isdigit():
        return None
    if (word[-1].isdigit() or word.endswith("%")) and question.folded_at(end) in NUMBER_UNITS:
        word, end = f"{word} {question.folded[end]}", end + 1
    value = parse_amount(word.rstrip("%"))
    end += question.folded_at(end) in UNITS_OF_PROBABILITY
    return (value, end) if value is not None else None


def values_at(
    question: Question, field: Field, operator: str, place: int, is_condition: Callable[[int], bool]
) -> tuple[list[str], int]:
    """Read literals that fit a field, joined by `or`, `and` or commas, up to the next condition."""
    if question.folded_at(place) == "(":
        place += 1
    values: list[str] = []
    end = at = place
    while (found := _value_at(question, field, operator, at)) is not None:
        values.append(found[0])
        end = at = found[1]
        while question.folded_at(at) in (",", "or", "and", "nor"):
            at += 1
        is_list = at > end and operator in ("=", "!=", "IN", "NOT IN") and field.type not in AMOUNT_TYPES
        if not is_list or is_condition(at):
            break
    if values and question.folded_at(end) == ")":
        end += 1
    return values, end


def text_at(question: Question, place: int) -> Operand | None:
    """Read a quoted text, some capitalized words, or one other word."""
    if place >= len(question) or not question.is_free(place):
        return None
    if question.is_quoted(place):
        return question.text(place), place + 1
    end = place
    while end < min(len(question), place + MAX_TEXT_WORDS) and question.is_free(end) and _is_text(question, end):
        end += 1
    if end > place:
        return question.phrase(place, end), end
    word = question.words[place]
    is_word = word.strip("@+")[:1].isalnum() and question.folded[place] not in STOP_WORDS
    return (word, place + 1) if is_word else None


def _is_text(question: Question, place: int) -> bool:
    return question.is_name(place) and not question.is_quoted(place)


def _value_at(question: Question, field: Field, operator: str, place: int) -> Operand | None:
    if place >= len(question) or not question.is_free(place):
        return None
    if operator in TEXT_OPERATORS:
        return text_at(question, place) if field.type in TEXT_TYPES else None
    if question.is_quoted(place):
        choice = _choice(field, question.text(place))
        return soql_string(choice[0] if choice is not None else question.text(place)), place + 1
    if field.type in AMOUNT_TYPES:
        return number_at(question, place)
    return (
        _literal_at(question, field, place)
        or _choice_at(question, field, place)
        or _name_at(question, field, operator, place)
    )


def _literal_at(question: Question, field: Field, place: int) -> Operand | None:
    word = question.words[place]
    if field.type == "datetime" and MOMENT.fullmatch(word):
        return word, place + 1
    literal = field_literal(field, word)
    return (literal[2:], place + 1) if literal is not None and literal.startswith("= ") else None


def _name_at(question: Question, field: Field, operator: str, place: int) -> Operand | None:
    """Read words as a text: capitalized ones, or a single one of a field that holds any text."""
    if operator not in ("=", "!=", "IN", "NOT IN") or field.type not in TEXT_TYPES - {"multipicklist", "textarea"}:
        return None
    is_any_text = not field.choices and field.type in ("string", "email", "phone", "url")
    found = text_at(question, place) if question.is_name(place) or is_any_text else None
    return (soql_string(found[0]), found[1]) if found is not None else None


def _choice_at(question: Question, field: Field, place: int) -> Operand | None:
    for length in range(MAX_VALUE_WORDS, 0, -1):
        if not question.consumed.isdisjoint(range(place, place + length)):
            continue
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
