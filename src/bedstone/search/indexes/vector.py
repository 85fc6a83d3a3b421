"""The vector index: int8 codes scanned while there are few, a graph above, and exact scores for what was found."""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numkong
import numpy as np
from numpy.typing import NDArray

from bedstone.records import StoredPassage
from bedstone.search.embedder import Vectors
from bedstone.search.hits import Filter, matches
from bedstone.store.engine import Store

if TYPE_CHECKING:
    from usearch.index import Index

logger = logging.getLogger(__name__)

Codes = NDArray[np.int8]
Halves = NDArray[np.float16]
Numbers = NDArray[np.int64]

GRAPH_FROM = 60_000  # passages; below, a scan costs as much as a graph that finds as much, and needs no building
SUBSET = 20_000  # so many passages that pass a filter are picked out and scanned
SCANNED = 200_000  # so many are all scanned where a filter lets more pass; above, the graph is asked for more
FILTERED_FETCH = 10
EXACT = 64
# Recall@10 0.99 at 100,000, also where every vector has several near copies, which is hard for a graph; with a width of
# 300 it is 0.99 on plain documentation, but 0.93 there.
CONNECTIVITY, EXPANSION_ADD, EXPANSION_SEARCH = 32, 256, 800
READ_BATCH = 5_000
EVERYTHING = (0, 2**62)


@dataclass(frozen=True)
class _Table:
    """All passages in the order of their chunks and places; `kinds` says which of the `facets` each one has.

    `halves` are the exact vectors, kept while there are few; else they are read from the store.
    """

    ids: Numbers
    chunks: Numbers
    spans: Numbers
    kinds: Numbers
    codes: Codes
    halves: Halves | None
    facets: Sequence[Any] = field(default_factory=list)

    @cached_property
    def rowids(self) -> Numbers:
        """The chunks, each once."""
        return np.unique(self.chunks)

    @cached_property
    def _by_id(self) -> Numbers:
        return np.argsort(self.ids)

    @cached_property
    def _ids_in_order(self) -> Numbers:
        return self.ids[self._by_id]

    def places(self, ids: Numbers) -> Numbers:
        """Where passages stand, leaving out those that are gone."""
        order = self._by_id
        found = order[np.minimum(np.searchsorted(self._ids_in_order, ids), len(order) - 1)]
        places: Numbers = found[self.ids[found] == ids]
        return places

    def passages_of(self, rowids: Collection[int]) -> Numbers:
        """Where the passages of chunks stand."""
        numbers = np.fromiter(rowids, np.int64, len(rowids))
        numbers.sort()  # neighbours are found near each other
        starts = np.searchsorted(self.chunks, numbers)
        ends = np.searchsorted(self.chunks, numbers + 1)
        counts = ends - starts
        return np.repeat(ends - counts.cumsum(), counts) + np.arange(counts.sum())

    def passing(self, condition: Filter) -> NDArray[np.bool_]:
        """Which passages pass a filter: asked once for each set of facets that occurs."""
        passes = np.array([matches(condition, facets) for facets in self.facets], np.bool_)
        return passes[self.kinds]


@dataclass(frozen=True, slots=True)
class Nearest:
    """How near chunks are in meaning, and on demand the stretch of each one's plain text that is nearest."""

    cosines: dict[int, float]
    _table: _Table
    _rows: Numbers
    _scores: NDArray[np.float64]

    def span(self, rowid: int) -> tuple[int, int] | None:
        """The nearest stretch of a chunk."""
        if rowid not in self.cosines:
            return None
        first, last = np.searchsorted(self._table.chunks[self._rows], [rowid, rowid + 1])
        start, end = self._table.spans[self._rows[first + int(np.argmax(self._scores[first:last]))]]
        return int(start), int(end)


