"""The index in memory: BM25 and cosines in plain Python, for tests and small stores."""

import threading
from collections import Counter
from collections.abc import Mapping
from difflib import get_close_matches
from math import log
from pathlib import Path
from typing import Self

import numpy as np

from bedstone.records import StoredChunk
from bedstone.search.embedder import Embedder
from bedstone.search.filters import Filter, matches
from bedstone.search.fusion import rank
from bedstone.search.hits import Ranking
from bedstone.search.index import Access, IndexQuery, OnProgress
from bedstone.search.terms import phrase_key, stop_terms, terms
from bedstone.search.unspaced import grams
from bedstone.store.engine import Store

K1 = 1.2
B = 0.75
MIN_QUOTED_TERMS = 4


class MemoryIndex:
    """Reads the whole store again after each change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._chunks: dict[int, StoredChunk] = {}
        self._words: dict[int, Counter[str]] = {}
        self._passages: list[tuple[int, tuple[int, int], np.ndarray]] = []
        self.applied_seq = 0
        self._lock = threading.RLock()

    @classmethod
    def open(cls, store: Store, folder: Path | None, embedder: Embedder | None, access: Access = "write") -> Self:
        return cls(store)

    @property
    def has_vectors(self) -> bool:
        return bool(self._passages)

    @property
    def chunk_count(self) -> int:
        return len(self._chunks)

    def verify(self) -> None:
        """Do nothing: files do not exist."""

    def problem(self) -> str | None:
        return None

    def catch_up(self, on_progress: OnProgress | None = None, *, in_batches: bool = False) -> None:
        last = self._store.last_change()
        if last is None or last.seq == self.applied_seq:
            return
        chunks = {stored.head.rowid: stored for stored in self._store.chunks_between(0, 2**62)}
        words = {rowid: Counter(_words(_text(stored))) for rowid, stored in chunks.items()}
        found = [(item.id, item.passage) for item in self._store.passages_between(0, 2**62)]
        vectors = self._store.vectors([number for number, _ in found])
        passages = [
            (passage.chunk_rowid, (passage.start, passage.end), np.frombuffer(vectors[number], np.float16))
            for number, passage in found
        ]
        with self._lock:  # a search sees the old state or the new one
            self._chunks, self._words, self._passages = chunks, words, passages
            self.applied_seq = last.seq
        if on_progress:
            on_progress(last.seq)

    def search(self, query: IndexQuery) -> Ranking:
        with self._lock:
            return self._search(query)

    def _search(self, query: IndexQuery) -> Ranking:
        passing = self._passing(query.filter)
        scores = self._best({rowid: self._score(query.text, rowid) for rowid in passing}, query.depth)
        cosines: dict[int, float] = {}
        spans: dict[int, tuple[int, int]] = {}
        for rowid, span, vector in self._passages:
            if query.vector is None or rowid not in passing:
                continue
            cosine = float(vector.astype(np.float32) @ query.vector)
            if cosine > cosines.get(rowid, -2.0):
                cosines[rowid], spans[rowid] = cosine, span
        near = self._best(cosines, query.depth, above=-2.0).keys() | scores.keys()
        cosines = {rowid: cosine for rowid, cosine in cosines.items() if rowid in near}
        return rank(scores, cosines, query.semantic_weight, query.limit, spans.get, coverage=query.coverage)

    def is_quotation(self, text: str) -> bool:
        key = phrase_key(text)
        is_long = len(terms(text)) >= MIN_QUOTED_TERMS
        if len(text.split()) == 1 and any(sign.isdigit() for sign in text):
            return any(self.document_frequency(term) for term in terms(text))
        return any(
            phrase_key(stored.head.heading) == key or (is_long and key in phrase_key(stored.plain))
            for stored in self._chunks.values()
        )

    def count_facets(self, text: str | None, filter: Filter | None) -> Mapping[str, Mapping[str, int]]:
        counts: dict[str, dict[str, int]] = {}
        for rowid in self._passing(filter):
            if text is None or self._score(text, rowid):
                for key, value in self._chunks[rowid].head.facets.items():
                    values = counts.setdefault(key, {})
                    values[value] = values.get(value, 0) + 1
        return counts

    def document_frequency(self, term: str) -> int:
        return sum(term in words for words in self._words.values())

    def suggest_terms(self, word: str) -> list[str]:
        known = {term for words in self._words.values() for term in words}
        return [term for term in get_close_matches(word.lower(), known, n=3, cutoff=0.75) if term != word.lower()]

    def close(self) -> None:
        """Nothing is open."""

    def _passing(self, filter: Filter | None) -> set[int]:
        return {
            rowid for rowid, stored in self._chunks.items() if filter is None or matches(filter, stored.head.facets)
        }

    def _score(self, text: str, rowid: int) -> float:
        every = _words(text)
        significant = {term for term in every if term not in stop_terms()} or set(every)
        words = self._words[rowid]
        mean = sum(other.total() for other in self._words.values()) / len(self._words)
        length = K1 * (1 - B + B * words.total() / mean) if mean else K1
        return sum(self._rarity(term) * words[term] * (K1 + 1) / (words[term] + length) for term in significant)

    def _rarity(self, term: str) -> float:
        frequency = self.document_frequency(term)
        return log(1 + (len(self._words) - frequency + 0.5) / (frequency + 0.5))

    @staticmethod
    def _best(scores: Mapping[int, float], depth: int, above: float = 0.0) -> dict[int, float]:
        best = sorted((rowid for rowid, score in scores.items() if score > above), key=lambda item: -scores[item])
        return {rowid: scores[rowid] for rowid in best[:depth]}


def _words(text: str) -> list[str]:
    return [*terms(text), *grams(text)]


def _text(stored: StoredChunk) -> str:
    return "\n".join([stored.head.document_id, *stored.head.breadcrumb, stored.plain])
