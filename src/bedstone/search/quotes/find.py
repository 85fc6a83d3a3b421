"""Find a quotation in a text: word for word, as typesetting and scanning leave it, or the nearest stretch."""

from collections.abc import Iterator

from bedstone.search.quotes.edges import cut_before, cut_behind
from bedstone.search.quotes.match import ABSENT, MAX_TEXT, QuoteMatch

MAX_QUOTE_CHARACTERS = 5_000
MAX_OCCURRENCES = 20_000  # places with the same characters that are looked at


def find_quote(text: str, quote: str) -> QuoteMatch:
    """Find a quotation in a text.

    It is confirmed if it is the same except for what typesetting, markup and scanning add. Numbers, names, negations
    and signs must be the same; the edges must not cut a word, nor leave out a negation beside them.
    """
    quote = quote.strip()
    if not quote or len(quote) > MAX_QUOTE_CHARACTERS:
        return ABSENT
    for start in _occurrences(text, quote):
        return QuoteMatch("exact", start, start + len(quote), text[start : start + len(quote)][:MAX_TEXT])
    from bedstone.search.quotes.tolerant import find_tolerant  # noqa: PLC0415 - loads numpy

    return find_tolerant(text, quote)


def _occurrences(text: str, quote: str) -> Iterator[int]:
    """Yield the places where a text has a quotation word for word, without cutting a word."""
    letters = [index for index, character in enumerate(quote) if character.isalnum()]
    first, last = (letters[0], letters[-1] + 1) if letters else (0, len(quote))
    lead, trail = quote[:first], quote[last:]
    start, looked_at = text.find(quote), 0
    while start >= 0 and looked_at < MAX_OCCURRENCES:
        if not letters or _is_whole(text, start + first, start + last, lead, trail):
            yield start
        looked_at += 1
        start = text.find(quote, start + 1)


def _is_whole(text: str, first: int, end: int, lead: str, trail: str) -> bool:
    return cut_before(text, first, lead) is None and cut_behind(text, end, trail) is None