class VectorIndex:
    """Finds chunks by their best passage; derived from a store.

    Vectors are scaled to int8 by `reach`, the largest component they are expected to have. The graph of a large index
    is kept in `file`; what it lacks or has too much is found out by comparing passage numbers, which are never reused.
    """

    def __init__(
        self, store: Store, dimensions: int, reach: float, file: Path | None = None, *, read_only: bool = False
    ) -> None:
        self._store = store
        self._dimensions = dimensions
        self._scale = 127 / reach
        self._file = file
        self._read_only = read_only
        self._lock = threading.Lock()
        self._graph: Index | None = None
        self._is_unsaved = False
        self._table = self._empty()
        self.applied = 0

    def __len__(self) -> int:
        return len(self._table.ids)

    def catch_up(self, progress: Callable[[int], None] | None = None) -> None:
        """Apply what happened in the store since."""
        with self._lock:
            last = self._store.last_change()
            if last is None or last.seq == self.applied:
                return
            self._table = self._updated(last.seq, progress)
            self._follow_with_graph()
            self.applied = last.seq

    def rebuild(self) -> None:
        """Start again from the store."""
        with self._lock:
            self._table, self._graph, self.applied = self._empty(), None, 0
        self.catch_up()

    def save(self) -> bool:
        """Keep the graph, if there is one and it is not kept already; whether the file is another now."""
        with self._lock:
            if self._file is None or not self._is_unsaved:
                return False
            if self._graph is not None:
                draft = self._file.with_suffix(".tmp")
                self._graph.save(str(draft))
                draft.replace(self._file)
            else:
                self._file.unlink(missing_ok=True)
            self._is_unsaved = False
            return True

    def search(
        self, query: Vectors, limit: int, condition: Filter | None = None, also: Collection[int] = ()
    ) -> Nearest:
        """The nearest chunks among those that pass, and how near some others are."""
        table = self._table
        if not len(table.ids):
            return Nearest({}, table, table.ids, np.empty(0))
        passing = None if condition is None else table.passing(condition)
        fetch = limit * len(table.ids) // len(table.rowids) + limit // 2
        near = self._candidates(table, self._quantised(query[None]), fetch, passing)
        rows = np.unique(np.concatenate([near, table.passages_of(also)]))  # in the order of their chunks
        if not len(rows):
            return Nearest({}, table, rows, np.empty(0))
        scores = self._scores(table, rows, query)
        chunks = table.chunks[rows]
        firsts = np.flatnonzero(np.diff(chunks, prepend=-1))
        best = np.maximum.reduceat(scores, firsts).tolist()
        rowids = chunks[firsts].tolist()
        least = sorted(best, reverse=True)[min(limit, len(best)) - 1]
        also = set(also)
        cosines = {
            rowid: cosine for rowid, cosine in zip(rowids, best, strict=True) if cosine >= least or rowid in also
        }
        return Nearest(cosines, table, rows, scores)

    def _candidates(self, table: _Table, code: Codes, fetch: int, passing: NDArray[np.bool_] | None) -> Numbers:
        """Where the passages stand that are probably nearest."""
        if passing is not None and np.count_nonzero(passing) <= SUBSET:
            inside = np.flatnonzero(passing)
            return inside[_largest(_products(code[0], table.codes[inside]), fetch)]
        graph = self._graph  # another thread may replace it
        if graph is None or (passing is not None and len(table.ids) <= SCANNED):
            products = _products(code[0], table.codes)
            if passing is None:
                return _largest(products, fetch)
            products[~passing] = -np.inf
            return _largest(products, min(fetch, int(np.count_nonzero(passing))))
        more = fetch * FILTERED_FETCH if passing is not None else fetch
        found = graph.search(code[0], min(more, len(graph)), threads=1).keys.astype(np.int64)
        places = table.places(found)
        return places if passing is None else places[passing[places]][:fetch]

    def _scores(self, table: _Table, rows: Numbers, query: Vectors) -> NDArray[np.float64]:
        """How near passages are: exactly, but where vectors must be read first, for the nearest ones only.

        What the codes say of the others is right to 0.003, and none of them comes near the first page.
        """
        if table.halves is not None:
            return _products(query, table.halves[rows])
        scores = _products(query, table.codes[rows].astype(np.float32)) / self._scale
        nearest = _largest(scores, EXACT)
        ids = table.ids[rows[nearest]].tolist()
        nothing = bytes(2 * self._dimensions)  # of a passage that has gone meanwhile
        vectors = self._store.vectors(ids)
        scores[nearest] = _products(query, self._halves([vectors.get(number, nothing) for number in ids]))
        return scores

    def _updated(self, last: int, progress: Callable[[int], None] | None) -> _Table:
        """The table after all changes: what is gone is left out, what came is read."""
        changes = self._changes(last) if self.applied else None
        if changes is None:
            return self._extended(self._empty(), np.array([], np.int64), [EVERYTHING], progress)
        gone = [(change.gone_first, change.gone_last) for change in changes if change.gone_first <= change.gone_last]
        came = [(change.first, change.last) for change in changes if change.kind == "vectors"]
        keep = np.ones(len(self._table.ids), np.bool_)
        for first, end in gone:
            start, stop = np.searchsorted(self._table.chunks, [first, end + 1])
            keep[start:stop] = False
        return self._extended(self._table, np.flatnonzero(keep), came, progress)

    def _changes(self, last: int) -> list[Any] | None:
        """What happened since; None if the log no longer reaches back to where we are."""
        changes: list[Any] = []
        seq = self.applied
        while seq < last:
            batch = self._store.changes(seq)
            if not batch or batch[0].seq != seq + 1:
                return None
            changes += batch
            seq = batch[-1].seq
        return changes

    def _extended(
        self,
        table: _Table,
        keep: Numbers,
        came: Iterable[tuple[int, int]],
        progress: Callable[[int], None] | None,
    ) -> _Table:
        known = set(table.ids[keep].tolist())
        fresh = {item.id: item for first, last in came for item in self._store.passages_between(first, last)}
        items = [item for number, item in fresh.items() if number not in known]
        facets = list(table.facets)
        kinds = {_frozen(pairs): number for number, pairs in enumerate(facets)}
        rows = np.array([self._row(item, kinds, facets) for item in items], np.int64).reshape(-1, 5)
        halves, codes = self._read([item.id for item in items], progress)
        few = len(keep) + len(items) <= GRAPH_FROM
        old_halves = None
        if few:
            kept = table.ids[keep].tolist()
            old_halves = self._read(kept, None)[0] if table.halves is None else table.halves[keep]
        ids = np.concatenate([table.ids[keep], rows[:, 0]])
        chunks = np.concatenate([table.chunks[keep], rows[:, 1]])
        spans = np.concatenate([table.spans[keep], rows[:, 2:4]])
        order = np.lexsort((spans[:, 0], chunks))
        return _Table(
            ids=ids[order],
            chunks=chunks[order],
            spans=spans[order],
            kinds=np.concatenate([table.kinds[keep], rows[:, 4]])[order],
            codes=np.concatenate([table.codes[keep], codes])[order],
            halves=None if old_halves is None else np.concatenate([old_halves, halves])[order],
            facets=facets,
        )

    @staticmethod
    def _row(item: StoredPassage, kinds: dict[Any, int], facets: list[Any]) -> tuple[int, int, int, int, int]:
        key = _frozen(item.facets)
        if key not in kinds:
            kinds[key] = len(facets)
            facets.append(item.facets)
        return item.id, item.passage.chunk_rowid, item.passage.start, item.passage.end, kinds[key]

    def _read(self, ids: list[int], progress: Callable[[int], None] | None) -> tuple[Halves, Codes]:
        """Vectors from the store; a large number of exact ones is not kept in memory."""
        keep_exact = len(ids) <= GRAPH_FROM
        halves, codes = [self._halves([])], [np.empty((0, self._dimensions), np.int8)]
        for start in range(0, len(ids), READ_BATCH):
            part = ids[start : start + READ_BATCH]
            found = self._store.vectors(part)
            nothing = bytes(2 * self._dimensions)  # of a passage that has gone meanwhile; the next change says so
            vectors = self._halves([found.get(number, nothing) for number in part])
            codes.append(self._quantised(vectors.astype(np.float32)))
            if keep_exact:
                halves.append(vectors)
            if progress:
                progress(start + len(part))
        return np.concatenate(halves), np.concatenate(codes)

    def _halves(self, vectors: Sequence[bytes]) -> Halves:
        length = 2 * self._dimensions
        vectors = [item if len(item) == length else bytes(length) for item in vectors]  # of another model: far away
        return np.frombuffer(b"".join(vectors), np.float16).reshape(-1, self._dimensions)

    def _quantised(self, vectors: Vectors) -> Codes:
        codes: Codes = np.clip(np.rint(vectors * self._scale), -127, 127).astype(np.int8)
        return codes

    def _empty(self) -> _Table:
        none = np.empty(0, np.int64)
        return _Table(none, none, none.reshape(0, 2), none, np.empty((0, self._dimensions), np.int8), self._halves([]))

    def _follow_with_graph(self) -> None:
        """Bring the graph to what the table has; without one that fits, build it."""
        table = self._table
        if len(table.ids) <= GRAPH_FROM:
            self._graph = None
            self._is_unsaved = self._file is not None and self._file.exists()
            return
        graph = self._graph if self._graph is not None else self._opened_graph()
        keys = np.asarray(graph.keys).astype(np.int64)
        extra, missing = np.setdiff1d(keys, table.ids), np.setdiff1d(table.ids, keys)
        if len(extra) + len(missing) and self._read_only:
            graph = self._new_graph()
            extra, missing = np.empty(0, np.int64), table.ids
        self._is_unsaved = self._is_unsaved or bool(len(extra) + len(missing))
        if len(extra):
            graph.remove(extra)
        if len(missing):
            graph.add(missing, table.codes[table.places(missing)])
        self._graph = graph

    def _opened_graph(self) -> "Index":
        index_type = _usearch()
        if self._file is not None and self._file.exists():
            try:
                graph = index_type.restore(str(self._file), view=self._read_only)
            except (ValueError, RuntimeError) as error:
                logger.warning("Building the vector index again: %s", error, extra={"action": "index_rebuilt"})
            else:
                if graph is not None and graph.ndim == self._dimensions:
                    # The file does not remember them; mypy takes the properties for read-only.
                    graph.expansion_add = EXPANSION_ADD  # type: ignore[misc]
                    graph.expansion_search = EXPANSION_SEARCH  # type: ignore[misc]
                    return graph
        return self._new_graph()

    def _new_graph(self) -> "Index":
        return _usearch()(
            ndim=self._dimensions,
            metric="cos",
            dtype="i8",
            connectivity=CONNECTIVITY,
            expansion_add=EXPANSION_ADD,
            expansion_search=EXPANSION_SEARCH,
        )


def _usearch() -> "type[Index]":
    """The graph's library, which a small index never needs.

    onnxruntime must be there first: loaded after usearch 2.26 it crashes the process.
    """
    with suppress(ImportError):
        import onnxruntime  # noqa: F401, PLC0415
    from usearch.index import Index  # noqa: PLC0415

    return Index


def _products(query: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
    """The product of a query with each row; numpy would convert, and wake threads that then spin."""
    if not len(rows):
        return np.empty(0)
    return np.asarray(numkong.cdist(query.astype(rows.dtype)[None], rows, "dot")).ravel()


def _largest(values: NDArray[Any], count: int) -> Numbers:
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(-values, count)[:count]


def _frozen(facets: Any) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(facets.items()))
