"""Words and meaning asked at once, and one order made of both."""

import logging
from collections.abc import Collection

from bedstone.search.embedder import Embedder
from bedstone.search.fusion import fuse
from bedstone.search.indexes.vectors import ExactVectors, Nearest
from bedstone.search.indexes.words import WordIndex
from bedstone.search.language import vector_weight
from bedstone.search.query import Filter, Found, Hit, Mode
from bedstone.store.engine import StoreEngine

logger = logging.getLogger(__name__)

DEPTH = 100  # candidates a side; 50 cost 0.005 nDCG


class SearchEngine:
    """Searches what a store holds; indexes follow it when told to catch up."""

    def __init__(self, store: StoreEngine, words: WordIndex, embedder: Embedder | None = None) -> None:
        self._store = store
        self._words = words
        self._embedder = embedder
        self._vectors = ExactVectors(embedder.dimensions) if embedder else None

    def catch_up(self) -> None:
        """Make everything searchable that the store has acknowledged."""
        self._words.catch_up(self._store)
        self.load_vectors()

    def load_vectors(self) -> None:
        """Bring the vectors into memory; all that is needed where the word index is on disk and complete."""
        if self._vectors is not None:
            self._vectors.catch_up(self._store)

    def search(self, text: str, *, condition: Filter | None = None, limit: int = 10, mode: Mode = "hybrid") -> Found:
        """The best chunks for a query."""
        depth = max(DEPTH, limit)
        by_words = self._words.search(text, condition, depth) if mode != "vectors" else {}
        near = self._near(text, condition, depth, by_words) if mode != "words" else None
        weight = self._weight(text, mode, by_words) if near and near.cosines else 0.0
        cosines = near.cosines if near and weight else {}
        scores = fuse(by_words, cosines, weight)
        best = sorted(scores, key=lambda rowid: (-scores[rowid], rowid))[:limit]
        signals = (*(("words",) if by_words else ()), *(("vectors",) if cosines else ()))
        return Found([_hit(rowid, scores[rowid], by_words, near) for rowid in best], signals)

    def _near(self, text: str, condition: Filter | None, depth: int, also: Collection[int]) -> Nearest | None:
        if self._embedder is None or not self._vectors:
            return None
        allowed = None if condition is None else self._words.passing(condition)
        return self._vectors.search(self._embedder.embed_query(text), depth, allowed, also)

    def _weight(self, text: str, mode: Mode, by_words: dict[int, float]) -> float:
        if mode == "vectors" or not by_words or self._embedder is None:
            return 1.0
        return vector_weight(text, self._embedder.languages)


def _hit(rowid: int, score: float, by_words: dict[int, float], near: Nearest | None) -> Hit:
    return Hit(
        rowid=rowid,
        score=score,
        words=by_words.get(rowid),
        cosine=near.cosines.get(rowid) if near else None,
        passage=near.span(rowid) if near else None,
    )
