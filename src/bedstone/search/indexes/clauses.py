"""Turn a query into weighted clauses by what an index knows of its terms: the same for every keyword engine."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol

from bedstone.search.index import Weights
from bedstone.search.indexes.languages import LanguageTerms
from bedstone.search.terms import (
    CAMEL,
    UNSPACED,
    WORD,
    extract_identifiers,
    phrase_key,
    separate_scripts,
    split_compound,
    stop_terms,
    terms_of_word,
)

MIN_QUOTED_TERMS = 4  # shorter queries name a subject as often as they quote
QUOTATION_SLOP = 3  # words
MIN_COMMON_CHUNKS = 2_000  # a pair of words that each stand in more chunks, and in 15 % of all, is not looked for
COMMON_SHARE = 0.15
MAX_QUERY_WORDS = 100
MIN_COMPOUND = 6  # characters; a shorter unknown word is a typo, not two words
MAX_COMPOUND = 80  # characters
HEAD_WEIGHT = 0.3
HEADING_WEIGHT = 1.0  # the query is the heading, word for word
IDENTIFIER_WEIGHT = 0.3
PHRASE_WEIGHT = 2.0
HEAD_PHRASE_WEIGHT = 1.0
PAIR_WEIGHT = 0.5


class Dictionary(Protocol):
    """What an index knows of its terms, at one moment."""

    @property
    def num_docs(self) -> int:
        """How many documents the index has, stretches and its marker included."""

    def doc_freq(self, field_name: str, field_value: str, /) -> int:
        """Return how many documents have a term."""

    def terms_with_prefix(self, field_name: str, prefix: str, *, limit: int | None = ...) -> list[tuple[str, int]]:
        """Return the first terms with a prefix, and how many documents have each."""


class Clause(NamedTuple):
    """A term that should occur in a field, or several as a phrase."""

    field: str
    terms: tuple[str, ...]
    weight: float
    slop: int = 0


class QueryReader:
    """Reads queries; what one query looks up several times, to split, recognise and weigh it, is looked up once."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._language_terms = LanguageTerms(dictionary)
        self.terms = lru_cache(maxsize=64)(self._terms)
        self._frequency = lru_cache(maxsize=8192)(lambda term: int(dictionary.doc_freq("all", term)))

    @property
    def languages(self) -> Mapping[str, float]:
        """The share of the chunks in each language that is stemmed by rules of its own."""
        return self._language_terms.languages

    def document_frequency(self, term: str) -> int:
        """Return how many chunks have a term."""
        return self._frequency(term) or self._language_terms.document_frequency(term)

    def is_quotation(self, text: str, has_phrase: Callable[[Sequence[str]], bool]) -> bool:
        """Return whether a query is a heading (perhaps with its parent), an identifier, a number, or quoted text."""
        if any(self._dictionary.doc_freq(field, phrase_key(text)) for field in ("heading", "trail")):
            return True
        every = self.terms(text)
        if len(text.split()) == 1 and not UNSPACED.search(text):  # there, a sentence has no spaces
            is_number = any(sign.isdigit() for sign in text) and any(self.document_frequency(term) for term in every)
            return bool(extract_identifiers(text)) or len(every) > 1 or is_number
        return len(every) >= MIN_QUOTED_TERMS and has_phrase(every)

    def clauses(self, text: str, weights: Weights) -> list[Clause]:
        """Return what to search for; nothing if there is nothing to search for in a query."""
        every = self.terms(text)
        stops = self._language_terms.stop_terms(text)
        significant = list(dict.fromkeys(term for term in every if term not in stops)) or list(dict.fromkeys(every))
        clauses = [Clause("all", (term,), 1.0) for term in significant]
        clauses += [Clause("head", (term,), HEAD_WEIGHT) for term in significant]
        clauses += [Clause("heading", (phrase_key(text),), HEADING_WEIGHT)]
        clauses += [Clause("names", (name.lower(),), IDENTIFIER_WEIGHT) for name in extract_identifiers(text)]
        clauses += [Clause(term.field, (term.text,), term.weight) for term in self._language_terms.find(text)]
        clauses += self._proximity(every, weights)
        return clauses if every or len(clauses) > 1 else []

    def _proximity(self, every: list[str], weights: Weights) -> list[Clause]:
        """Return the whole text as a phrase, and each pair of neighbours; nothing for a single word."""
        if not weights.proximity:
            return []
        # Pairs with a stop word, or of words that much of a large corpus has, add little and cost more than the rest.
        common = max(MIN_COMMON_CHUNKS, COMMON_SHARE * self._dictionary.num_docs)
        pairs = [
            pair
            for pair in pairwise(every)
            if stop_terms().isdisjoint(pair) and min(map(self._frequency, pair)) < common
        ]
        phrases: dict[tuple[str, tuple[str, ...]], float] = {}
        if len(every) > 1:
            phrases = {("all", tuple(every)): PHRASE_WEIGHT, ("head", tuple(every)): HEAD_PHRASE_WEIGHT}
        for pair in pairs:  # one may be the whole query, or occur twice
            phrases["all", pair] = phrases.get(("all", pair), 0.0) + PAIR_WEIGHT
        return [
            Clause(field, words, weight * weights.proximity, weights.phrase_slop)
            for (field, words), weight in phrases.items()
        ]

    def _terms(self, text: str) -> list[str]:
        """Return the terms of a query in order, up to the limit."""
        return [
            part for word in query_words(text) for term in terms_of_word(word) for part in self._resolve(term, word)
        ]

    def _resolve(self, term: str, raw: str) -> list[str]:
        """Return a term the index has, or the words it is composed of: `RateLimitError`, `serviceNamestring`."""
        if self.document_frequency(term) or not MIN_COMPOUND <= len(term) <= MAX_COMPOUND:
            return [term]
        pieces = split_compound(raw.lower(), self._is_word)
        if len(pieces) == 1:
            pieces = [piece for part in CAMEL.findall(raw) for piece in split_compound(part.lower(), self._is_word)]
        return [stem for piece in pieces for stem in terms_of_word(piece)] or [term]

    def _is_word(self, word: str) -> bool:
        return any(self.document_frequency(stem) for stem in terms_of_word(word))


def query_words(text: str) -> list[str]:
    """Return the words of a query, up to the limit."""
    return WORD.findall(separate_scripts(text))[:MAX_QUERY_WORDS]
