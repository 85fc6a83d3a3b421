"""Where a query's words stand in a text."""

import re
from functools import lru_cache
from os.path import commonprefix

from bedstone.search.terms import WORD, stop_terms, terms

REST_OF_WORD = re.compile(r"\w*")
Match = tuple[int, int, str]  # start, end and term


class Matcher:
    """Finds the words of a query in original text, whatever their endings.

    Words that begin like one of the query's are found by plain search, which is many times faster than a regular
    expression made for each query; whether they are the same word is then asked of the analyzer, once per word.
    """

    def __init__(self, query: str) -> None:
        stems = {word.lower(): stem for word in WORD.findall(query) for stem in terms(word)}
        telling = {word: stem for word, stem in stems.items() if stem not in stop_terms()} or stems
        self.terms = frozenset(telling.values())
        beginnings = {commonprefix([word, stem]) or word for word, stem in telling.items()}  # noqa: RUF071
        # One that begins like a shorter one is found with it.
        self._beginnings = [
            item for item in beginnings if not any(item != other and item.startswith(other) for other in beginnings)
        ]
        self._term = lru_cache(maxsize=4096)(self._wanted)

    def find(self, text: str) -> list[Match]:
        """Every place where a word of the query stands, in order."""
        lower = _lower(text)
        found: list[Match] = []
        for beginning in self._beginnings:
            start = lower.find(beginning)
            while start >= 0:
                end = REST_OF_WORD.match(lower, start).end()  # type: ignore[union-attr]  # it always matches
                before = lower[start - 1] if start else " "
                if not (before.isalnum() or before == "_") and (term := self._term(lower[start:end])):
                    found.append((start, end, term))
                start = lower.find(beginning, end)
        return sorted(found)

    def _wanted(self, word: str) -> str | None:
        return next((term for term in terms(word) if term in self.terms), None)


def _lower(text: str) -> str:
    """In lower case, and every character still in its place."""
    lower = text.lower()
    return (
        lower if len(lower) == len(text) else "".join(char if len(char.lower()) > 1 else char.lower() for char in text)
    )
