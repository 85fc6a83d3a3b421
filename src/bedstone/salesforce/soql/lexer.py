"""Splits statements into tokens. A name can contain dots; the parser decides by its place what is a keyword."""

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
    | (?P<text> '(?:[^'\\]|\\.)*(?:'|\\?\Z) )
    | (?P<comment> --[^\n]* | //[^\n]* | /\*(?:.*?\*/|.*\Z) )
    | (?P<sign> <> | != | [()=<>,:+\-] )
    | (?P<other> "(?:[^"\\]|\\.)*(?:"|\\?\Z) | . )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)  # an unclosed text extends to the end: searching for its end repeatedly would take quadratic time
END = ""
LOOKAHEAD = 4  # tokens


@dataclass(slots=True)
class Tokens:
    """Parallel lists, which are fast to iterate: kinds, words (names in lower case), starts and ends."""

    text: str
    kinds: list[str]
    words: list[str]
    starts: list[int]
    ends: list[int]

    def source_text(self, index: int) -> str:
        """Return a token as it is written in the statement."""
        return self.text[self.starts[index] : self.ends[index]]


def tokenize(text: str) -> Tokens:
    """Split a statement; the last tokens mark its end."""
    kinds: list[str] = []
    words: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for found in TOKEN.finditer(text):
        kind = found.lastgroup
        if kind is None:
            continue
        word = found[0]
        if kind == "text" and not _is_closed(word):
            kind = "other"
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


def _is_closed(text: str) -> bool:
    """Return whether a text ends with a closing quote."""
    if len(text) < 2 or text[-1] != "'":  # noqa: PLR2004 - both quotes
        return False
    slashes = len(text) - 1 - len(text[:-1].rstrip("\\"))
    return slashes % 2 == 0


def unreadable(tokens: Tokens, index: int) -> SyntaxProblem:
    """Return the problem for a token that no statement contains."""
    written = tokens.source_text(index)
    if written.startswith("'"):
        return SyntaxProblem("A text is not closed: ' is missing at its end.", tokens.text, tokens.starts[index])
    shown = written if len(written) == 1 else written[:20]
    return SyntaxProblem(f"{shown!r} does not belong into a statement.", tokens.text, tokens.starts[index])
