"""One docs corpus as agents use it: search with facets, read chunks with their neighbours."""

import logging
import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bedstone.errors import NotFound
from bedstone.records import ABOUT, CHUNK_SEPARATOR, ChunkHead, Document, StoredChunk
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.filters import AllOf, AnyOf, Filter, Missing, OneOf
from bedstone.search.hits import Hit, Mode, SearchRequest, SearchResponse
from bedstone.search.index import Access, IndexDamaged, IndexVersionMismatch, Weights
from bedstone.search.indexes.opening import open_index
from bedstone.search.retriever import DEPTHS, Profile, Retriever, tune_profile
from bedstone.services.docs.hints import correct_identifiers, nearest_ids, suggest_spellings, unknown_words
from bedstone.services.docs.index_folder import IndexFolder
from bedstone.services.docs.metadata import EmbeddingOrigin, Facet
from bedstone.services.docs.release_notes import asks_for_release_notes, is_release_notes
from bedstone.services.docs.variants import Variants
from bedstone.store.opening import open_store

if TYPE_CHECKING:  # keyword search alone never loads numpy
    from bedstone.search.embedder import Embedder
    from bedstone.settings import CorpusTuning

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
ANCHOR = re.compile(r"[\w:.-]+")
SCOPES = ("sdk-specific", "global-guide")
HINT_DEPTH = 50
MAX_VERSIONS = 4  # of a section among the candidates, so that others are among them too
MAX_FAST_CHUNKS = 30_000
MAX_KEPT_FILES = 1_000
WINDOWS = (40, *DEPTHS)  # candidates for a page: the first window is enough for most

EmbedderFor = Callable[[Mapping[str, Any]], "Embedder | None"]


