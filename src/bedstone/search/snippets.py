"""The passage to show: where the query's words stand closest together, in the original text."""

import re
from dataclasses import dataclass

from bedstone.search.terms import stop_terms, terms

WORD = re.compile(r"\w+")
LENGTH = 220
MOST_HIGHLIGHTS = 8
SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text to show, and where in it the query's words stand."""

    text: str
    highlights: tuple[tuple[int, int], ...] = ()


def snippet(plain: str, query: str, passage: tuple[int, int] | None = None, length: int = LENGTH) -> Snippet:
    """The densest stretch of matches, preferably inside the passage nearest in meaning."""
    wanted = {term for term in terms(query) if term not in stop_terms()} or set(terms(query))
    text = SPACES.sub(" ", plain).strip()
    start, end = _stretch(plain, passage)
    found = _matches(text, wanted)
    inside = [match for match in found if start <= match[0] < end] or found
    first = _densest(inside, length) if inside else start
    return _cut(text, first, length, found)


def _stretch(plain: str, passage: tuple[int, int] | None) -> tuple[int, int]:
    """The passage's place in the text with its white space folded."""
    if passage is None:
        return 0, len(plain)
    before = len(SPACES.sub(" ", plain[: passage[0]]).lstrip())
    return before, before + len(SPACES.sub(" ", plain[slice(*passage)]))


def _matches(text: str, wanted: set[str]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    known: dict[str, bool] = {}
    for match in WORD.finditer(text) if wanted else ():
        word = match[0]
        if word not in known:
            known[word] = not wanted.isdisjoint(terms(word))
        if known[word]:
            found.append(match.span())
    return found


def _densest(matches: list[tuple[int, int]], length: int) -> int:
    """Where to begin so that most matches are in view; the first such place."""
    best, most = matches[0][0], 0
    for index, (begin, _) in enumerate(matches):
        inside = sum(1 for start, end in matches[index:] if end <= begin + length)
        if inside > most:
            best, most = begin, inside
    return best


def _cut(text: str, first: int, length: int, matches: list[tuple[int, int]]) -> Snippet:
    """Cut at words, with an ellipsis where something is left out; a little before the first match."""
    begin = max(0, min(first - length // 6, len(text) - length))
    if begin > 0:
        begin = text.find(" ", begin) + 1 or begin
    end = min(len(text), begin + length)
    if end < len(text):
        end = max(text.rfind(" ", begin, end), begin + 1)
    head, tail = "..." if begin > 0 else "", "..." if end < len(text) else ""
    shift = len(head) - begin
    marks = [(start + shift, stop + shift) for start, stop in matches if begin <= start and stop <= end]
    return Snippet(f"{head}{text[begin:end].strip()}{tail}", tuple(marks[:MOST_HIGHLIGHTS]))
