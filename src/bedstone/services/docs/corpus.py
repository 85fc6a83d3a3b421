"""One docs corpus as agents use it: search with facets, read chunks with their neighbours."""

import logging
import re
import sqlite3
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from bedstone.errors import BedstoneError, NotFound
from bedstone.records import ChunkHead, Document, StoredChunk
from bedstone.search.hits import AllOf, AnyOf, Filter, Found, Hit, Is, Mode, Without
from bedstone.search.index import Weights
from bedstone.search.indexes.hybrid import HybridIndex
from bedstone.search.indexes.keyword import WordIndex
from bedstone.search.matching import Matcher
from bedstone.search.relevance import coverage, falling, relevance, term_weights
from bedstone.search.retriever import DEPTHS, SearchEngine
from bedstone.search.snippets import Snippet, snippet
from bedstone.search.terms import WORD, asked, terms
from bedstone.services.docs.index_folder import VECTORS, IndexFolder
from bedstone.store.opening import open_store

if TYPE_CHECKING:  # whoever searches by words alone never loads numpy
    from bedstone.search.embedder import Embedder

logger = logging.getLogger(__name__)

PART = re.compile(r"[-_]part-[0-9-]+$")
SCOPES = ("sdk-specific", "global-guide")
MOST_SIGNS = 8  # of # in an id
MOST_MISSPELT = 5  # words to offer others for
MOST_LISTED = 50  # ids of one file
NEAREST = 5  # ids to offer when one is unknown
MOST_COMPARED = 5_000  # names to compare a misspelt one with
HINT_DEPTH = 50
MAX_FAST_CHUNKS = 30_000  # chunks
WINDOWS = (40, *DEPTHS)  # hits to look at for a page: the first one is enough for most
MOST_KEPT = 4_000  # heads of chunks, half a kilobyte each

EmbedderFor = Callable[[Mapping[str, Any]], "Embedder | None"]


class ChunkNotFound(NotFound):
    """No chunk has that id."""

    code = "chunk_not_found"


@dataclass(frozen=True)
class DocHit:
    """One result of a search: the chunk without its texts, and what is shown of them."""

    head: ChunkHead
    score: float
    snippet: Snippet
    why: str = "words"


@dataclass(frozen=True)
class Hint:
    """What to try when nothing was found."""

    message: str
    suggested_filters: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class FileFacts:
    """A file of a corpus, for people who look around."""

    path: str
    title: str
    chunks: int