class ChunkNotFound(NotFound):
    """No chunk has this id."""

    code = "chunk_not_found"


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

    def __init__(
        self,
        index: Path,
        embedder_for: EmbedderFor | None = None,
        *,
        weights: Weights | None = None,
        tuning: "CorpusTuning | None" = None,
    ) -> None:
        metadata = IndexFolder(index).existing_metadata
        generation = index / metadata.generation
        self.metadata = metadata
        self._store = open_store(generation / "store.sqlite", read_only=True)
        embedding = _query_embedder(metadata.embedding, embedder_for)
        self._embedding = embedding
        self._embedder = embedding.embedder
        self._generation = generation
        self._lock = threading.Lock()
        self._starts: dict[str, list[int]] = {}  # of the chunks of a file
        self.problem: str | None = None  # with the index in the folder; the corpus answers from memory then
        # The facets of all corpora that are searched together.
        self.shared_facets: Collection[str] = metadata.taxonomy.keys()
        self._collapsed = [key for key, facet in metadata.taxonomy.items() if facet.collapses_variants]
        variants = Variants(self._store, metadata.files)
        profile = Profile(
            weights=replace(weights or Weights(), max_versions=MAX_VERSIONS if variants.has_versions else None),
            promotes_documents=True,
            secondary_documents=self._find_release_notes,
            asks_for_secondary=asks_for_release_notes,
            windows=WINDOWS,
            # Whether a chunk is a hit must not depend on the others, or a filter would lose hits.
            skips_unrelated=True,
            group_key=variants.key,
            is_variant=variants.are_same,
            preferred=variants.choose_version if variants.has_versions else None,
            context_of=self._context_of,
            is_static=True,
        )
        self._profile = tune_profile(profile, tuning)
        try:
            self._use("read")
        except (IndexDamaged, IndexVersionMismatch) as error:
            self._use_memory(error)
        except BaseException:
            self._store.close()
            raise

    def _use(self, access: Access) -> None:
        index = open_index(self._store, self._generation, self._embedder, access)
        index.catch_up()
        self._retriever = Retriever(self._store, index, self._embedding, self._profile)

    def _use_memory(self, error: IndexDamaged | IndexVersionMismatch) -> None:
        """Build the index again in memory: the published files belong to `bedstone docs build`."""
        state = "damaged" if isinstance(error, IndexDamaged) else "outdated"
        self.problem = (
            f"The index in {self._generation.parent} is {state}, searches use a copy in memory: "
            f"{error.message.rstrip('.')}. "
            f"Build it again with: bedstone docs build DIR --out {self._generation.parent} --rebuild-cache"
        )
        logger.error("%s", self.problem, extra={"action": "index_rebuilt"})
        self._use("memory")

    def _answer(self, ask: Callable[[Retriever], Answer]) -> Answer:
        retriever = self._retriever
        try:
            return ask(retriever)
        except IndexDamaged as error:
            self._replace(retriever, error)
            return ask(self._retriever)

    def _replace(self, retriever: Retriever, error: IndexDamaged) -> None:
        with self._lock:
            if self._retriever is retriever:
                self._use_memory(error)

    def verify(self) -> None:
        """Read all files of the index; some damage is not seen by any search."""
        retriever = self._retriever
        try:
            retriever.index.verify()
        except IndexDamaged as error:
            self._replace(retriever, error)

    @property
    def retriever(self) -> Retriever:
        """The retriever, to measure other settings with."""
        return self._retriever

    @property
    def state(self) -> str:
        """Changes whenever the content does; the same for every copy of the index."""
        return self.metadata.state

    @property
    def is_fast(self) -> bool:
        """Whether searches take a millisecond or two: no model, and not too many chunks."""
        return self._embedder is None and self.metadata.stats.total_chunks < MAX_FAST_CHUNKS

    @property
    def taxonomy(self) -> Mapping[str, Facet]:
        """Every facet with its description and values."""
        return self.metadata.taxonomy

    def search(
        self, query: str, filters: Mapping[str, str], offset: int = 0, limit: int = 10, mode: Mode = "hybrid"
    ) -> SearchResponse:
        """Return a page of hits."""
        request = self.make_request(query, filters, offset=offset, limit=limit, mode=mode)
        response = self._answer(lambda retriever: retriever.search(request))
        if all(hit.head.span is not None for hit in response.hits):
            return response
        return replace(response, hits=tuple(map(self._with_span, response.hits)))

    def _with_span(self, hit: Hit) -> Hit:
        """Return a hit with the range of its chunk in the whole file, which indexes of earlier versions do not have."""
        starts = self._chunk_starts(hit.head.document_id)
        start, end = starts[hit.head.position], starts[hit.head.position + 1] - len(CHUNK_SEPARATOR)
        return replace(hit, head=replace(hit.head, span=(start, end)))

    def _chunk_starts(self, path: str) -> list[int]:
        if path not in self._starts:
            if len(self._starts) > MAX_KEPT_FILES:  # another thread may still read the old ones
                self._starts = {}
            lengths = (len(stored.text) + len(CHUNK_SEPARATOR) for stored in self._store.chunks_of(path))
            self._starts[path] = list(accumulate(lengths, initial=0))
        return self._starts[path]

    def language_notice(self, query: str) -> str | None:
        """Return why semantic search does not take part in a query in another script."""
        return self._answer(lambda retriever: retriever.language_notice(query))

    def has_results(self, query: str, filters: Mapping[str, str]) -> bool:
        """Return whether a search finds anything."""
        request = self.make_request(query, filters)
        return self._answer(lambda retriever: bool(retriever.select(request, 1).candidates))

    def read(self, chunk_id: str, context: int = 0) -> tuple[list[StoredChunk], int, int]:
        """Return a chunk with its neighbours, its position among them, and the number of chunks in the file."""
        target = self._store.chunk(chunk_id) or self._chunk_at_anchor(chunk_id)
        if target is None:
            raise ChunkNotFound(chunk_id)
        chunks, position = self._store.chunks_of(target.head.document_id), target.head.position
        first = max(0, position - context)
        return chunks[first : position + context + 1], position - first, len(chunks)

    def _chunk_at_anchor(self, chunk_id: str) -> StoredChunk | None:
        """Return the chunk with a heading that has this id of its own, as links to the page use it."""
        path, _, anchor = chunk_id.rpartition("#")
        if not path or not ANCHOR.fullmatch(anchor):
            return None
        mark = re.compile(rf"^.*\S.*\{{(?::|/\*)?\s*#?{re.escape(anchor)}(?=[\s*}}])[^{{}}\n]*\}}\s*$", re.MULTILINE)
        return next((stored for stored in self._store.chunks_of(path) if mark.search(stored.text)), None)

    def nearest_ids(self, chunk_id: str) -> list[str]:
        """Suggest ids for one that does not exist."""
        return nearest_ids(self._store, list(self.metadata.files), chunk_id)

    def chunks_of(self, path: str) -> list[StoredChunk]:
        """Return the chunks of a file in order."""
        return self._store.chunks_of(path)

    def document(self, path: str) -> Document | None:
        """Return a file."""
        return self._store.document(path)

    @property
    def chunk_count(self) -> int:
        """Number of chunks."""
        return self._retriever.index.chunk_count

    def documents(self) -> list[Document]:
        """Return every file, by path."""
        return self._store.documents(limit=2**31)

    @cached_property
    def files(self) -> Sequence[FileFacts]:
        """Every file, by path."""
        counts = self._store.chunk_counts()
        return [FileFacts(item.id, item.title, counts.get(item.id, 0)) for item in self.documents()]

    @cached_property
    def file_numbers(self) -> Mapping[str, int]:
        """The place of each file among `files`, by path."""
        return {item.path: number for number, item in enumerate(self.files)}

    def _find_release_notes(self) -> set[str]:
        return {path for path, title in self.metadata.files.items() if is_release_notes(path, title)}

    def _context_of(self, head: ChunkHead) -> list[str]:
        """Return what counts as text of a chunk too: its path, its headings, what the page says of itself."""
        about = self._abouts.get(head.document_id) if not head.position else None
        return [head.document_id, *head.breadcrumb, *([about] if about else [])]

    @cached_property
    def _abouts(self) -> Mapping[str, str]:
        return {item.id: about for item in self.documents() if (about := item.attributes.get(ABOUT))}

    @property
    def index(self) -> Path:
        """The folder of the index."""
        return self._generation.parent

    @property
    def source(self) -> Path | None:
        """The folder that the corpus was built from, as far as this machine knows."""
        path = IndexFolder(self.index).source
        return Path(path) if path else None

    @cached_property
    def facets(self) -> Mapping[str, Mapping[str, int]]:
        """The number of chunks with each value of each facet."""
        return self._answer(lambda retriever: retriever.count_facets(None, None))

    def text(self, path: str) -> str | None:
        """Return a whole file as it was indexed."""
        chunks = self._store.chunks_of(path)
        return CHUNK_SEPARATOR.join(stored.text for stored in chunks) if chunks else None

    def close(self) -> None:
        """Release the files."""
        self._store.close()
        self._retriever.index.close()

    def count_facets(self, query: str, filters: Mapping[str, str]) -> Mapping[str, Mapping[str, int]]:
        """Count the chunks with each value of each facet, among those with a term of the query."""
        passing = self._filter(filters)
        return self._answer(lambda retriever: retriever.count_facets(query, passing))

    def facet_values(self, query: str, filters: Mapping[str, str], key: str) -> set[str]:
        """Return the values of a facet for which a query has results."""
        if counts := self.count_facets(query, filters).get(key):
            return set(counts)
        request = self.make_request(query, filters)
        nearest = self._answer(lambda retriever: retriever.select(request, HINT_DEPTH).candidates)
        heads = self._retriever.heads(nearest)
        facets = (heads[candidate.rowid].facets for candidate in nearest)
        return {values[key] for values in facets if key in values}

    def unknown_words(self, query: str) -> list[str]:
        """Return the words of a query that no chunk has."""
        return unknown_words(self._retriever, query)

    def suggest_spellings(self, query: str) -> list[str]:
        """Return words with a similar spelling for those that the corpus does not have."""
        return self._answer(lambda retriever: suggest_spellings(self._store, retriever, query))

    def correct_identifiers(self, query: str) -> str | None:
        """Return a query with its misspelt identifiers corrected; None if it has none."""
        return self._answer(lambda retriever: correct_identifiers(self._store, retriever, query))

    def make_request(
        self, query: str, filters: Mapping[str, str], *, offset: int = 0, limit: int = 1, mode: Mode = "hybrid"
    ) -> SearchRequest:
        """Return a request for a page of hits."""
        collapsed = tuple(key for key in self._collapsed if key not in filters)
        return SearchRequest(query, self._filter(filters), collapsed, mode, offset, limit)

    def _filter(self, filters: Mapping[str, str]) -> Filter | None:
        """Combine all filters; a language alone also includes what is written for every language."""
        conditions: list[Filter] = [OneOf(key, (value,)) for key, value in filters.items()]
        if "language" in filters and "scope" not in filters and "scope" in self.shared_facets:
            language = OneOf("language", (filters["language"],))
            scope = self.taxonomy.get("scope")
            others = tuple(value for value in scope.values if value not in SCOPES) if scope else ()
            widened: list[Filter] = [
                AllOf((OneOf("scope", ("sdk-specific",)), language)),
                OneOf("scope", ("global-guide",)),
                AllOf((AnyOf((OneOf("scope", others), Missing("scope"))), AnyOf((Missing("language"), language)))),
            ]
            conditions = [AnyOf(tuple(widened)), *(item for item in conditions if item != language)]
        return AllOf(tuple(conditions)) if conditions else None


def _query_embedder(origin: EmbeddingOrigin | None, embedder_for: EmbedderFor | None) -> QueryEmbedder:
    """Return the embedder that made the vectors: those of another one cannot be compared."""
    if origin is None or embedder_for is None:
        return QueryEmbedder(lambda: None)
    return QueryEmbedder(lambda: embedder_for(origin.to_json()), fingerprint=origin.fingerprint)
