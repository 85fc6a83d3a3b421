"""What a parser finds wrong: an error that ends it, or something it lets pass and remembers."""

from dataclasses import dataclass
from typing import Any

from bedstone.errors import InvalidInput
from bedstone.salesforce.soql.tree import Span


class SyntaxProblem(InvalidInput):
    """A statement that cannot be read: why, and where. Lines and columns are counted from 1."""

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
    """Something only the lenient dialect accepts: what it is called, where it is, and how it should be written.

    Without `corrected` there is no other way to say the same.
    """

    code: str
    found: str
    corrected: str | None
    span: Span


def place(text: str, position: int) -> tuple[int, int]:
    """Line and column of a position, counted from 1."""
    before = text[:position]
    return before.count("\n") + 1, position - before.rfind("\n")
