"""Where a query's words stand in a text."""

import re
from collections.abc import Iterator
from functools import lru_cache
from os.path import commonprefix

from bedstone.search.terms import WORD, stop_terms, terms


class Matcher:
    """Finds the words of a query in original text, whatever their endings.

    A regular expression finds words that begin like one of the query's, which is fast; whether they are the same word
    is then asked of the analyzer, once per word.
    """

    def __init__(self, query: str) -> None:
        stems = {word.lower(): stem for word in WORD.findall(query) for stem in terms(word)}
        telling = {word: stem for word, stem in stems.items() if stem not in stop_terms()} or stems
        self.terms = frozenset(telling.values())
        beginnings = sorted({commonprefix([word, stem]) or word for word, stem in telling.items()})  # noqa: RUF071
        self._pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, beginnings))})\w*", re.IGNORECASE)
        self._term = lru_cache(maxsize=4096)(self._wanted)

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and term of every match."""
        for found in self._pattern.finditer(text) if self.terms else ():
            if term := self._term(found[0]):
                yield found.start(), found.end(), term

    def _wanted(self, word: str) -> str | None:
        return next((term for term in terms(word) if term in self.terms), None)
