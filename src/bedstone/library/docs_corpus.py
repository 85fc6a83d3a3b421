"""A docs corpus as agents use it: search with facets and pages, read chunks with their neighbours."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import log
from pathlib import Path
from typing import Any

from bedstone.documents import StoredChunk
from bedstone.errors import NotFound
from bedstone.library.docs_index import IndexFolder
from bedstone.search.cursor import make_cursor, read_cursor
from bedstone.search.embedder import Embedder
from bedstone.search.engine import SearchEngine
from bedstone.search.indexes.hybrid import HybridIndex
from bedstone.search.indexes.vectors import VectorIndex
from bedstone.search.indexes.words import WordIndex
from bedstone.search.matching import Matcher
from bedstone.search.query import AllOf, AnyOf, Filter, Found, Hit, Is, Without
from bedstone.search.relevance import coverage, falling, relevance
from bedstone.search.snippets import Snippet, snippet
from bedstone.store.engines.sqlite import SqliteStore

PART = re.compile(r"[-_]part-[0-9-]+$")
SCOPES = ("sdk-specific", "global-guide")
COLLAPSE_FACTOR = 4  # siblings that may stand between two hits worth showing


class ChunkNotFound(NotFound):
    """No chunk has that id."""

    code = "chunk_not_found"


@dataclass(frozen=True)
class DocHit:
    """One result of a search."""

    stored: StoredChunk
    score: float
    snippet: Snippet


@dataclass(frozen=True)
class Hint:
    """What to try when nothing was found."""

    message: str
    suggested_filters: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class DocPage:
    """A page of results."""

    hits: Sequence[DocHit]
    next_cursor: str | None
    hint: Hint | None


class DocsCorpus:
    """An open index; reading it changes nothing on disk."""

    def __init__(self, index: Path, embedder: Embedder | None = None) -> None:
        folder = IndexFolder(index)
        metadata = folder.metadata
        if metadata is None:
            raise NotFound(f"There is no docs index in {index}. Make one with: bedstone docs build DIR --out {index}")
        generation = index / metadata["index"]["generation"]
        self.metadata = metadata
        self._store = SqliteStore(generation / "store.sqlite", read_only=True)
        self._words = WordIndex(generation / "words", read_only=True)
        known = metadata["embedding"]
        usable = embedder is not None and known is not None and known["fingerprint"] == embedder.fingerprint
        self._embedder = embedder if usable else None
        vectors = None
        if self._embedder is not None:
            vectors = VectorIndex(
                self._store,
                self._embedder.dimensions,
                self._embedder.reach,
                generation / "vectors.usearch",
                read_only=True,
            )
            vectors.catch_up()
        self._engine = SearchEngine(HybridIndex(self._store, self._words, vectors), self._embedder)

    @property
    def taxonomy(self) -> Mapping[str, Mapping[str, Any]]:
        """Every facet with its description and values."""
        taxonomy: Mapping[str, Mapping[str, Any]] = self.metadata["taxonomy"]
        return taxonomy

    def search(self, query: str, filters: Mapping[str, str], limit: int, cursor: str | None = None) -> DocPage:
        """A page of the best chunks; a hint when there is none."""
        key = self.metadata["cursor_key"]
        offset = read_cursor(cursor, key, query, filters) if cursor else 0
        found, ranked = self._ranked(query, filters, offset + limit + 1)
        page = ranked[offset : offset + limit]
        return DocPage(
            hits=self._shown(query, found, page),
            next_cursor=make_cursor(key, offset + limit, query, filters) if len(ranked) > offset + limit else None,
            hint=None if page or offset else self._hint(query, filters),
        )

    def read(self, chunk_id: str, context: int = 0) -> tuple[list[StoredChunk], int, int]:
        """A chunk with its neighbours in the file: the chunks, the target's place among them, the file's total."""
        target = self._store.chunk(chunk_id)
        if target is None:
            raise ChunkNotFound(f"Chunk ID '{chunk_id}' not found. Use search_docs to discover valid chunk IDs.")
        chunks = self._store.chunks_of(target.document)
        first = max(0, target.position - context)
        return chunks[first : target.position + context + 1], target.position - first, len(chunks)

    def close(self) -> None:
        """Let go of the files."""
        self._store.close()

    def _ranked(self, query: str, filters: Mapping[str, str], count: int) -> tuple[Found, list[Hit]]:
        """Hits in order, one of each family of language variants."""
        facets = [key for key, entry in self.taxonomy.items() if entry.get("vector_collapse") and key not in filters]
        wanted = count * COLLAPSE_FACTOR if facets else count
        found = self._engine.search(query, condition=self._condition(filters), limit=wanted)
        hits = [] if self._is_far(found) else found.hits
        if not facets:
            return found, hits
        best: dict[tuple[Any, ...], Hit] = {}
        for start in range(0, len(hits), count):
            part = hits[start : start + count]
            heads = self._store.chunks([hit.rowid for hit in part], texts=False)
            for hit in part:
                best.setdefault(_family(heads[hit.rowid], facets), hit)
            if len(best) >= count:
                break
        return found, list(best.values())[:count]

    def _is_far(self, found: Found) -> bool:
        """Whether no word matched and nothing is near in meaning: neighbours of nonsense are no answer."""
        if "words" in found.signals or self._embedder is None:
            return False
        return max((hit.cosine or 0.0 for hit in found.hits), default=0.0) < self._embedder.floor

    def _condition(self, filters: Mapping[str, str]) -> Filter | None:
        """All filters at once; a language alone also lets in what is written for every language."""
        conditions: list[Filter] = [Is(key, (value,)) for key, value in filters.items()]
        if "language" in filters and "scope" not in filters and "scope" in self.taxonomy:
            language = Is("language", (filters["language"],))
            others = tuple(value for value in self.taxonomy["scope"]["values"] if value not in SCOPES)
            widened: list[Filter] = [
                AllOf((Is("scope", ("sdk-specific",)), language)),
                Is("scope", ("global-guide",)),
                AllOf((AnyOf((Is("scope", others), Without("scope"))), AnyOf((Without("language"), language)))),
            ]
            conditions = [AnyOf(tuple(widened)), *(item for item in conditions if item != language)]
        return AllOf(tuple(conditions)) if conditions else None

    def _shown(self, query: str, found: Found, page: Sequence[Hit]) -> list[DocHit]:
        matcher = Matcher(query)
        weights = {term: log(1 + self._total / (1 + self._words.frequency(term))) for term in matcher.terms}
        chunks = self._store.chunks([hit.rowid for hit in page])
        shown, scores = [], []
        for hit in page:
            stored = chunks[hit.rowid]
            matches = matcher.find(stored.chunk.plain)
            above = matcher.find("\n".join([stored.document, *stored.chunk.breadcrumb]))
            scores.append(relevance(hit.cosine, coverage(weights, {term for _, _, term in (*matches, *above)})))
            shown.append((stored, snippet(stored.chunk.plain, matcher, found.passage(hit.rowid), matches)))
        return [
            DocHit(stored, round(score, 4), text) for (stored, text), score in zip(shown, falling(scores), strict=True)
        ]

    @cached_property
    def _total(self) -> int:
        return self._store.counts().chunks

    def _hint(self, query: str, filters: Mapping[str, str]) -> Hint:
        if not filters or not self._engine.search(query, limit=1).hits:
            return Hint("0 results found. No matches were found for this query in the indexed corpus.")
        said = ", ".join(f"{key}='{value}'" for key, value in filters.items())
        suggestions = {}
        for key, value in filters.items():
            others = {name: kept for name, kept in filters.items() if name != key}
            counts = self._words.facet_counts(query, self._condition(others)).get(key, {})
            if values := sorted(name for name in counts if name != value):
                suggestions[key] = values
        return Hint(f"0 results found for query '{query}' with filters {said}.", suggestions)


def _family(stored: StoredChunk, facets: Sequence[str]) -> tuple[Any, ...]:
    """What language variants of a chunk share: the path but for the facet's segment, heading and part number."""
    chunk = stored.chunk
    segments = stored.document.split("/")
    replaced = False
    for key in facets:
        value = chunk.facets.get(key)
        if value in segments:
            segments[segments.index(value)] = "*"
            replaced = True
    if not replaced:
        return (stored.rowid,)
    part = PART.search(chunk.id)
    return "/".join(segments), chunk.heading, part[0] if part else ""
