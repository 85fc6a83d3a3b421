"""Judge what a quotation leaves out where it has an ellipsis."""

import re

from bedstone.search.quotes.words import COORDINATORS, EXCEPTION_MARKS, EXCEPTIONS, NEGATIONS, NEGATIVE_PREFIXES
from bedstone.search.terms import UNSPACED, WORD

ELLIPSIS = re.compile(r"\s*(?:\[\s*(?:\.{3}|…)\s*\]|\(\s*(?:\.{3}|…)\s*\)|…+|\.{3,}|\. \. \.)\s*")
MAX_PARTS = 6
MAX_OMITTED = 1_500  # characters left out
MIN_PART_WORDS = 2
MIN_PART_LETTERS = 8
MIN_PART_UNSPACED = 4
SENTENCE_END = re.compile(
    r"[.!?](?=[\s\"'\u201d\u2019)*_]*\s|\Z)|[\u3002\uff01\uff1f]|\n[ \t]*\n"
    r"|\n[ \t]*(?:[-*+\u2022|#]|\d{1,3}[.)])|;(?=\s)"
)
STARTS_APART = re.compile(r"[\s*_]*[,(\u2013\u2014]|\s+-\s")
ENDS_APART = re.compile(r"[,)\u2013\u2014][\s*_]*\Z|\s-\s+\Z")
NUMBER = re.compile(r"\d")
NAME_OR_NUMBER = re.compile(r"\d|\b[A-Z]")
DIVISION = re.compile(r"[;:|]")
CONTRACTED = re.compile(r"n['\u2019]t\b")


def split_parts(quote: str) -> list[str]:
    """Return the parts of a quotation between its ellipses."""
    return [part for part in ELLIPSIS.split(quote) if part.strip()]


def trim_ellipses(quote: str) -> str:
    """Return a quotation without an ellipsis at its ends."""
    start = ELLIPSIS.match(quote)
    quote = quote[start.end() :] if start else quote
    ends = [match.start() for match in ELLIPSIS.finditer(quote) if match.end() == len(quote)]
    return quote[: ends[0]] if ends else quote


def is_long_enough(part: str) -> bool:
    """Return whether a part says enough to be found on its own."""
    if len("".join(UNSPACED.findall(part))) >= MIN_PART_UNSPACED:
        return True
    words = WORD.findall(part)
    return len(words) >= MIN_PART_WORDS and sum(map(len, words)) >= MIN_PART_LETTERS


def is_harmless(omitted: str, following: str) -> bool:
    """Return whether leaving out a stretch keeps what the sentences around it say.

    Between sentences one of the parts must be whole, or halves of two sentences would make a third. Inside a sentence
    nothing that turns or restricts it may be left out, and nothing that changes its subject.
    """
    ends = list(SENTENCE_END.finditer(omitted))
    if len(omitted) > MAX_OMITTED:
        return False
    if ends:
        return not WORD.search(omitted[: ends[0].start()]) or not WORD.search(omitted[ends[-1].end() :])
    return not _turns(omitted) and (_is_apart(omitted, following) or not _may_change_subject(omitted))


def _turns(omitted: str) -> bool:
    """Return whether a stretch has a negation, an exception or a condition."""
    words = {word.lower() for word in WORD.findall(omitted)}
    marks = (*EXCEPTION_MARKS, *NEGATIVE_PREFIXES)
    return bool(words & (NEGATIONS | EXCEPTIONS) or CONTRACTED.search(omitted)) or any(
        mark in omitted for mark in marks
    )


def _is_apart(omitted: str, following: str) -> bool:
    """Return whether a stretch stands between commas, brackets or dashes, and is not one of a list of values."""
    is_list = NUMBER.search(omitted) and following.isdigit()
    return bool(STARTS_APART.match(omitted) and ENDS_APART.search(omitted)) and not is_list


def _may_change_subject(omitted: str) -> bool:
    words = {word.lower() for word in WORD.findall(omitted)}
    return bool(words & COORDINATORS or NAME_OR_NUMBER.search(omitted) or DIVISION.search(omitted))
