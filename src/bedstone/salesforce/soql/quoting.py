"""Quoting of values in queries, and back: SOQL strings and patterns, SOSL terms. Nothing else may quote."""

import re
from collections.abc import Iterable

from bedstone.errors import InvalidInput

ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
UNESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
ESCAPED = re.compile(r"\\([uU][0-9a-fA-F]{4}|.)", re.DOTALL)
PATTERN_CHARACTERS = re.compile(r"[\\%_]")
PATTERN_ESCAPES = re.compile(r"(\\[\\%_])")
MUST_ESCAPE = re.compile(r"[\\'\n\r\t\b\f]")
SEARCH_CHARACTERS = re.compile(r"([?&|!{}\[\]()^~*:\\\"'+\-])")
SEARCH_WORDS = {"and", "or", "not"}
CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
LETTER_OR_DIGIT = re.compile(r"[^\W_]")


class BadEscape(ValueError):
    """A backslash before a character that cannot be escaped, with its position in the string."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def soql_string(value: str) -> str:
    """Return a text as a literal, with its quotes."""
    return f"'{MUST_ESCAPE.sub(lambda found: ESCAPES[found[0]], value)}'"


def like_pattern(value: str) -> str:
    """Return a pattern that matches a text and nothing else: a backslash escapes `%`, `_` and itself."""
    return PATTERN_CHARACTERS.sub(r"\\\g<0>", value)


def pattern_string(pattern: str) -> str:
    """Return a pattern as a literal, with its quotes."""
    parts = PATTERN_ESCAPES.split(pattern)
    return "'" + "".join(soql_string(part)[1:-1] if index % 2 == 0 else part for index, part in enumerate(parts)) + "'"


def like_string(value: str, *, before: bool = False, after: bool = True) -> str:
    """Return a LIKE literal for texts that start with a value, contain it, or equal it."""
    return pattern_string(f"{'%' if before else ''}{like_pattern(value)}{'%' if after else ''}")


def soql_list(values: Iterable[str]) -> str:
    """Return texts as a list for IN."""
    return f"({', '.join(soql_string(value) for value in values)})"


def unquote(literal: str, *, is_pattern: bool = False) -> str:
    """Return the text of a literal with quotes; a pattern keeps its own escapes."""
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
    """Return the words of a text, escaped for a SOSL term; words without a letter or digit are dropped."""
    words = CONTROLS.sub(" ", text).split()
    return [_search_word(word) for word in words if LETTER_OR_DIGIT.search(word)]


def search_term(text: str, joined_by: str = "AND") -> str:
    """Return a text as a SOSL term without braces: its words joined by AND or OR."""
    words = search_words(text)
    if not words:
        raise InvalidInput("There is nothing to search for: give at least one letter or digit.", parameter="query")
    return f" {joined_by} ".join(words)


def _search_word(word: str) -> str:
    escaped = SEARCH_CHARACTERS.sub(r"\\\1", word)
    return f'"{escaped}"' if word.lower() in SEARCH_WORDS else escaped
