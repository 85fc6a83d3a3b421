"""The index in a search cluster: keywords and vectors of one store, ranked as the embedded index ranks them."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from bedstone.search.filters import Filter
from bedstone.search.fusion import rank
from bedstone.search.hits import Ranking
from bedstone.search.index import Access, IndexDamaged, IndexQuery, IndexUnwritable, OnProgress, Weights
from bedstone.search.indexes.clauses import MIN_QUOTED_TERMS, Clause, QueryReader
from bedstone.search.indexes.opensearch import bodies
from bedstone.search.indexes.opensearch.connection import ClusterConflict, ClusterUnavailable, Connection
from bedstone.search.indexes.opensearch.dictionary import ClusterDictionary
from bedstone.search.indexes.opensearch.nearest import Nearest, fetch_size
from bedstone.search.indexes.opensearch.progress import Records
from bedstone.search.indexes.opensearch.tables import Chunks, Passages, Table
from bedstone.search.indexes.selection import Hits, first_depth, select
from bedstone.search.terms import extract_identifiers, normalize_query, phrase_key
from bedstone.settings.sections import OpenSearchSettings
from bedstone.store.engine import Store

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder
    from bedstone.settings import Settings

Answer = TypeVar("Answer")
SUGGESTION_PREFIX = 2  # letters at the beginning of a misspelt word that are taken as correct
NOT_BUILT = "The search cluster has no index of these documents yet; the process that reads files builds it"


@dataclass(frozen=True, slots=True)
class View:
    """What can be searched at one moment: the two indexes, and what is looked up in them."""

    chunks: str
    passages: str | None
    shards: int
    chunk_count: int
    stretch_count: int
    passage_count: int
    dictionary: ClusterDictionary
    reader: QueryReader

    def read(self, text: str) -> QueryReader:
        """Return what reads a query, after looking up its terms at once."""
        self.dictionary.load_query(text)
        return self.reader


class OpenSearchIndex:
    """Two indexes in a cluster that follow one store; one process writes them, the others read."""

    def __init__(
        self, store: Store, embedder: "Embedder | None", settings: OpenSearchSettings, *, read_only: bool = False
    ) -> None:
        self._store = store
        self._connection = Connection(settings)
        records = Records(self._connection, settings, store)
        self._chunks = Table(Chunks(store), store, self._connection, records, settings)
        self._passages: Table | None = None
        if embedder is not None:
            content = Passages(store, embedder.dimensions)
            self._passages = Table(content, store, self._connection, records, settings)
        self._read_only = read_only
        self._lock = threading.Lock()
        self._view: View | None = None
        self._view_of: object = None

    @classmethod
    def open(
        cls,
        store: Store,
        folder: Path | None,
        embedder: "Embedder | None",
        access: Access = "write",
        settings: OpenSearchSettings | None = None,
    ) -> Self:
        """Return the index of a store; nothing is kept in the folder, and nothing is asked of the cluster yet."""
        return cls(store, embedder, settings or OpenSearchSettings(), read_only=access != "write")

    @classmethod
    def from_settings(cls, settings: "Settings") -> "Factory":
        """Return what opens indexes in the cluster of the settings."""
        return Factory(settings.opensearch)

    @property
    def _tables(self) -> Sequence[Table]:
        return (self._chunks,) if self._passages is None else (self._chunks, self._passages)

    @property
    def applied_seq(self) -> int:
        return min(table.progress.seq if table.progress else 0 for table in self._tables)

    @property
    def has_vectors(self) -> bool:
        view = self._current_view()
        return view is not None and view.passage_count > 0

    @property
    def chunk_count(self) -> int:
        view = self._current_view()
        return view.chunk_count if view else 0

    @property
    def languages(self) -> Mapping[str, float]:
        view = self._current_view()
        return view.reader.languages if view else {}

    def catch_up(self, on_progress: OnProgress | None = None, *, in_batches: bool = False) -> None:
        """Apply the changes of the store, or learn what the writer applied."""
        if all(table.is_current() for table in self._tables):
            return
        with self._lock:
            for table in reversed(self._tables):  # vectors take less time, and find chunks without keywords
                try:
                    if self._read_only:
                        table.reload()
                    else:
                        table.follow(on_progress, in_batches=in_batches)
                except ClusterUnavailable as error:
                    raise IndexUnwritable(error.message) from error
                except ClusterConflict as error:
                    for other in self._tables:
                        other.forget()
                    raise IndexUnwritable(error.message) from error

    def verify(self) -> None:
        """Compare how many chunks and passages the cluster has with the store, and have a damaged index made again."""
        with self._lock:
            last = self._store.last_change()
            for table in self._tables:
                if table.progress is None:
                    table.reload()
            view, stored = self._current_view(), self._store.counts()
            if view is None or last is None:
                return
            expected = {self._chunks: (view.chunk_count, stored.chunks)}
            if self._passages is not None:
                expected[self._passages] = (view.passage_count, stored.passages)
            if self._store.last_change() != last:
                return
            for table, (found, wanted) in expected.items():
                if table.is_current() and found != wanted:
                    if not self._read_only:
                        table.discard()
                    raise IndexDamaged(f"The search cluster holds {found:,} of {wanted:,} {table.name}")

    def problem(self) -> str | None:
        """Return that there is nothing to search yet, if so."""
        is_empty = self._chunks.progress is None and self._store.last_change() is not None
        return NOT_BUILT if is_empty and self._read_only else None

    def search(self, query: IndexQuery) -> Ranking:
        """Ask for the keyword hits and the nearest passages at once, then for the vectors of the other hits."""
        return self._ask(lambda view: self._search(view, query), Ranking([]))

    def _search(self, view: View, query: IndexQuery) -> Ranking:
        has_vector = query.vector is not None and view.passages is not None and view.passage_count > 0
        depth = query.depth if has_vector else min(query.depth, query.limit)  # nothing else can move up
        clauses = view.read(query.text).clauses(query.text, query.weights) if query.text else []
        options = bodies.search_options(query.text, view.shards)
        has_stretches = view.stretch_count > 0
        first = first_depth(depth, has_stretches=has_stretches and query.weights.in_stretches)
        requests = []
        if clauses:
            requests.append(({"index": view.chunks, **options}, self._keywords(clauses, query, first)))
        nearest = None
        if has_vector and query.vector is not None and view.passages is not None:
            nearest = Nearest(self._connection, view.passages, query.vector, query.filter, options)
            size = fetch_size(query.depth, view.passage_count, view.chunk_count)
            requests.append(({"index": view.passages, **options}, nearest.body(size)))
        answers = self._connection.search_all(requests) if requests else []
        scores: dict[int, float] = {}
        if clauses:
            scores = self._select(view, clauses, query, depth, {first: answers[0]})
        if nearest is None:
            return rank(scores, {}, query.semantic_weight, query.limit, coverage=query.coverage)
        nearest.add(answers[-1])
        cosines = nearest.best(query.depth, scores.keys())
        return rank(scores, cosines, query.semantic_weight, query.limit, nearest.span, coverage=query.coverage)

    def _select(
        self, view: View, clauses: Sequence[Clause], query: IndexQuery, limit: int, answers: Mapping[int, Any]
    ) -> dict[int, float]:
        def read(depth: int) -> Hits:
            answer = answers.get(depth)
            if answer is None:
                options = bodies.search_options(query.text, view.shards)
                answer = self._connection.search(view.chunks, self._keywords(clauses, query, depth), options)
            hits = answer.get("hits", {}).get("hits", [])
            return Hits(
                [hit["_score"] for hit in hits],
                [hit["fields"]["label"][0] for hit in hits],
                lambda: [hit["fields"]["section"][0] for hit in hits],
            )

        return select(read, limit, query.weights, has_stretches=view.stretch_count > 0) if limit > 0 else {}

    @staticmethod
    def _keywords(clauses: Sequence[Clause], query: IndexQuery, depth: int) -> bodies.Body:
        return bodies.keyword_body(clauses, query.filter, min(depth, bodies.MAX_HITS))

    def is_quotation(self, text: str) -> bool:
        """Look up heading and phrase together."""
        return self._ask(lambda view: self._is_quotation(view, text), default=False)

    def _is_quotation(self, view: View, text: str) -> bool:
        terms = view.read(text).terms(text)
        key = phrase_key(text)
        queries = {field: bodies.term_query(field, key) for field in ("heading", "trail") if key}
        if len(terms) >= MIN_QUOTED_TERMS:
            queries["phrase"] = bodies.phrase_query(terms)
        header = {"index": view.chunks, **bodies.search_options(text, 1)}
        requests = [(header, bodies.count_body(query, most=1)) for query in queries.values()]
        answers = self._connection.search_all(requests) if requests else []
        counts = {name: answer["hits"]["total"]["value"] for name, answer in zip(queries, answers, strict=True)}
        for field in ("heading", "trail"):
            view.dictionary.keep((field, key), counts.get(field, 0))
        return view.reader.is_quotation(text, lambda _: bool(counts.get("phrase")))

    def count_facets(self, text: str | None, filter: Filter | None) -> Mapping[str, Mapping[str, int]]:
        return self._ask(lambda view: self._count_facets(view, text, filter), {})

    def _count_facets(self, view: View, text: str | None, filter: Filter | None) -> dict[str, dict[str, int]]:
        clauses = None
        if text:
            text = normalize_query(text)
            clauses = view.read(text).clauses(text, Weights())
            if not clauses:
                return {}
        body = bodies.facets_body(clauses, filter)
        answer = self._connection.search(view.chunks, body, bodies.search_options(text or "", 1))
        counts: dict[str, dict[str, int]] = {}
        for bucket in answer.get("aggregations", {}).get("facets", {}).get("buckets", []):
            key, _, value = bucket["key"].partition("=")
            counts.setdefault(key, {})[value] = int(bucket["doc_count"])
        return counts

    def document_frequency(self, term: str) -> int:
        return self._ask(lambda view: view.reader.document_frequency(term), 0)

    def suggest_terms(self, word: str) -> list[str]:
        """Return terms with few other letters, the nearest first, as the embedded index compares them."""
        return self._ask(lambda view: self._suggest(view, word.lower(), bool(extract_identifiers(word))), [])

    def _suggest(self, view: View, word: str, is_identifier: bool) -> list[str]:
        if not word or any(sign.isspace() for sign in word):
            return []
        body = bodies.suggestions_body("names" if is_identifier else "all", word, SUGGESTION_PREFIX)
        answer = self._connection.search(view.chunks, body, bodies.search_options(word, 1))
        entries = answer.get("suggest", {}).get("near", [])
        alike = sorted({option["text"] for entry in entries for option in entry["options"]})
        return [term for term in get_close_matches(word, alike, n=3, cutoff=0.75) if term != word]

    def close(self) -> None:
        self._connection.close()

    def _ask(self, ask: Callable[[View], Answer], default: Answer) -> Answer:
        """Answer from the cluster, also if the writer has just replaced an index; `default` if it is empty."""
        view = self._current_view()
        if view is None:
            return default
        try:
            return ask(view)
        except IndexDamaged:
            for table in self._tables:
                table.reload()
            replaced = self._current_view()
            if replaced is None or (replaced.chunks, replaced.passages) == (view.chunks, view.passages):
                self._discard()
                raise
            return ask(replaced)

    def _discard(self) -> None:
        """Have the indexes made again, if this process may."""
        for table in self._tables if not self._read_only else ():
            with suppress(ClusterUnavailable, ClusterConflict, IndexDamaged):
                table.discard()

    def _current_view(self) -> View | None:
        """Return what can be searched now; it is looked up again after each change."""
        chunks = self._chunks.progress
        passages = self._passages.progress if self._passages else None
        if chunks is None:
            return None
        view, view_of = self._view, (chunks, passages)
        if view is not None and self._view_of == view_of:
            return view
        queries = [
            (chunks.index, bodies.stretches_query(inside=False)),
            (chunks.index, bodies.stretches_query(inside=True)),
            *([(passages.index, {"match_all": {}})] if passages else []),
        ]
        header = bodies.search_options("", 1)
        counts = [
            int(answer["hits"]["total"]["value"])
            for answer in self._connection.search_all(
                [({"index": index, **header}, bodies.count_body(query)) for index, query in queries]
            )
        ]
        dictionary = ClusterDictionary(self._connection, chunks.index, chunks.routings, counts[0] + counts[1])
        view = View(
            chunks=chunks.index,
            passages=passages.index if passages else None,
            shards=len(chunks.routings),
            chunk_count=counts[0],
            stretch_count=counts[1],
            passage_count=counts[2] if passages else 0,
            dictionary=dictionary,
            reader=QueryReader(dictionary),
        )
        self._view, self._view_of = view, view_of
        return view


@dataclass(frozen=True, slots=True)
class Factory:
    """Opens indexes in one cluster."""

    settings: OpenSearchSettings
    is_shared = True

    def open(
        self, store: Store, folder: Path | None, embedder: "Embedder | None", access: Access = "write"
    ) -> OpenSearchIndex:
        """Return the index of a store."""
        return OpenSearchIndex.open(store, folder, embedder, access, self.settings)
