"""The index in memory: BM25 and cosines in plain Python, for tests and for what is small."""

from collections import Counter
from collections.abc import Mapping
from difflib import get_close_matches
from math import log

import numpy as np

from bedstone.records import StoredChunk
from bedstone.search.fusion import ranked
from bedstone.search.hits import Filter, Found, matches
from bedstone.search.index import Progress, Query
from bedstone.search.terms import bigrams, stop_terms, terms, whole
from bedstone.store.engine import Store

K1, B = 1.2, 0.75
LEAST_QUOTED = 4


class MemoryIndex:
    """Reads the whole store again whenever it changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._chunks: dict[int, StoredChunk] = {}
        self._words: dict[int, Counter[str]] = {}
        self._passages: list[tuple[int, tuple[int, int], np.ndarray]] = []
        self.applied = 0

    @property
    def has_vectors(self) -> bool:
        return bool(self._passages)

    def catch_up(self, progress: Progress | None = None) -> None:
        last = self._store.last_change()
        if last is not None and last.seq != self.applied:
            self.rebuild()
            if progress:
                progress(last.seq)

    def rebuild(self) -> None:
        last = self._store.last_change()
        self._chunks = {stored.head.rowid: stored for stored in self._store.chunks_between(0, 2**62)}
        self._words = {rowid: Counter(_words(_text(stored))) for rowid, stored in self._chunks.items()}
        found = list(self._store.passages_between(0, 2**62))
        vectors = self._store.vectors([item.id for item in found])
        self._passages = [
            (
                item.passage.chunk_rowid,
                (item.passage.start, item.passage.end),
                np.frombuffer(vectors[item.id], np.float16),
            )
            for item in found
        ]
        self.applied = last.seq if last else 0

    def search(self, query: Query) -> Found:
        passing = self._passing(query.condition)
        words = self._best({rowid: self._score(query.text, rowid) for rowid in passing}, query.depth)
        cosines: dict[int, float] = {}
        spans: dict[int, tuple[int, int]] = {}
        for rowid, span, vector in self._passages:
            if query.vector is None or rowid not in passing:
                continue
            cosine = float(vector.astype(np.float32) @ query.vector)
            if cosine > cosines.get(rowid, -2.0):
                cosines[rowid], spans[rowid] = cosine, span
        near = self._best(cosines, query.depth, least=-2.0).keys() | words.keys()
        cosines = {rowid: cosine for rowid, cosine in cosines.items() if rowid in near}
        return ranked(words, cosines, query.vector_weight, query.limit, spans.get)

    def quotes(self, text: str) -> bool:
        wanted = whole(text)
        long = len(terms(text)) >= LEAST_QUOTED
        if len(text.split()) == 1 and any(sign.isdigit() for sign in text):
            return any(self.frequency(term) for term in terms(text))
        return any(
            whole(stored.head.heading) == wanted or (long and wanted in whole(stored.plain))
            for stored in self._chunks.values()
        )

    def facet_counts(self, text: str | None, condition: Filter | None) -> Mapping[str, Mapping[str, int]]:
        counts: dict[str, dict[str, int]] = {}
        for rowid in self._passing(condition):
            if text is None or self._score(text, rowid):
                for key, value in self._chunks[rowid].head.facets.items():
                    values = counts.setdefault(key, {})
                    values[value] = values.get(value, 0) + 1
        return counts

    def frequency(self, term: str) -> int:
        return sum(term in words for words in self._words.values())

    def similar_words(self, word: str) -> list[str]:
        known = {term for words in self._words.values() for term in words}
        return [term for term in get_close_matches(word.lower(), known, n=3, cutoff=0.75) if term != word.lower()]

    def _passing(self, condition: Filter | None) -> set[int]:
        return {
            rowid
            for rowid, stored in self._chunks.items()
            if condition is None or matches(condition, stored.head.facets)
        }

    def _score(self, text: str, rowid: int) -> float:
        every = _words(text)
        telling = {term for term in every if term not in stop_terms()} or set(every)
        words = self._words[rowid]
        mean = sum(other.total() for other in self._words.values()) / len(self._words)
        length = K1 * (1 - B + B * words.total() / mean) if mean else K1
        return sum(self._rarity(term) * words[term] * (K1 + 1) / (words[term] + length) for term in telling)

    def _rarity(self, term: str) -> float:
        frequency = self.frequency(term)
        return log(1 + (len(self._words) - frequency + 0.5) / (frequency + 0.5))

    @staticmethod
    def _best(scores: Mapping[int, float], depth: int, least: float = 0.0) -> dict[int, float]:
        best = sorted((rowid for rowid, score in scores.items() if score > least), key=lambda item: -scores[item])
        return {rowid: scores[rowid] for rowid in best[:depth]}


def _words(text: str) -> list[str]:
    return [*terms(text), *bigrams(text)]


def _text(stored: StoredChunk) -> str:
    return "\n".join([stored.head.document_id, *stored.head.breadcrumb, stored.plain])
