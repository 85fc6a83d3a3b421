"""What a cluster knows of its terms, at one moment: looked up many at a time, and kept."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from bedstone.search.indexes.clauses import MAX_COMPOUND, MIN_COMPOUND, query_words
from bedstone.search.indexes.languages import (
    ENDINGS,
    GRAMS,
    MARK,
    MIN_HEAD,
    MIN_TAIL,
    STEMS,
)
from bedstone.search.indexes.opensearch import bodies
from bedstone.search.stemming import COMPOUNDING, LINKS, STEMMERS, languages_of_query, stems_of_word
from bedstone.search.terms import MAX_PART_CHARACTERS, MIN_PART_CHARACTERS, normalize_query, terms_of_word
from bedstone.search.unspaced import query_characters

if TYPE_CHECKING:
    from bedstone.search.indexes.opensearch.connection import Connection

Term = tuple[str, str]  # a field, and a value
MAX_KEPT = 50_000  # then it starts again
NAMES = frozenset({"heading", "trail"})  # whole texts: the value may have spaces


class ClusterDictionary:
    """Implements `Dictionary` with few requests: everything that a query is likely to need is read at once."""

    def __init__(self, connection: "Connection", index: str, routings: Iterable[str], num_docs: int) -> None:
        self._connection = connection
        self._index = index
        self._routings = [*routings]
        self._known: dict[Term, int] = {}
        self._prefixes: dict[tuple[str, str, int], list[tuple[str, int]]] = {}
        self.num_docs = num_docs + 1  # as many as an index with a marker has

    def doc_freq(self, field_name: str, field_value: str, /) -> int:
        """Return how many documents have a term."""
        term = (field_name, field_value)
        if term not in self._known:
            self.load([term])
        return self._known.get(term, 0)

    def terms_with_prefix(self, field_name: str, prefix: str, *, limit: int | None = None) -> list[tuple[str, int]]:
        """Return the first terms of compounds with a prefix."""
        field = ENDINGS if field_name == ENDINGS else bodies.BEGINNINGS
        key = (field, prefix, limit or bodies.MAX_FACETS)
        if key not in self._prefixes:
            body = bodies.prefix_body(*key)
            answer = self._connection.search(self._index, body, bodies.search_options(prefix, 1))
            buckets = answer.get("aggregations", {}).get("terms", {}).get("buckets", [])
            self._prefixes[key] = [(bucket["key"], int(bucket["doc_count"])) for bucket in buckets]
        return self._prefixes[key]

    def keep(self, term: Term, count: int) -> None:
        """Keep what another request found."""
        self._known[term] = count

    def load(self, terms: Iterable[Term]) -> None:
        """Look up terms that are not known yet."""
        if len(self._known) > MAX_KEPT:
            self._known = {}
        missing = dict.fromkeys(term for term in terms if term not in self._known)
        named = [term for term in missing if term[0] in NAMES or any(sign.isspace() for sign in term[1])]
        for term in named:
            self._known[term] = self._count(term)
        fields: dict[str, list[str]] = {}
        for field, value in missing:
            if (field, value) not in self._known and value:
                fields.setdefault(field, []).append(value)
        if not fields:
            return
        found = dict.fromkeys(missing, 0)
        requests = [bodies.frequencies_body(self._index, fields, routing) for routing in self._routings]
        for answer in self._connection.term_vectors(requests):
            for field, content in answer.get("term_vectors", {}).items():
                for value, counts in content.get("terms", {}).items():
                    if (field, value) in found:
                        found[field, value] += int(counts.get("doc_freq", 0))
        self._known |= {term: count for term, count in found.items() if term not in named}

    def load_query(self, text: str) -> None:
        """Look up what reading a query needs."""
        words = query_words(text)
        self.load([("all", term) for word in words for term in terms_of_word(word)])
        unknown = [
            word
            for word in words
            if MIN_COMPOUND <= len(word) <= MAX_COMPOUND
            and not all(self.doc_freq("all", term) for term in terms_of_word(word))
        ]
        self.load(("all", term) for word in unknown for part in _parts(word.lower()) for term in terms_of_word(part))
        self.load([(GRAMS, character) for character in query_characters(normalize_query(text))])
        if self.languages:
            self.load((STEMS, stem) for stem in self._stems(words, text))

    @cached_property
    def languages(self) -> dict[str, int]:
        """How many chunks are in each language that is stemmed by rules of its own."""
        self.load((STEMS, MARK + language) for language in STEMMERS)
        counts = {language: self.doc_freq(STEMS, MARK + language) for language in STEMMERS}
        return {language: count for language, count in counts.items() if count}

    def _stems(self, words: list[str], text: str) -> Iterator[str]:
        shares = {language: count / self.num_docs for language, count in self.languages.items()}
        for word in words:
            yield from terms_of_word(word)
            for language in languages_of_query(text, shares):
                for stem in stems_of_word(word, language):
                    yield stem
                    if language in COMPOUNDING:
                        yield from _compound_parts(stem, language)

    def _count(self, term: Term) -> int:
        field, value = term
        body = bodies.count_body(bodies.term_query(field, value))
        answer = self._connection.search(self._index, body, bodies.search_options(value, 1))
        return int(answer["hits"]["total"]["value"])


def _parts(word: str) -> Iterator[str]:
    """Yield everything inside a word that may be one of the words it is composed of."""
    yield word[0]
    for start in range(len(word)):
        for end in range(start + MIN_PART_CHARACTERS, min(len(word), start + MAX_PART_CHARACTERS) + 1):
            yield word[start:end]


def _compound_parts(stem: str, language: str) -> Iterator[str]:
    """Yield the parts that a compound may have, as far as they are stems."""
    for start in range(MIN_HEAD, len(stem) - MIN_TAIL + 1):
        yield stem[start:]
        for link in LINKS:
            head = stem[:start]
            bare = head.removesuffix(link)
            if head.endswith(link) and len(bare) >= MIN_HEAD:
                yield from stems_of_word(bare, language)
