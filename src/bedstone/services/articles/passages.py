"""Find the passage of an article that an excerpt comes from: whole lines of the text that agents read."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import accumulate

Span = tuple[int, int]
WORD = re.compile(r"[^\W_]+")
MAX_EXTENSION = 400  # characters to the beginning or the end of a line; a longer line is cut at a sentence
SENTENCE_END = ". "


def find_passage(text: str, excerpt: str, start: int = 0) -> Span | None:
    """Return the lines that an excerpt comes from, not before `start`; None if the text does not have it.

    Excerpts come from the same article in another form: without markup, addresses of links and line breaks.
    """
    places = [found.span() for found in WORD.finditer(text)]
    words = [text[first:last].lower() for first, last in places]
    wanted = [word.lower() for word in WORD.findall(excerpt)]
    found = _find_letters(words, "".join(wanted)) or _find_words(words, wanted)
    if found is None:
        return None
    first, last = places[found[0]][0], places[found[1]][1]
    begin, end = _line_start(text, first), _line_end(text, last)
    return (_skip_space(text, start), end) if begin < start < end else (begin, end)


def _find_letters(words: Sequence[str], wanted: str) -> Span | None:
    """Return the first and the last word of a run with exactly these letters; excerpts may begin inside a word."""
    at = "".join(words).find(wanted) if wanted else -1
    if at < 0:
        return None
    starts = list(accumulate(map(len, words), initial=0))
    return bisect_right(starts, at) - 1, bisect_right(starts, at + len(wanted) - 1) - 1


def _find_words(words: Sequence[str], wanted: Sequence[str]) -> Span | None:
    """Return the first and the last word of the stretch around the longest run that both have."""
    same = SequenceMatcher(None, wanted, words, autojunk=False).find_longest_match()
    if not same.size:
        return None
    first = max(0, same.b - same.a)
    return first, min(len(words) - 1, first + len(wanted) - 1)


def _line_start(text: str, at: int) -> int:
    begin = text.rfind("\n", 0, at) + 1
    if at - begin <= MAX_EXTENSION:
        return begin
    sentence = text.rfind(SENTENCE_END, begin, at)
    return sentence + len(SENTENCE_END) if at - sentence <= MAX_EXTENSION else at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    if end - at <= MAX_EXTENSION:
        return end
    sentence = text.find(SENTENCE_END, at, at + MAX_EXTENSION)
    return sentence + 1 if sentence >= 0 else at


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
