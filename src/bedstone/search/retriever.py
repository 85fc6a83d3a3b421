"""Words and meaning asked at once, and one order made of both."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from bedstone.errors import BedstoneError
from bedstone.search.fusion import by_document
from bedstone.search.hits import Filter, Found, Hit, Mode
from bedstone.search.index import Query, SearchIndex, Weights
from bedstone.search.language import vector_weight
from bedstone.search.terms import asked

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder, Vectors

logger = logging.getLogger(__name__)

# Candidates a side; 50 cost 0.005 nDCG. Deeper pages look further, but what was found before keeps its place.
DEPTHS = (100, 1_000, 5_000)


class SearchEngine:
    """Searches an index; a model that fails costs meaning, not the answer.

    With `document_of`, which tells a chunk's document, questions are answered by documents: a chunk counts more if
    others of its document are good too, and gives way to other documents if a better one of its own came before.
    """

    def __init__(
        self,
        index: SearchIndex,
        embedder: "Embedder | None" = None,
        weights: Weights | None = None,
        document_of: Callable[[int], int] | None = None,
    ) -> None:
        self.index = index
        self._embedder = embedder
        self._weights = weights or Weights()
        self._document_of = document_of
        self._degraded = False

    def search(self, text: str, *, condition: Filter | None = None, limit: int = 10, mode: Mode = "hybrid") -> Found:
        """The best chunks for a query."""
        text = asked(text)
        # Whoever quotes looks for that chunk: neither what is near in meaning nor what its document says counts.
        is_question = mode == "hybrid" and not self.index.quotes(text)
        vector = self._vector(text) if mode == "vectors" or is_question else None
        share = self._share(text, mode) if vector is not None else 0.0
        by_documents = self._document_of if is_question else None
        least = DEPTHS[0] if by_documents else 0
        hits: dict[int, Hit] = {}
        for depth in DEPTHS:
            found = self.index.search(
                Query(
                    text=text if mode != "vectors" else "",
                    vector=vector,
                    vector_weight=share,
                    condition=condition,
                    limit=max(limit, least) + len(hits),
                    depth=depth,
                    weights=self._weights,
                )
            )
            ranked = found.hits
            if by_documents and not hits:
                ranked = [*by_document(ranked[:least], by_documents), *ranked[least:]]
            for hit in ranked:
                hits.setdefault(hit.rowid, hit)
            if len(hits) >= limit or found.candidates < depth:
                break
        return replace(found, hits=list(hits.values())[:limit])

    def _vector(self, text: str) -> "Vectors | None":
        if self._embedder is None or not self._embedder.has_meaning or not self.index.has_vectors:
            return None
        try:
            vector = self._embedder.embed_query(text)
        except BedstoneError as error:
            if not self._degraded:
                logger.warning(
                    "vector search degraded to lexical-only: %s", error.message, extra={"action": "degraded"}
                )
            self._degraded = True
            return None
        if self._degraded:
            logger.info("vector search is back", extra={"action": "recovered"})
            self._degraded = False
        return vector

    def _share(self, text: str, mode: Mode) -> float:
        assert self._embedder is not None
        if mode == "vectors":
            return 1.0
        share, meaning = vector_weight(text, self._embedder.languages), self._weights.meaning
        return share * meaning / (share * meaning + 1 - share)
