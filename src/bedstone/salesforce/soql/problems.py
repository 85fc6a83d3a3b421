"""Problems a parser reports: an error that ends parsing, or a deviation that the lenient dialect accepts."""

from dataclasses import dataclass
from typing import Any

from bedstone.errors import InvalidInput
from bedstone.salesforce.soql.tree import Span


class SyntaxProblem(InvalidInput):
    """A statement that cannot be parsed: why, and where. Lines and columns count from 1."""

    code = "syntax"

    def __init__(self, message: str, text: str, position: int, *, found: str = "", expected: str = "") -> None:
        super().__init__(message, position=position)
        self.position = position
        self.line, self.column = place(text, position)
        self.found = found
        self.expected = expected

    def __reduce__(self) -> tuple[Any, ...]:
        return Exception.__new__, (type(self), self.message), self.__dict__


@dataclass(frozen=True, slots=True)
class Deviation:
    """A form only the lenient dialect accepts: its code, its span, and how to write it.

    `corrected` is None if the same cannot be written another way.
    """

    code: str
    found: str
    corrected: str | None
    span: Span


def place(text: str, position: int) -> tuple[int, int]:
    """Return the line and column of a position, counted from 1."""
    before = text[:position]
    return before.count("\n") + 1, position - before.rfind("\n")
