"""The embedded index: words on tantivy and vectors beside each other, fused."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bedstone.search.fusion import ranked
from bedstone.search.hits import Filter, Found
from bedstone.search.index import Progress, Query
from bedstone.search.indexes.keyword import WordIndex
from bedstone.store.engine import Store

if TYPE_CHECKING:
    from bedstone.search.indexes.vector import VectorIndex


class HybridIndex:
    """Two indexes that follow one store."""

    def __init__(self, store: Store, words: WordIndex, vectors: "VectorIndex | None" = None) -> None:
        self._store = store
        self._words = words
        self._vectors = vectors

    @property
    def applied(self) -> int:
        seq = self._words.applied[0]
        return seq if self._vectors is None else min(seq, self._vectors.applied)

    @property
    def has_vectors(self) -> bool:
        return bool(self._vectors)

    def catch_up(self, progress: Progress | None = None) -> None:
        if self._words.is_read_only:  # somebody else brings it up to date
            self._words.reload()
        else:
            self._words.catch_up(self._store, progress)
        if self._vectors is not None:
            self._vectors.catch_up()

    def rebuild(self) -> None:
        self._words.clear()
        if self._vectors is not None:
            self._vectors.rebuild()
        self.catch_up()

    def search(self, query: Query) -> Found:
        vectors = self._vectors if query.vector is not None else None
        depth = query.depth if vectors else min(query.depth, query.limit)  # words alone need no more than is shown
        words = self._words.search(query.text, query.condition, depth, query.weights) if query.text else {}
        near = None
        if query.vector is not None and vectors:
            near = vectors.search(query.vector, query.depth, query.condition, words.keys())
        cosines = near.cosines if near else {}
        return ranked(words, cosines, query.vector_weight, query.limit, near.span if near else None)

    def quotes(self, text: str) -> bool:
        return self._words.quotes(text)

    def facet_counts(self, text: str | None, condition: Filter | None) -> Mapping[str, Mapping[str, int]]:
        return self._words.facet_counts(text, condition)

    def frequency(self, term: str) -> int:
        return self._words.frequency(term)

    def similar_words(self, word: str) -> list[str]:
        return self._words.similar_words(word)
