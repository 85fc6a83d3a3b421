"""The fields of the keyword index for other languages than English: stems, ends of compounds, characters."""

import unicodedata
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from bedstone.search.stemming import (
    COMPOUNDING,
    LINKS,
    STEMMERS,
    language_of_text,
    languages_of_query,
    stems,
    stems_of_word,
    stop_stems,
)
from bedstone.search.terms import WORD, stop_terms
from bedstone.search.unspaced import grams, query_characters, query_grams

GRAMS = "grams"  # of scripts without spaces
STEMS = "stems"  # of chunks in a language with rules of its own
ENDINGS = "endings"  # the same stems written backwards, where words are compounds
MARK = "="  # before the name of a language: it counts the chunks in it
CHARACTER_WEIGHT = 0.2  # a character that may be a word says less than a pair
COMPOUND_WEIGHT = 0.4  # another word that has this one inside
MIN_COMPOUND_STEM = 8  # characters
MIN_HEAD = 3
MIN_TAIL = 4
MIN_SURE_PART = 6  # a part this long is one, even where no text has the other part alone
MAX_COMPOUNDS = 50  # to look at for one word
MAX_QUERY_WORDS = 100


class WeightedTerm(NamedTuple):
    """A term to search a field for."""

    field: str
    text: str
    weight: float


def language_fields(head: list[str], repeated_head: list[str], plain: str) -> dict[str, str]:
    """Return the fields of a chunk; `repeated_head` has each heading as often as it counts."""
    fields = {GRAMS: " ".join(grams("\n".join([*head, plain])))}
    if language := language_of_text(plain):
        found = stems("\n".join([*repeated_head, plain]), language)
        fields[STEMS] = " ".join([MARK + language, *found])
        if language in COMPOUNDING:
            fields[ENDINGS] = " ".join({stem[::-1]: None for stem in found if len(stem) >= MIN_COMPOUND_STEM})
    return fields


class LanguageTerms:
    """Turns queries into terms of these fields, as far as an index has chunks in their languages."""

    def __init__(self, searcher: Any) -> None:
        self._searcher = searcher
        self._frequency = lru_cache(maxsize=8192)(self._count)
        self._languages_of = lru_cache(maxsize=64)(lambda text: languages_of_query(text, self.languages))

    @cached_property
    def languages(self) -> Mapping[str, float]:
        """The share of the chunks in each language."""
        chunks = max(1, self._searcher.num_docs - 1)  # without the marker
        counts = {language: self._searcher.doc_freq(STEMS, MARK + language) for language in STEMMERS}
        return {language: count / chunks for language, count in counts.items() if count}

    def document_frequency(self, term: str) -> int:
        """Return how many chunks have a stem, or a character of a script without spaces."""
        if len(term) == 1:
            return 0 if term.isascii() else self._frequency(GRAMS, term)
        return self._frequency(STEMS, term) if self.languages else 0

    def stop_terms(self, text: str) -> frozenset[str]:
        """Return the terms of the most common words in the languages a query may be in."""
        if not self.languages:
            return stop_terms()
        found = self._languages_of(text)
        return stop_terms().union(*(stop_stems(language) for language in found)) if found else stop_terms()

    def find(self, text: str) -> list[WeightedTerm]:
        """Return what to search for in addition to the words of a query."""
        if not self.languages and text.isascii():
            return []
        found = [WeightedTerm(GRAMS, gram, 1.0) for gram in query_grams(text)]
        known = {term.text for term in found}
        found += [
            WeightedTerm(GRAMS, character, CHARACTER_WEIGHT)
            for character in query_characters(text)
            if character not in known
        ]
        weights: dict[str, float] = {}
        for language in self._languages_of(text):
            for word in WORD.findall(text)[:MAX_QUERY_WORDS]:
                for stem in stems_of_word(word, language):
                    if stem in stop_stems(language):
                        continue
                    weights[stem] = 1.0
                    for other in self._compounds(word, stem, language):
                        weights.setdefault(other, COMPOUND_WEIGHT)
        return [*found, *(WeightedTerm(STEMS, stem, weight) for stem, weight in weights.items())]

    def _compounds(self, word: str, stem: str, language: str) -> list[str]:
        """Return the stems of compounds with a word in them, and of the parts of a word that is one itself."""
        if language not in COMPOUNDING or len(stem) < MIN_TAIL:
            return []
        return [
            *self._ending_with(stem, language, is_sure=len(word) >= MIN_SURE_PART),
            *self._beginning_with(fold(word)),
            *(self._beginning_with(stem) if len(stem) >= MIN_SURE_PART else ()),
            *self._parts(stem, language),
        ]

    def _ending_with(self, stem: str, language: str, *, is_sure: bool) -> Iterator[str]:
        for term, _ in self._searcher.terms_with_prefix(ENDINGS, stem[::-1], limit=MAX_COMPOUNDS):
            compound = term[::-1]
            head = compound.removesuffix(stem)
            if len(head) >= MIN_HEAD and (is_sure or self._heads(head, language)):
                yield compound

    def _beginning_with(self, word: str) -> Iterator[str]:
        for compound, _ in self._searcher.terms_with_prefix(STEMS, word, limit=MAX_COMPOUNDS):
            rest = compound.removeprefix(word)
            is_sure = len(word) >= MIN_SURE_PART and len(rest) >= MIN_TAIL
            if is_sure or any(self._is_tail(rest.removeprefix(link)) for link in LINKS if rest.startswith(link)):
                yield compound

    def _parts(self, stem: str, language: str) -> list[str]:
        for start in range(MIN_HEAD, len(stem) - MIN_TAIL + 1 if len(stem) >= MIN_COMPOUND_STEM else 0):
            head, tail = stem[:start], stem[start:]
            if self._is_tail(tail) and (heads := self._heads(head, language)):
                return [*heads, tail]
        return []

    def _is_tail(self, stem: str) -> bool:
        return len(stem) >= MIN_TAIL and self._frequency(STEMS, stem) > 0

    def _heads(self, head: str, language: str) -> list[str]:
        """Return the stem of the first part of a compound, without the letters that link it; empty if it is unknown."""
        for link in LINKS:
            bare = head.removesuffix(link)
            if head.endswith(link) and len(bare) >= MIN_HEAD:
                found = [stem for stem in stems_of_word(bare, language) if self._frequency(STEMS, stem)]
                if found:
                    return found
        return []

    def _count(self, field: str, term: str) -> int:
        return int(self._searcher.doc_freq(field, term))


def fold(word: str) -> str:
    """Return a word in small letters without accents."""
    return "".join(sign for sign in unicodedata.normalize("NFD", word.casefold()) if not unicodedata.combining(sign))
