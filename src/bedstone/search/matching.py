"""Find the terms of a query in a text."""

import re
import unicodedata
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from os.path import commonprefix

from bedstone.search.stemming import COMPOUNDING, languages_of_query, stems_of_word, stop_stems
from bedstone.search.terms import (
    MARKS,
    UNSPACED,
    UNSPACED_RANGES,
    WIDE,
    normalize_query,
    stop_terms,
    terms_of_word,
    unify_letters,
)
from bedstone.search.unspaced import query_characters, query_grams

# The analyzer splits identifiers at underscores.
WORD = re.compile(rf"(?:[^\W_]+|[{MARKS}]+)+")
REST_OF_WORD = re.compile(rf"(?:[^\W_{UNSPACED_RANGES}]+|[{MARKS}]+)*")
REST_OF_ASCII_WORD = re.compile(r"[a-z0-9]*")
NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
# What a word may follow without a space: everything but letters and digits of scripts with spaces.
INSIDE_WORD = re.compile(rf"[^\W_{UNSPACED_RANGES}]")
MIN_INNER_WORD = 5  # characters; shorter ones are found inside words they have nothing to do with
MIN_INNER_STEM = 4
MIN_OTHER_PART = 4  # characters of a compound after the stem
Match = tuple[int, int, str]  # start, end and term


