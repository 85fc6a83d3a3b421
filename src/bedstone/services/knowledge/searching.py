"""Searching the knowledge base: which chunks are the best, and why some may be missing."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bedstone.records import Place, StoredChunk
from bedstone.search.filters import Filter, OneOf
from bedstone.search.hits import Mode, SearchRequest
from bedstone.search.live_index import LiveIndex
from bedstone.services.knowledge.collections import Collections
from bedstone.services.knowledge.filters import matching_documents, parse_filters
from bedstone.services.knowledge.listing import count_documents
from bedstone.services.knowledge.records import FileDocument
from bedstone.services.knowledge.unfinished import UnfinishedDocuments, empty_knowledge_base
from bedstone.store.engine import Store
from bedstone.store.filters import AttributeIn, Condition

MAX_HITS_IN_DOCUMENT = 20


@dataclass(frozen=True)
class KnowledgeQuery:
    """What to search for. Filters are a format or several, a `date_range`, and values of the user's metadata."""

    text: str
    limit: int = 10
    min_score: float = 0.0
    filters: Mapping[str, Any] = field(default_factory=dict)
    collection: str | None = None
    mode: Mode = "hybrid"


@dataclass(frozen=True)
class KnowledgeHit:
    """A chunk that a search found, and the place in it that matched."""

    document: FileDocument
    chunk: StoredChunk
    place: Place
    score: float
    matched_by: str = "words"


class Searching:
    """Asks the index, and leaves out what a new version is about to replace."""

    def __init__(
        self, store: Store, index: LiveIndex, collections: Collections, unfinished: UnfinishedDocuments
    ) -> None:
        self._store = store
        self._index = index
        self._collections = collections
        self._unfinished = unfinished

    def search(self, query: KnowledgeQuery) -> list[KnowledgeHit]:
        """Return the best chunks."""
        if query.collection is not None:
            self._collections.check([query.collection])
        filters = parse_filters(query.filters, self._store)
        if not self._store.documents(limit=1):
            counts = count_documents(self._store, self._unfinished.current())
            raise empty_knowledge_base(counts.pending, counts.failed)
        chosen = self._index_filter(filters, query.collection)
        request = SearchRequest(query.text, chosen, mode=query.mode, limit=query.limit, min_score=query.min_score)
        hits = self._hits(request)
        visible = [hit for hit in hits if not hit.document.replaces]
        if len(visible) < len(hits):  # a new version is being read, and the old one still answers
            visible = [hit for hit in self._hits(replace(request, limit=2 * query.limit)) if not hit.document.replaces]
        return visible[: query.limit]

    def search_document(self, document_id: str, query: str, mode: Mode = "hybrid") -> list[KnowledgeHit]:
        """Return the best chunks of one document, scored as in a search over all of them."""
        chosen = OneOf("document", (document_id,))
        return self._hits(SearchRequest(query, chosen, mode=mode, limit=MAX_HITS_IN_DOCUMENT))

    def _hits(self, request: SearchRequest) -> list[KnowledgeHit]:
        return [
            KnowledgeHit(FileDocument.from_stored(hit.document), hit.chunk, hit.place, hit.score, hit.matched_by)
            for hit in self._index.search(request).hits
            if hit.document is not None and hit.chunk is not None and hit.place is not None
        ]

    def _index_filter(self, filters: Mapping[str, Condition], collection: str | None) -> Filter | None:
        """Return a filter for the index: by format where that is enough, otherwise by documents the store finds."""
        if collection is None:
            match list(filters.values()):
                case []:
                    return None
                case [AttributeIn("format", names)]:
                    return OneOf("format", names)
        return OneOf("document", tuple(matching_documents(filters, collection, self._store)))

    def notice(self, query: str, mode: Mode = "hybrid") -> str | None:
        """Return why a search may not find everything: the state of the index, a language the model does not know."""
        reason = self._index.problem()
        incomplete = f"{reason}. Results may be incomplete." if reason is not None else None
        language = self._index.language_notice(query) if mode == "hybrid" else None
        return " ".join(filter(None, (incomplete, language))) or None

    def count_formats(self, query: str) -> Mapping[str, int]:
        """Return how many chunks with a term of a query have each format."""
        return self._index.count_facets(query, None).get("format", {})
