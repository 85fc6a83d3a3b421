"""One docs corpus as agents use it: search with facets, read chunks with their neighbours."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from bedstone.errors import NotFound
from bedstone.records import ChunkHead, Document, StoredChunk
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.filters import AllOf, AnyOf, Filter, Missing, OneOf
from bedstone.search.hits import Mode, SearchRequest, SearchResponse
from bedstone.search.index import Weights
from bedstone.search.indexes.opening import open_index
from bedstone.search.matching import Matcher
from bedstone.search.retriever import DEPTHS, Profile, Retriever
from bedstone.search.terms import WORD, normalize_query, terms
from bedstone.services.docs.index_folder import IndexFolder
from bedstone.store.opening import open_store

if TYPE_CHECKING:  # keyword search alone never loads numpy
    from bedstone.search.embedder import Embedder

PART = re.compile(r"[-_]part-[0-9-]+$")
SCOPES = ("sdk-specific", "global-guide")
MAX_HASHES_IN_ID = 8  # a path may contain #
MAX_MISSPELT_WORDS = 5  # with suggestions
MAX_LISTED_IDS = 50  # of one file
MAX_SUGGESTED_IDS = 5
MAX_COMPARED_NAMES = 5_000
HINT_DEPTH = 50
MAX_FAST_CHUNKS = 30_000
WINDOWS = (40, *DEPTHS)  # candidates for a page: the first window is enough for most

EmbedderFor = Callable[[Mapping[str, Any]], "Embedder | None"]


class ChunkNotFound(NotFound):
    """No chunk has this id."""

    code = "chunk_not_found"


@dataclass(frozen=True)
class Hint:
    """What to try when a search has no results."""

    message: str
    suggested_filters: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class FileFacts:
    """A file of a corpus, for browsing."""

    path: str
    title: str
    chunks: int


class DocsCorpus:
    """An open index, which is only read.

    `embedder_for` returns the embedder that made the vectors of the index, if it has any.
    """

    def __init__(self, index: Path, embedder_for: EmbedderFor | None = None, *, weights: Weights | None = None) -> None:
        metadata = IndexFolder(index).existing_metadata
        generation = index / metadata["index"]["generation"]
        self.metadata = metadata
        self._store = open_store(generation / "store.sqlite", read_only=True)
        embedding = _query_embedder(metadata["embedding"], embedder_for)
        self._embedder = embedding.embedder
        self._index = open_index(self._store, generation, self._embedder, "read")
        self._index.catch_up()
        # The facets of all corpora that are searched together.
        self.shared_facets: Collection[str] = metadata["taxonomy"].keys()
        self._collapsed = [key for key, entry in metadata["taxonomy"].items() if entry.get("vector_collapse")]
        self._retriever = Retriever(
            self._store,
            self._index,
            embedding,
            Profile(
                weights=weights or Weights(),
                promotes_documents=True,
                windows=WINDOWS,
                group_key=variant_key,
                context_of=_path_and_breadcrumb,
                is_static=True,
            ),
        )

    @property
    def state(self) -> str:
        """Changes whenever the content does; the same for every copy of the index."""
        return str(self.metadata["state"])

    @property
    def is_fast(self) -> bool:
        """Whether searches take a millisecond or two: no model, and not too many chunks."""
        return self._embedder is None and int(self.metadata["stats"]["total_chunks"]) < MAX_FAST_CHUNKS

    @property
    def taxonomy(self) -> Mapping[str, Mapping[str, Any]]:
        """Every facet with its description and values."""
        taxonomy: Mapping[str, Mapping[str, Any]] = self.metadata["taxonomy"]
        return taxonomy

    def search(
        self, query: str, filters: Mapping[str, str], offset: int = 0, limit: int = 10, mode: Mode = "hybrid"
    ) -> SearchResponse:
        """Return a page of hits."""
        return self._retriever.search(self._request(query, filters, offset=offset, limit=limit, mode=mode))

    def has_results(self, query: str, filters: Mapping[str, str]) -> bool:
        """Return whether a search finds anything."""
        return bool(self._retriever.select(self._request(query, filters), 1).candidates)

    def read(self, chunk_id: str, context: int = 0) -> tuple[list[StoredChunk], int, int]:
        """Return a chunk with its neighbours, its position among them, and the number of chunks in the file."""
        target = self._store.chunk(chunk_id)
        if target is None:
            raise ChunkNotFound(chunk_id)
        chunks, position = self._store.chunks_of(target.head.document_id), target.head.position
        first = max(0, position - context)
        return chunks[first : position + context + 1], position - first, len(chunks)

    def nearest_ids(self, chunk_id: str) -> list[str]:
        """Suggest ids: the most similar ones of the file, or those of files with a similar name."""
        hashes = [at for at, sign in enumerate(chunk_id) if sign == "#"]
        ends = (*hashes[-MAX_HASHES_IN_ID:], len(chunk_id))
        parts = [(chunk_id[:end], chunk_id[end + 1 :]) for end in ends]
        path, heading = next(((path, rest) for path, rest in parts if self._store.chunks_of(path)), parts[0])
        ids = [stored.head.id for stored in self._store.chunks_of(path)]
        if ids:
            by_heading = {identity[len(path) + 1 :]: identity for identity in ids}
            near = [by_heading[name] for name in get_close_matches(heading, by_heading, MAX_SUGGESTED_IDS, 0.7)]
            return near or ids[:MAX_LISTED_IDS]
        names = list(self.metadata["files"])
        same = [name for name in names if PurePosixPath(name).name == PurePosixPath(path).name]
        near = same or get_close_matches(path, names[:MAX_COMPARED_NAMES], MAX_SUGGESTED_IDS, 0.7)
        return [stored.head.id for name in near[:MAX_SUGGESTED_IDS] for stored in self._store.chunks_of(name)[:1]]

    def chunks_of(self, path: str) -> list[StoredChunk]:
        """Return the chunks of a file in order."""
        return self._store.chunks_of(path)

    def document(self, path: str) -> Document | None:
        """Return a file."""
        return self._store.document(path)

    @property
    def chunk_count(self) -> int:
        """Number of chunks."""
        return self._index.chunk_count

    def documents(self) -> list[Document]:
        """Return every file, by path."""
        return self._store.documents(limit=2**31)

    @cached_property
    def files(self) -> Sequence[FileFacts]:
        """Every file, by path."""
        counts = self._store.chunk_counts()
        return [FileFacts(item.id, item.title, counts.get(item.id, 0)) for item in self.documents()]

    @cached_property
    def facets(self) -> Mapping[str, Mapping[str, int]]:
        """The number of chunks with each value of each facet."""
        return self._index.count_facets(None, None)

    def text(self, path: str) -> str | None:
        """Return a whole file as it was indexed."""
        chunks = self._store.chunks_of(path)
        return "\n\n".join(stored.text for stored in chunks) if chunks else None

    def close(self) -> None:
        """Release the files."""
        self._store.close()
        self._index.close()

    def count_facets(self, query: str, filters: Mapping[str, str]) -> Mapping[str, Mapping[str, int]]:
        """Count the chunks with each value of each facet, among those with a term of the query."""
        return self._retriever.count_facets(query, self._filter(filters))

    def facet_values(self, query: str, filters: Mapping[str, str], key: str) -> set[str]:
        """Return the values of a facet for which a query has results."""
        if counts := self.count_facets(query, filters).get(key):
            return set(counts)
        nearest = self._retriever.select(self._request(query, filters), HINT_DEPTH).candidates
        heads = self._retriever.heads(nearest)
        facets = (heads[candidate.rowid].facets for candidate in nearest)
        return {values[key] for values in facets if key in values}

    def suggest_spellings(self, query: str) -> list[str]:
        """Return words with a similar spelling for those that the corpus does not have."""
        words = dict.fromkeys(WORD.findall(normalize_query(query)))
        unknown = [word for word in words if not any(map(self._index.document_frequency, terms(word)))]
        return [
            self._as_written(term) for word in unknown[:MAX_MISSPELT_WORDS] for term in self._index.suggest_terms(word)
        ]

    def _as_written(self, term: str) -> str:
        """Return a term as a text has it: the index has words without their endings."""
        for candidate in self._retriever.select(SearchRequest(term, mode="keyword"), 1).candidates:
            plain = self._store.plain_texts([candidate.rowid])[candidate.rowid]
            for start, end, _ in Matcher(term).find(plain):
                return plain[start:end].lower()
        return term

    def _request(
        self, query: str, filters: Mapping[str, str], *, offset: int = 0, limit: int = 1, mode: Mode = "hybrid"
    ) -> SearchRequest:
        collapsed = tuple(key for key in self._collapsed if key not in filters)
        return SearchRequest(query, self._filter(filters), collapsed, mode, offset, limit)

    def _filter(self, filters: Mapping[str, str]) -> Filter | None:
        """Combine all filters; a language alone also includes what is written for every language."""
        conditions: list[Filter] = [OneOf(key, (value,)) for key, value in filters.items()]
        if "language" in filters and "scope" not in filters and "scope" in self.shared_facets:
            language = OneOf("language", (filters["language"],))
            values = self.taxonomy.get("scope", {}).get("values", ())
            others = tuple(value for value in values if value not in SCOPES)
            widened: list[Filter] = [
                AllOf((OneOf("scope", ("sdk-specific",)), language)),
                OneOf("scope", ("global-guide",)),
                AllOf((AnyOf((OneOf("scope", others), Missing("scope"))), AnyOf((Missing("language"), language)))),
            ]
            conditions = [AnyOf(tuple(widened)), *(item for item in conditions if item != language)]
        return AllOf(tuple(conditions)) if conditions else None


def _query_embedder(origin: Mapping[str, Any] | None, embedder_for: EmbedderFor | None) -> QueryEmbedder:
    """Return the embedder that made the vectors: those of another one cannot be compared."""
    if origin is None or embedder_for is None:
        return QueryEmbedder(lambda: None)
    return QueryEmbedder(lambda: embedder_for(origin), fingerprint=origin["fingerprint"])


def _path_and_breadcrumb(head: ChunkHead) -> list[str]:
    return [head.document_id, *head.breadcrumb]


def variant_key(head: ChunkHead, request: SearchRequest) -> tuple[Any, ...]:
    """Return what language variants of a chunk share: path without the facet's segment, heading and part number."""
    segments = head.document_id.split("/")
    replaced = False
    for key in request.collapsed_facets:
        value = head.facets.get(key)
        if value in segments:
            segments[segments.index(value)] = "*"
            replaced = True
    if not replaced:
        return (head.rowid,)
    part = PART.search(head.id)
    return "/".join(segments), head.heading, part[0] if part else ""
