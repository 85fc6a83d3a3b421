"""The tokens of a statement with a place to read from: names, paths, lists, and problems at that place."""

from collections.abc import Callable
from typing import Literal, TypeVar

from bedstone.salesforce.soql.lexer import END, Tokens, tokenize, unreadable
from bedstone.salesforce.soql.problems import Deviation, SyntaxProblem
from bedstone.salesforce.soql.tree import Path

Dialect = Literal["rest", "apex", "lenient"]
Item = TypeVar("Item")

RESERVED = frozenset(
    "and as asc bind by cube desc else excludes false first for from having hierarchical in includes last like limit "  # noqa: SIM905
    "lookup not null nulls or rollup select true update using where with".split()
)
# Words that mean something in one place and can be names in all others.
SOFT = frozenset(
    "above above_or_below at below case category data distance end geolocation group offset order reference scope then "  # noqa: SIM905
    "typeof view when".split()
)
MAX_DEPTH = 100  # conditions and subqueries inside each other


class TokenCursor:
    """A place in the tokens of a statement."""

    def __init__(self, text: str, dialect: Dialect = "rest") -> None:
        tokens = tokenize(text)
        self.deviations: list[Deviation] = []
        if "comment" in tokens.kinds:
            self.deviations += _drop_comments(tokens, dialect)
        self.tokens: Tokens = tokens
        self.text = text
        self.dialect = dialect
        self.is_lenient = dialect == "lenient"
        self.kinds = tokens.kinds
        self.words = tokens.words
        self.starts = tokens.starts
        self.ends = tokens.ends
        self.at = 0
        self.depth = 0

    def problem(self, expected: str = "") -> SyntaxProblem:
        """Return the problem with the current token."""
        at = self.at
        if self.kinds[at] == "other":
            return unreadable(self.tokens, at)
        found = self.tokens.source_text(at)
        line = self.text.count("\n", 0, self.starts[at]) + 1
        column = self.starts[at] - self.text.rfind("\n", 0, self.starts[at])
        shown = f'"{found}"' if found else "end of the statement"
        wanted = f" Expected {expected}." if expected else ""
        message = f"Unexpected {shown} at line {line}, column {column}.{wanted}"
        return SyntaxProblem(message, self.text, self.starts[at], found=found, expected=expected)

    def skip(self, word: str) -> bool:
        """Skip a word or sign if it is the current token."""
        if self.words[self.at] == word:
            self.at += 1
            return True
        return False

    def need(self, word: str) -> None:
        """Skip a word or sign that must be the current token."""
        if self.words[self.at] != word:
            raise self.problem(word.upper() if word.isalpha() else f'"{word}"')
        self.at += 1

    def deviate(self, code: str, start: int, end: int, corrected: str | None) -> None:
        """Record something only the lenient dialect accepts."""
        self.deviations.append(Deviation(code, self.text[start:end], corrected, (start, end)))

    def span(self, first: int) -> tuple[int, int]:
        """Return the span from a token to the last one read."""
        return self.starts[first], self.ends[self.at - 1]

    def many(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        """Parse one or more items, separated by commas."""
        items = [item()]
        while self.words[self.at] == ",":
            self.at += 1
            items.append(item())
        return tuple(items)

    def is_name(self, at: int) -> bool:
        """Return whether a token can be a name."""
        return self.kinds[at] == "name" and self.words[at] not in RESERVED

    def name(self, what: str = "a name") -> str:
        """Parse a name."""
        at = self.at
        if not self.is_name(at):
            raise self.problem(what)
        self.at = at + 1
        return self.text[self.starts[at] : self.ends[at]]

    def hard_name(self) -> str:
        """Parse a name that is not a word of the language anywhere."""
        if self.words[self.at] in SOFT:
            raise self.problem("a name")
        return self.name()

    def path(self, what: str = "a field") -> Path:
        """Parse a field with its parents."""
        at = self.at
        if self.kinds[at] != "name" or self.words[at] in RESERVED:
            raise self.problem(what)
        self.at = at + 1
        start, end = self.starts[at], self.ends[at]
        return Path(tuple(self.text[start:end].split(".")), (start, end))

    def deeper(self) -> None:
        """Enter one more level of nesting, up to the maximum."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SyntaxProblem(
                f"The statement is nested more than {MAX_DEPTH} levels deep.", self.text, self.starts[self.at]
            )

    def finish(self) -> None:
        """Check that the statement ends here."""
        if self.words[self.at] == ";" and self.is_lenient:
            self.deviate("SQL_FORM", self.starts[self.at], self.ends[self.at], "")
            self.at += 1
        if self.words[self.at] != END or self.kinds[self.at] != "end":
            raise self.problem()


def _drop_comments(tokens: Tokens, dialect: Dialect) -> list[Deviation]:
    """Remove comments, which only the lenient dialect accepts."""
    dropped = []
    for index in range(len(tokens.kinds) - 1, -1, -1):
        if tokens.kinds[index] == "comment" and dialect == "lenient":
            span = (tokens.starts[index], tokens.ends[index])
            dropped.append(Deviation("SQL_FORM", tokens.source_text(index), "", span))
            for column in (tokens.kinds, tokens.words, tokens.starts, tokens.ends):
                del column[index]
        elif tokens.kinds[index] == "comment":
            tokens.kinds[index] = "other"
    return dropped[::-1]
