"""Statements to tokens. A name may hold dots; what is a keyword, the parser decides by its place."""

import re
from dataclasses import dataclass

from bedstone.salesforce.soql.problems import SyntaxProblem

TOKEN = re.compile(
    r"""
    [^\S\r\n]+ | [\r\n]+
    | (?P<datetime> \d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:?\d\d) )
    | (?P<date> \d{4}-\d\d-\d\d )
    | (?P<time> \d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:?\d\d) )
    | (?P<decimal> \d*\.\d+ )
    | (?P<integer> \d+ )
    | (?P<name> [A-Za-z][A-Za-z0-9_.]* )
    | (?P<text> '(?:[^'\\]|\\.)*' )
    | (?P<comment> --[^\n]* | //[^\n]* | /\*.*?\*/ )
    | (?P<sign> <> | != | [()=<>,:+\-] )
    | (?P<other> "(?:[^"\\]|\\.)*" | . )
    """,
    re.VERBOSE | re.DOTALL,
)
END = ""
LOOKAHEAD = 4  # tokens a parser looks at from where it is


@dataclass(slots=True)
class Tokens:
    """Parallel lists, which are fast to walk through: kinds, words (names in lower case), begins and ends."""

    text: str
    kinds: list[str]
    words: list[str]
    starts: list[int]
    ends: list[int]

    def written(self, index: int) -> str:
        """A token as it stands in the statement."""
        return self.text[self.starts[index] : self.ends[index]]


def tokenize(text: str) -> Tokens:
    """Split a statement; the last tokens are its end."""
    kinds: list[str] = []
    words: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for found in TOKEN.finditer(text):
        kind = found.lastgroup
        if kind is None:
            continue
        word = found[0]
        kinds.append(kind)
        words.append(word.lower() if kind == "name" else word)
        start, end = found.span()
        starts.append(start)
        ends.append(end)
    length = len(text.rstrip())
    for _ in range(LOOKAHEAD):
        kinds.append("end")
        words.append(END)
        starts.append(length)
        ends.append(length)
    return Tokens(text, kinds, words, starts, ends)


def unreadable(tokens: Tokens, index: int) -> SyntaxProblem:
    """A token that no statement has."""
    written = tokens.written(index)
    if written == "'":
        return SyntaxProblem("A text is not closed: ' is missing at its end.", tokens.text, tokens.starts[index])
    shown = written if len(written) == 1 else written[:20]
    return SyntaxProblem(f"{shown!r} does not belong into a statement.", tokens.text, tokens.starts[index])
