"""The embedded index: a keyword index on tantivy and a vector index, fused."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bedstone.search.filters import Filter
from bedstone.search.fusion import rank
from bedstone.search.hits import Ranking
from bedstone.search.index import Access, IndexDamaged, IndexQuery, IndexUnwritable, OnProgress
from bedstone.search.indexes.damage import find_damage, translate_damage
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
            keywords = _open_keywords(folder / KEYWORDS, read_only=access == "read")
        if embedder is None:
            return cls(store, keywords)
        from bedstone.search.indexes.vector import VectorIndex  # noqa: PLC0415 - loads numpy

        vectors = folder / VECTORS if folder is not None else None
        dimensions, largest = embedder.dimensions, embedder.max_component
        return cls(store, keywords, VectorIndex(store, dimensions, largest, vectors, read_only=access != "write"))

    @property
    def applied_seq(self) -> int:
        with self._translate_damage():
            seq = self._keywords.last_applied[0]
        return seq if self._vectors is None else min(seq, self._vectors.applied_seq)

    @property
    def has_vectors(self) -> bool:
        return bool(self._vectors)

    @property
    def chunk_count(self) -> int:
        return self._keywords.chunk_count

    @property
    def languages(self) -> Mapping[str, float]:
        with self._translate_damage():
            return self._keywords.languages

    def catch_up(self, on_progress: OnProgress | None = None, *, in_batches: bool = False) -> None:
        try:
            self._catch_up(on_progress, in_batches=in_batches)
        except (OSError, ValueError, RuntimeError) as error:
            raise IndexUnwritable(str(error)) from error

    def _catch_up(self, on_progress: OnProgress | None, *, in_batches: bool) -> None:
        if self._vectors is not None and in_batches:  # they take less time, and find chunks without keywords
            self._vectors.catch_up()
        with self._translate_damage():
            if self._keywords.is_read_only:  # another process updates it
                self._keywords.reload(self._store)
            else:
                self._keywords.catch_up(self._store, on_progress, in_batches=in_batches)
        if self._vectors is not None:
            self._vectors.catch_up()

    def verify(self) -> None:
        if self._vectors is not None:
            self._vectors.verify()
        if reason := self._keywords.find_damage():
            raise IndexDamaged(reason)
        last, stored, found = self._store.last_change(), self._store.counts().chunks, self.chunk_count
        with self._translate_damage():
            applied = self._keywords.last_applied[0]
        is_current = last is not None and applied == last.seq and self._store.last_change() == last
        if is_current and found != stored:
            raise IndexDamaged(f"{KEYWORDS} holds {found:,} of {stored:,} chunks")

    def problem(self) -> str | None:
        return self._vectors.problem if self._vectors is not None else None

    def _translate_damage(self) -> AbstractContextManager[None]:
        return translate_damage(self._keywords.find_damage)

    def search(self, query: IndexQuery) -> Ranking:
        vectors = self._vectors if query.vector is not None else None
        depth = query.depth if vectors else min(query.depth, query.limit)  # nothing else can move up
        with self._translate_damage():
            scores = self._keywords.search(query.text, query.filter, depth, query.weights) if query.text else {}
        nearest = None
        if query.vector is not None and vectors:
            nearest = vectors.search(query.vector, query.depth, query.filter, scores.keys())
        cosines = nearest.cosines if nearest else {}
        span = nearest.span if nearest else None
        return rank(scores, cosines, query.semantic_weight, query.limit, span, coverage=query.coverage)

    def is_quotation(self, text: str) -> bool:
        with self._translate_damage():
            return self._keywords.is_quotation(text)

    def count_facets(self, text: str | None, filter: Filter | None) -> Mapping[str, Mapping[str, int]]:
        with self._translate_damage():
            return self._keywords.count_facets(text, filter)

    def document_frequency(self, term: str) -> int:
        with self._translate_damage():
            return self._keywords.document_frequency(term)

    def suggest_terms(self, word: str) -> list[str]:
        with self._translate_damage():
            return self._keywords.suggest_terms(word)

    def close(self) -> None:
        try:
            if self._vectors is not None:
                self._vectors.save()
        finally:
            with self._translate_damage():
                self._keywords.finish()
            self._keywords.close()


def _open_keywords(folder: Path, *, read_only: bool) -> KeywordIndex:
    def explain() -> str | None:
        return find_damage(folder, reads_all=False) or f"{folder.name} cannot be opened"

    with translate_damage(explain):
        return KeywordIndex(folder, read_only=read_only)