class DocsCorpus:
    """An open index; reading it changes nothing on disk.

    `embedder_for` is asked for the model that made the index's vectors, if there are any.
    """

    def __init__(self, index: Path, embedder_for: EmbedderFor | None = None, *, weights: Weights | None = None) -> None:
        metadata = IndexFolder(index).existing_metadata
        generation = index / metadata["index"]["generation"]
        self.metadata = metadata
        self._store = open_store(generation / "store.sqlite", read_only=True)
        self._words = WordIndex(generation / "words", read_only=True)
        self._embedder = _matching_embedder(metadata["embedding"], embedder_for)
        vectors = None
        if self._embedder is not None:
            from bedstone.search.indexes.vector import VectorIndex  # noqa: PLC0415 - loads numpy

            vectors = VectorIndex(
                self._store, self._embedder.dimensions, self._embedder.reach, generation / VECTORS, read_only=True
            )
            vectors.catch_up()
        self._kept: dict[int, ChunkHead] = {}
        # The facets of all corpora that are searched together.
        self.facets_beside: Collection[str] = metadata["taxonomy"].keys()
        self._index = HybridIndex(self._store, self._words, vectors)
        self._engine = SearchEngine(self._index, self._embedder, weights, self._document_of)

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
        self, query: str, filters: Mapping[str, str], offset: int, limit: int, mode: Mode = "hybrid"
    ) -> tuple[list[DocHit], bool]:
        """The hits of a page, and whether there are more."""
        found, ranked = self._ranked(query, filters, offset + limit + 1, mode)
        return self._shown(query, found, ranked[offset : offset + limit]), len(ranked) > offset + limit

    def finds(self, query: str, filters: Mapping[str, str]) -> bool:
        """Whether a search finds anything."""
        return bool(self._ranked(query, filters, 1)[1])

    def read(self, chunk_id: str, context: int = 0) -> tuple[list[StoredChunk], int, int]:
        """A chunk with its neighbours in the file: the chunks, the target's place among them, the file's total."""
        target = self._store.chunk(chunk_id)
        if target is None:
            raise ChunkNotFound(chunk_id)
        chunks = self._store.chunks_of(target.head.document_id)
        first = max(0, target.head.position - context)
        return chunks[first : target.head.position + context + 1], target.head.position - first, len(chunks)

    def nearest_ids(self, chunk_id: str) -> list[str]:
        """Ids somebody may have meant: those of the file, the most similar first, or of a file of like name."""
        # A path may have a # in it.
        signs = [at for at, sign in enumerate(chunk_id) if sign == "#"]
        ends = (*signs[-MOST_SIGNS:], len(chunk_id))
        parts = [(chunk_id[:end], chunk_id[end + 1 :]) for end in ends]
        path, heading = next(((path, rest) for path, rest in parts if self._store.chunks_of(path)), parts[0])
        ids = [stored.head.id for stored in self._store.chunks_of(path)]
        if ids:
            by_heading = {identity[len(path) + 1 :]: identity for identity in ids}
            near = [by_heading[name] for name in get_close_matches(heading, by_heading, NEAREST, 0.7)]
            return near or ids[:MOST_LISTED]
        names = list(self.metadata["files"])
        same = [name for name in names if PurePosixPath(name).name == PurePosixPath(path).name]
        near = same or get_close_matches(path, names[:MOST_COMPARED], NEAREST, 0.7)
        return [stored.head.id for name in near[:NEAREST] for stored in self._store.chunks_of(name)[:1]]

    def chunks_of(self, path: str) -> list[StoredChunk]:
        """A file's chunks in order."""
        return self._store.chunks_of(path)

    def document(self, path: str) -> Document | None:
        """One file."""
        return self._store.document(path)

    @property
    def chunk_count(self) -> int:
        """How many chunks there are."""
        return self._total

    def documents(self) -> list[Document]:
        """Every file, in the order of their paths."""
        return self._store.documents(limit=2**31)

    @cached_property
    def files(self) -> Sequence[FileFacts]:
        """Every file, in the order of their paths."""
        counts = self._store.chunk_counts()
        return [FileFacts(item.id, item.title, counts.get(item.id, 0)) for item in self.documents()]

    @cached_property
    def facets(self) -> Mapping[str, Mapping[str, int]]:
        """How many chunks have each value of each facet."""
        return self._index.facet_counts(None, None)

    def text(self, path: str) -> str | None:
        """A whole file as it was indexed."""
        chunks = self._store.chunks_of(path)
        return "\n\n".join(stored.text for stored in chunks) if chunks else None

    def close(self) -> None:
        """Let go of the files."""
        self._store.close()
        self._words.close()

    def facet_counts(self, query: str, filters: Mapping[str, str]) -> Mapping[str, Mapping[str, int]]:
        """How many chunks with a word of the query have each value of each facet."""
        return self._index.facet_counts(query, self._condition(filters))

    def _ranked(
        self, query: str, filters: Mapping[str, str], count: int, mode: Mode = "hybrid"
    ) -> tuple[Found, list[Hit]]:
        """Hits in order, one of each family of language variants."""
        facets = [key for key, entry in self.taxonomy.items() if entry.get("vector_collapse") and key not in filters]
        condition = self._condition(filters)
        best: dict[tuple[Any, ...], Hit] = {}
        start = 0
        # Always to the same depths: then every page is cut from the same list.
        for depth in WINDOWS:
            found = self._engine.search(query, condition=condition, limit=depth, mode=mode)
            hits = [] if self._is_far(found) else found.hits
            is_all = len(hits) < depth or depth == WINDOWS[-1]
            # Those that tie with the last one wait for the others that do.
            known = len(hits) if is_all else next(at for at, hit in enumerate(hits) if hit.score == hits[-1].score)
            for hit, head in self._settled(hits[start:known], count):
                best.setdefault(_family(head, facets), hit)
                if len(best) == count:
                    break
            start = max(start, known)
            if len(best) == count or is_all:
                break
        return found, list(best.values())

    def _settled(self, hits: Sequence[Hit], step: int) -> Iterator[tuple[Hit, ChunkHead]]:
        """Hits with their heads, so many read at a time; those of one score in the order of their ids.

        Their numbers would be another order whenever a file changes.
        """
        start = 0
        while start < len(hits):
            end = min(start + step, len(hits))
            while end < len(hits) and hits[end].score == hits[end - 1].score:
                end += 1
            heads = self._heads(hits[start:end])
            for _, tied in groupby(hits[start:end], key=attrgetter("score")):
                yield from sorted(((hit, heads[hit.rowid]) for hit in tied), key=lambda pair: pair[1].id)
            start = end

    def _heads(self, hits: Sequence[Hit]) -> Mapping[int, ChunkHead]:
        """The chunks that were hit, and others, without their texts; what is read is kept for the next search."""
        kept = self._kept
        if missing := [hit.rowid for hit in hits if hit.rowid not in kept]:
            if len(kept) > MOST_KEPT:  # another thread may still read the old one
                kept = self._kept = {hit.rowid: kept[hit.rowid] for hit in hits if hit.rowid in kept}
            kept.update(self._store.chunk_heads(missing))
        return kept

    def _is_far(self, found: Found) -> bool:
        """Whether no word matched and nothing is near in meaning: neighbours of nonsense are no answer."""
        if "words" in found.signals or self._embedder is None:
            return False
        return max((hit.cosine or 0.0 for hit in found.hits), default=0.0) < self._embedder.floor

    def _condition(self, filters: Mapping[str, str]) -> Filter | None:
        """All filters at once; a language alone also lets in what is written for every language."""
        conditions: list[Filter] = [Is(key, (value,)) for key, value in filters.items()]
        if "language" in filters and "scope" not in filters and "scope" in self.facets_beside:
            language = Is("language", (filters["language"],))
            values = self.taxonomy.get("scope", {}).get("values", ())
            others = tuple(value for value in values if value not in SCOPES)
            widened: list[Filter] = [
                AllOf((Is("scope", ("sdk-specific",)), language)),
                Is("scope", ("global-guide",)),
                AllOf((AnyOf((Is("scope", others), Without("scope"))), AnyOf((Without("language"), language)))),
            ]
            conditions = [AnyOf(tuple(widened)), *(item for item in conditions if item != language)]
        return AllOf(tuple(conditions)) if conditions else None

    def _shown(self, query: str, found: Found, page: Sequence[Hit]) -> list[DocHit]:
        matcher = Matcher(query)
        weights = term_weights(matcher.terms, self._total, self._index.frequency)
        heads, plains = self._heads(page), self._store.plain_texts([hit.rowid for hit in page])
        shown, scores = [], []
        for hit in page:
            head, plain = heads[hit.rowid], plains[hit.rowid]
            matches = matcher.find("\n".join([plain, head.document_id, *head.breadcrumb]))
            scores.append(relevance(hit.cosine, coverage(weights, {term for _, _, term in matches})))
            text = snippet(plain, matcher, found.passage(hit.rowid), matches)
            shown.append((head, text, hit.why(self._embedder.floor if self._embedder is not None else 0.0)))
        return [
            DocHit(head, round(score, 4), text, why)
            for (head, text, why), score in zip(shown, falling(scores), strict=True)
        ]

    def _document_of(self, rowid: int) -> int:
        return bisect_right(self._first_chunks, rowid)

    @cached_property
    def _first_chunks(self) -> Sequence[int]:
        return array("q", self._store.first_chunks())

    @cached_property
    def _total(self) -> int:
        return self._store.counts().chunks

    def values(self, query: str, filters: Mapping[str, str], key: str) -> set[str]:
        """The values of a facet under which a query finds something."""
        if counts := self._index.facet_counts(query, self._condition(filters)).get(key):
            return set(counts)
        near = self._ranked(query, filters, HINT_DEPTH)[1]
        heads = self._heads(near)
        return {heads[hit.rowid].facets[key] for hit in near if key in heads[hit.rowid].facets}

    def spelt_like(self, query: str) -> list[str]:
        """For words nobody uses, others that look like them."""
        words = dict.fromkeys(WORD.findall(asked(query)))
        unknown = [word for word in words if not any(map(self._index.frequency, terms(word)))][:MOST_MISSPELT]
        return [self._written(term) for word in unknown for term in self._index.similar_words(word)]

    def _written(self, term: str) -> str:
        """A term as a text has it: the index knows words without their endings."""
        for hit in self._engine.search(term, limit=1, mode="words").hits:
            plain = self._store.plain_texts([hit.rowid])[hit.rowid]
            for start, end, _ in Matcher(term).find(plain):
                return plain[start:end].lower()
        return term


def _matching_embedder(known: Mapping[str, Any] | None, embedder_for: EmbedderFor | None) -> "Embedder | None":
    """The model that made the vectors; another one would compare what cannot be compared."""
    if known is None or embedder_for is None:
        return None
    try:
        embedder = embedder_for(known)
        if embedder is None or embedder.fingerprint == known["fingerprint"]:
            return embedder
    except (BedstoneError, OSError, sqlite3.Error) as error:
        logger.warning("vector search degraded to lexical-only: %s", error, extra={"action": "degraded"})
        return None
    logger.warning(
        "vector search degraded to lexical-only: the index was made with another model, build it again",
        extra={"action": "degraded"},
    )
    return None


def _family(head: ChunkHead, facets: Sequence[str]) -> tuple[Any, ...]:
    """What language variants of a chunk share: the path but for the facet's segment, heading and part number."""
    segments = head.document_id.split("/")
    replaced = False
    for key in facets:
        value = head.facets.get(key)
        if value in segments:
            segments[segments.index(value)] = "*"
            replaced = True
    if not replaced:
        return (head.rowid,)
    part = PART.search(head.id)
    return "/".join(segments), head.heading, part[0] if part else ""
