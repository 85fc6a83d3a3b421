"""Every value that goes into a query goes through here: SOQL strings and patterns, SOSL terms, and back."""

import re
from collections.abc import Iterable

from bedstone.errors import InvalidInput

ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
UNESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
ESCAPED = re.compile(r"\\([uU][0-9a-fA-F]{4}|.)", re.DOTALL)
PATTERN_SIGNS = re.compile(r"[\\%_]")
PATTERN_ESCAPES = re.compile(r"(\\[\\%_])")
MUST_ESCAPE = re.compile(r"[\\'\n\r\t\b\f]")
SEARCH_SIGNS = re.compile(r"([?&|!{}\[\]()^~*:\\\"'+\-])")
SEARCH_WORDS = {"and", "or", "not"}
CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
LETTER_OR_DIGIT = re.compile(r"[^\W_]")


class BadEscape(ValueError):
    """A backslash before a character that cannot be escaped; where in the string."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def soql_string(value: str) -> str:
    """A text as a literal, with its quotes."""
    return f"'{MUST_ESCAPE.sub(lambda found: ESCAPES[found[0]], value)}'"


def like_pattern(value: str) -> str:
    """A text as a pattern that matches it and nothing else: in patterns a backslash goes before `%`, `_` and itself."""
    return PATTERN_SIGNS.sub(r"\\\g<0>", value)


def pattern_string(pattern: str) -> str:
    """A pattern as a literal, with its quotes."""
    parts = PATTERN_ESCAPES.split(pattern)
    return "'" + "".join(soql_string(part)[1:-1] if index % 2 == 0 else part for index, part in enumerate(parts)) + "'"


def like_string(value: str, *, before: bool = False, after: bool = True) -> str:
    """A LIKE literal that matches texts that begin with a value, or hold it, or are it."""
    return pattern_string(f"{'%' if before else ''}{like_pattern(value)}{'%' if after else ''}")


def soql_list(values: Iterable[str]) -> str:
    """Texts as a list for IN."""
    return f"({', '.join(soql_string(value) for value in values)})"


def unquoted(literal: str, *, is_pattern: bool = False) -> str:
    """What a literal says, given with its quotes; as a pattern it keeps the backslashes that mean something there."""
    body = literal[1:-1]
    if "\\" not in body:
        return body

    def replace(found: "re.Match[str]") -> str:
        sign = found[1]
        if len(sign) > 1:
            return chr(int(sign[1:], 16))
        if is_pattern and sign in "%_\\":
            return found[0]
        known = UNESCAPES.get(sign.lower())
        if known is None:
            raise BadEscape(found.start() + 1)
        return known

    return ESCAPED.sub(replace, body)


def search_words(text: str) -> list[str]:
    """The words of a text, each escaped for a SOSL term; words without a letter or digit are left out."""
    words = CONTROLS.sub(" ", text).split()
    return [_search_word(word) for word in words if LETTER_OR_DIGIT.search(word)]


def search_phrase(text: str) -> str:
    """A text as one phrase of a SOSL term."""
    escaped = SEARCH_SIGNS.sub(r"\\\1", " ".join(CONTROLS.sub(" ", text).split()))
    if not LETTER_OR_DIGIT.search(escaped):
        raise InvalidInput("There is nothing to search for: give at least one letter or digit.", parameter="query")
    return f'"{escaped}"'


def search_term(text: str, joined_by: str = "AND") -> str:
    """A text as a SOSL term, without braces: its words joined by AND or OR."""
    words = search_words(text)
    if not words:
        raise InvalidInput("There is nothing to search for: give at least one letter or digit.", parameter="query")
    return f" {joined_by} ".join(words)


def _search_word(word: str) -> str:
    escaped = SEARCH_SIGNS.sub(r"\\\1", word)
    return f'"{escaped}"' if word.lower() in SEARCH_WORDS else escaped
