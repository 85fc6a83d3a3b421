"""Find the terms of a query in a text."""

import re
import unicodedata
from functools import lru_cache
from os.path import commonprefix

from bedstone.search.terms import MARKS, UNSPACED, bigrams, normalize_query, stop_terms, terms_of_word

# The analyzer splits identifiers at underscores.
WORD = re.compile(rf"(?:[^\W_]+|[{MARKS}]+)+")
REST_OF_WORD = re.compile(rf"(?:[^\W_]+|[{MARKS}]+)*")
Match = tuple[int, int, str]  # start, end and term


class Matcher:
    """Finds the words of a query in original text, with any ending.

    Plain search finds the words that begin like one of the query's, many times faster than a regular expression built
    for each query; the analyzer then decides, once per word, whether it is the same term.
    """

    def __init__(self, query: str) -> None:
        query = normalize_query(query)
        spaced = UNSPACED.sub(" ", query)
        # Scripts without spaces are matched by pairs of characters, as they are indexed.
        self._runs = sorted(set(bigrams(query)))
        stems = {_fold(word): stem for word in WORD.findall(spaced) for stem in terms_of_word(word)}
        significant = {word: stem for word, stem in stems.items() if stem not in stop_terms()} or stems
        self.terms = frozenset({*significant.values(), *self._runs})
        beginnings = {commonprefix([word, stem]) or word for word, stem in significant.items()}  # noqa: RUF071
        # A beginning that contains a shorter one is found with it.
        self._beginnings = [
            item for item in beginnings if not any(item[:end] in beginnings for end in range(1, len(item)))
        ]
        self._term = lru_cache(maxsize=4096)(self._matching_term)

    def find(self, text: str) -> list[Match]:
        """Return every match in order."""
        lower = _fold(text)
        found: list[Match] = []
        for run in self._runs:
            start = lower.find(run)
            while start >= 0:
                found.append((start, start + len(run), run))
                start = lower.find(run, start + 1)
        for beginning in self._beginnings:
            start = lower.find(beginning)
            while start >= 0:
                end = REST_OF_WORD.match(lower, start).end()  # type: ignore[union-attr]  # it always matches
                before = lower[start - 1] if start else " "
                if not before.isalnum() and (term := self._term(lower[start:end])):
                    found.append((start, end, term))
                start = lower.find(beginning, end)
        return sorted(found)

    def _matching_term(self, word: str) -> str | None:
        return next((term for term in terms_of_word(word) if term in self.terms), None)


def _fold(text: str) -> str:
    """Return a text in lower case without accents, with every character in its place."""
    return text.lower() if text.isascii() else text.translate(FOLDED)


class _FoldedCharacters(dict[int, int]):
    """Maps each character to its lower case without accents; filled on demand."""

    def __missing__(self, code: int) -> int:
        self[code] = ord(unicodedata.normalize("NFD", chr(code).lower())[:1] or chr(code))
        return self[code]


FOLDED = _FoldedCharacters()