class Matcher:
    """Finds the words of a query in original text, with any ending.

    Plain search finds the words that begin like one of the query's, many times faster than a regular expression built
    for each query; the analyzer then decides, once per word, whether it is the same term.
    """

    def __init__(self, query: str, languages: Mapping[str, float] | None = None) -> None:
        """Prepare a query; `languages` are those of the index, see `languages_of_query`."""
        query = normalize_query(query)
        # Scripts without spaces are matched by pairs of characters, as they are indexed.
        is_spaced = query.isascii()
        self._runs = [] if is_spaced else sorted(query_grams(query))
        self.characters = frozenset(() if is_spaced else query_characters(query)).difference(self._runs)
        words = WORD.findall(UNSPACED.sub(" ", query))
        self._languages = languages_of_query(query, languages) if words else ()
        self._term_of = {stem: stem for word in words for stem in terms_of_word(word)}
        if self._languages:
            self._term_of = self._stems_of(words)
            stop = frozenset[str]().union(*map(stop_stems, self._languages))
        else:
            stop = stop_terms()
        significant = {key: term for key, term in self._term_of.items() if term not in stop} or self._term_of
        self._term_of = significant
        self.terms = frozenset({*significant.values(), *self._runs})
        stems = [(_fold(word), stem) for word in words for stem in self._stems(word) if stem in significant]
        beginnings = {commonprefix(pair) or pair[0] for pair in stems}  # noqa: RUF071
        # A beginning that contains a shorter one is found with it.
        self._beginnings = [
            item for item in beginnings if not any(item[:end] in beginnings for end in range(1, len(item)))
        ]
        # In German and Dutch, a word may stand inside another.
        compounding = [language for language in self._languages if language in COMPOUNDING]
        inner = {
            stem: significant[stem]
            for language in compounding
            for word in words
            if len(word) >= MIN_INNER_WORD
            for stem in stems_of_word(word, language)
            if stem in significant and len(stem) >= MIN_INNER_STEM
        }
        self._inner = tuple(inner.items())
        # How many of the terms a beginning may lead to; none of them is looked for twice if it is one.
        self._reach = {item: len({stem for word, stem in stems if word.startswith(item)}) for item in self._beginnings}
        self._term = lru_cache(maxsize=4096)(self._matching_term if self._languages else self._matching_english_term)

    def find(self, text: str) -> list[Match]:
        """Return every match in order."""
        lower = _fold(text)
        is_ascii = lower.isascii()
        found = [] if is_ascii else self._find_runs(lower)
        rest_of_word = REST_OF_ASCII_WORD if is_ascii else REST_OF_WORD
        if "ar" in self._languages:  # words of a stem differ at the beginning too
            words = ((word.span(), self._term(unify_letters(word[0]))) for word in WORD.finditer(text))
            return sorted([*found, *((*span, term) for span, term in words if term)])
        for beginning in self._beginnings:
            start = lower.find(beginning)
            while start >= 0:
                if start and lower[start - 1].isalnum() and INSIDE_WORD.match(lower, start - 1):
                    start = lower.find(beginning, start + 1)
                    continue
                end = rest_of_word.match(lower, start).end()  # type: ignore[union-attr]  # it always matches
                # The rules of other languages know their accents.
                word = unify_letters(text[start:end]) if self._languages else lower[start:end]
                if term := self._term(word):
                    found.append((start, end, term))
                start = lower.find(beginning, end)
        if self._inner:
            found += self._find_inside(lower, {start for start, _, _ in found})
        return sorted(found)

    def find_terms(self, text: str) -> Set[str]:
        """Return the terms that a text has: in English much faster than `find`, but accents are not folded."""
        if self._languages or self._runs:
            return self.terms.intersection(term for _, _, term in self.find(text))
        lower = text.lower()
        found: set[str] = set()
        for beginning in self._beginnings:
            start = lower.find(beginning)
            while start >= 0 and len(found) < len(self.terms):
                end = REST_OF_WORD.match(lower, start).end()  # type: ignore[union-attr]  # it always matches
                if not (start and lower[start - 1].isalnum()) and (term := self._term(lower[start:end])):
                    found.add(term)
                    if self._reach[beginning] == 1:
                        break
                start = lower.find(beginning, end)
        return found

    def _find_runs(self, lower: str) -> list[Match]:
        """Return the pairs of characters, or else the characters that may be words of their own."""
        found: list[Match] = []
        for terms in (self._runs, self.characters):
            for run in terms:
                start = lower.find(run)
                while start >= 0:
                    found.append((start, start + len(run), run))
                    start = lower.find(run, start + 1)
            if found:
                break
        return found

    def _find_inside(self, lower: str, starts: Set[int]) -> list[Match]:
        """Return stems inside other words, except for words that start at known places."""
        found: list[Match] = []
        for stem, term in self._inner:
            start = lower.find(stem)
            while start >= 0:
                end = start + len(stem)
                if start not in starts and _is_part(lower, start, end):
                    found.append((start, end, term))
                start = lower.find(stem, end)
        return found

    def _stems_of(self, words: Sequence[str]) -> dict[str, str]:
        """Return for each stem of a word, by the rules of any language of the query, the first of them."""
        return {stem: found[0] for word in words if (found := self._stems(word)) for stem in found}

    def _stems(self, word: str) -> tuple[str, ...]:
        own = tuple(stem for language in self._languages for stem in stems_of_word(word, language))
        return (*own, *terms_of_word(word))

    def _matching_english_term(self, word: str) -> str | None:
        return next((term for term in terms_of_word(word) if term in self.terms), None)

    def _matching_term(self, word: str) -> str | None:
        return next((self._term_of[stem] for stem in self._stems(word) if stem in self._term_of), None)


def _is_part(text: str, start: int, end: int) -> bool:
    """Return whether a stem is a part of a compound: something else stands before or after it in the same word."""
    rest = REST_OF_WORD.match(text, end)
    return (start > 0 and text[start - 1].isalnum()) or (rest is not None and len(rest[0]) >= MIN_OTHER_PART)


def _fold(text: str) -> str:
    """Return a text in lower case without accents, with every character in its place."""
    if text.isascii():
        return text.lower()
    # Most texts have few such characters, and translating the others takes ten times as long.
    return NOT_ASCII.sub(lambda found: found[0].translate(FOLDED), text).lower()


class _FoldedCharacters(dict[int, int]):
    """Maps each character to its lower case without accents; filled on demand."""

    def __missing__(self, code: int) -> int:
        sign = chr(code)
        if WIDE.match(sign):
            self[code] = ord(unicodedata.normalize("NFKC", sign).lower()[0])
        elif UNSPACED.match(sign):  # Hangul and voiced kana would be taken apart
            self[code] = code
        else:
            self[code] = ord(unicodedata.normalize("NFD", sign.lower())[:1] or sign)
        return self[code]


FOLDED = _FoldedCharacters({0x131: 0x69})  # the Turkish i without a dot
