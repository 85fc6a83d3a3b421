"""The embedded index: a keyword index on tantivy and a vector index, fused."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bedstone.search.filters import Filter
from bedstone.search.fusion import rank
from bedstone.search.hits import Ranking
from bedstone.search.index import Access, IndexQuery, OnProgress
from bedstone.search.indexes.keyword import KeywordIndex
from bedstone.search.indexes.opening import KEYWORDS, VECTORS
from bedstone.store.engine import Store

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder
    from bedstone.search.indexes.vector import VectorIndex


class HybridIndex:
    """Two indexes that follow one store."""

    def __init__(self, store: Store, keywords: KeywordIndex, vectors: "VectorIndex | None" = None) -> None:
        self._store = store
        self._keywords = keywords
        self._vectors = vectors

    @classmethod
    def open(cls, store: Store, folder: Path | None, embedder: "Embedder | None", access: Access = "write") -> Self:
        if folder is None or access == "memory":
            keywords = KeywordIndex()
        else:
            keywords = KeywordIndex(folder / KEYWORDS, read_only=access == "read")
        if embedder is None:
            return cls(store, keywords)
        from bedstone.search.indexes.vector import VectorIndex  # noqa: PLC0415 - loads numpy

        file = folder / VECTORS if folder is not None else None
        dimensions, largest = embedder.dimensions, embedder.max_component
        return cls(store, keywords, VectorIndex(store, dimensions, largest, file, read_only=access != "write"))

    @property
    def applied_seq(self) -> int:
        seq = self._keywords.last_applied[0]
        return seq if self._vectors is None else min(seq, self._vectors.applied_seq)

    @property
    def has_vectors(self) -> bool:
        return bool(self._vectors)

    @property
    def chunk_count(self) -> int:
        return self._keywords.chunk_count

    def catch_up(self, on_progress: OnProgress | None = None) -> None:
        if self._keywords.is_read_only:  # another process updates it
            self._keywords.reload()
        else:
            self._keywords.catch_up(self._store, on_progress)
        if self._vectors is not None:
            self._vectors.catch_up()

    def search(self, query: IndexQuery) -> Ranking:
        vectors = self._vectors if query.vector is not None else None
        depth = query.depth if vectors else min(query.depth, query.limit)  # nothing else can move up
        scores = self._keywords.search(query.text, query.filter, depth, query.weights) if query.text else {}
        nearest = None
        if query.vector is not None and vectors:
            nearest = vectors.search(query.vector, query.depth, query.filter, scores.keys())
        cosines = nearest.cosines if nearest else {}
        return rank(scores, cosines, query.semantic_weight, query.limit, nearest.span if nearest else None)

    def is_quotation(self, text: str) -> bool:
        return self._keywords.is_quotation(text)

    def count_facets(self, text: str | None, filter: Filter | None) -> Mapping[str, Mapping[str, int]]:
        return self._keywords.count_facets(text, filter)

    def document_frequency(self, term: str) -> int:
        return self._keywords.document_frequency(term)

    def suggest_terms(self, word: str) -> list[str]:
        return self._keywords.suggest_terms(word)

    def close(self) -> None:
        if self._vectors is not None:
            self._vectors.save()
        self._keywords.finish()
        self._keywords.close()
