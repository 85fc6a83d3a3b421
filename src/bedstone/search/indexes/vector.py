"""The vector index: a scan of int8 codes while there are few, a graph above, and exact scores for the best."""

import logging
import threading
from array import array
from collections.abc import Collection, Iterable, Sequence
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
from bedstone.search.filters import Filter, matches
from bedstone.search.index import OnProgress
from bedstone.search.indexes.damage import set_aside
from bedstone.store.engine import Store

if TYPE_CHECKING:
    from usearch.index import Index

logger = logging.getLogger(__name__)

Codes = NDArray[np.int8]
Halves = NDArray[np.float16]
Numbers = NDArray[np.int64]

MAX_SCANNED = 60_000  # passages; a scan costs no more than a graph of the same recall, and needs no building
MAX_SUBSET = 20_000  # passages that pass a filter: up to this number, only they are scanned
MAX_FILTERED_SCAN = 200_000  # passages; up to this number all are scanned under a filter, above the graph fetches more
FILTERED_FETCH = 10  # times as many candidates from the graph under a filter
MAX_EXACT = 64  # passages with scores from stored vectors
# Recall@10 is 0.99 at 100,000, also where every vector has several near copies, which is hard for a graph; with an
# expansion of 300 it is 0.99 on plain documentation, but 0.93 there.
CONNECTIVITY = 32
EXPANSION_ADD = 256
EXPANSION_SEARCH = 800
READ_BATCH = 1_000
ALL_CHUNKS = (0, 2**62)


@dataclass(frozen=True)
class _Table:
    """All passages by chunk and start; `facet_sets` tells which of the `facets` each one has.

    `halves` are the exact vectors, kept while there are few; otherwise they are read from the store.
    """

    ids: Numbers
    chunks: Numbers
    spans: Numbers
    facet_sets: Numbers
    codes: Codes
    halves: Halves | None
    facets: Sequence[Any] = field(default_factory=list)

    @cached_property
    def rowids(self) -> Numbers:
        """The rowid of each chunk, once."""
        return np.unique(self.chunks)

    @cached_property
    def _by_id(self) -> Numbers:
        return np.argsort(self.ids)

    @cached_property
    def _ids_in_order(self) -> Numbers:
        return self.ids[self._by_id]

    def positions(self, ids: Numbers) -> Numbers:
        """Return the positions of passages, without those that were deleted."""
        order = self._by_id
        found = order[np.minimum(np.searchsorted(self._ids_in_order, ids), len(order) - 1)]
        positions: Numbers = found[self.ids[found] == ids]
        return positions

    def passages_of(self, rowids: Collection[int]) -> Numbers:
        """Return the positions of the passages of chunks."""
        numbers = np.fromiter(rowids, np.int64, len(rowids))
        numbers.sort()  # neighbours are near each other in memory
        starts = np.searchsorted(self.chunks, numbers)
        ends = np.searchsorted(self.chunks, numbers + 1)
        counts = ends - starts
        return np.repeat(ends - counts.cumsum(), counts) + np.arange(counts.sum())

    def passing(self, filter: Filter) -> NDArray[np.bool_]:
        """Return which passages pass a filter, evaluated once for each set of facets that occurs."""
        passes = np.array([matches(filter, facets) for facets in self.facets], np.bool_)
        return passes[self.facet_sets]


@dataclass(frozen=True, slots=True)
class Nearest:
    """The cosines of chunks, and on demand the span of each one's plain text that is nearest."""

    cosines: dict[int, float]
    _table: _Table
    _rows: Numbers
    _scores: NDArray[np.float64]
    _chunks: Numbers

    def span(self, rowid: int) -> tuple[int, int] | None:
        """Return the nearest span of a chunk."""
        if rowid not in self.cosines:
            return None
        first = int(self._chunks.searchsorted(rowid))
        last = int(self._chunks.searchsorted(rowid, "right"))
        best = first if last == first + 1 else first + int(self._scores[first:last].argmax())
        start, end = self._table.spans[self._rows[best]].tolist()
        return start, end


class VectorIndex:
    """Finds chunks by their best passage; derived from a store.

    Vectors are scaled to int8 by `max_component`, the largest component they are expected to have. The graph of a
    large index is kept in `file`; comparing passage ids, which are never reused, shows what it is missing.
    """

    def __init__(
        self,
        store: Store,
        dimensions: int,
        max_component: float,
        file: Path | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        self._store = store
        self._dimensions = dimensions
        self._scale = 127 / max_component
        self._file = file
        self._read_only = read_only
        self._lock = threading.Lock()
        self._graph: Index | None = None
        self._is_unsaved = False
        self._building: threading.Thread | None = None
        self._table = self._empty()
        self.applied_seq = 0

    def __len__(self) -> int:
        return len(self._table.ids)

    @property
    def problem(self) -> str | None:
        """What is repaired right now; all vectors are scanned meanwhile."""
        return "The vector index was damaged and is being rebuilt" if self._building is not None else None

    def catch_up(self, on_progress: OnProgress | None = None) -> None:
        """Apply the changes of the store."""
        with self._lock:
            last = self._store.last_change()
            if last is None or last.seq == self.applied_seq:
                return
            self._table = self._apply_changes(last.seq, on_progress)
            self._update_graph()
            self.applied_seq = last.seq

    def finish(self) -> None:
        """Wait until a damaged graph is rebuilt."""
        if (building := self._building) is not None:
            building.join()

    def save(self) -> bool:
        """Write the graph to its file, if it changed; return whether the file did."""
        with self._lock:
            if self._file is None or self._read_only or not self._is_unsaved:
                return False
            if self._graph is not None:
                draft = self._file.with_suffix(".tmp")
                self._graph.save(str(draft))
                draft.replace(self._file)
            else:
                self._file.unlink(missing_ok=True)
            self._is_unsaved = False
            return True

    def search(self, query: Vectors, limit: int, filter: Filter | None = None, also: Collection[int] = ()) -> Nearest:
        """Return the nearest chunks that pass the filter, and the cosines of some others."""
        table = self._table
        if not len(table.ids):
            return Nearest({}, table, table.ids, np.empty(0), table.ids)
        passing = None if filter is None else table.passing(filter)
        fetch = limit * len(table.ids) // len(table.rowids) + limit // 2
        near = self._candidates(table, self._quantize(query[None]), fetch, passing)
        rows = np.unique(np.concatenate([near, table.passages_of(also)]))  # in the order of their chunks
        if not len(rows):
            return Nearest({}, table, rows, np.empty(0), rows)
        scores = self._scores(table, rows, query)
        chunks = table.chunks[rows]
        firsts = np.flatnonzero(np.diff(chunks, prepend=-1))
        best = np.maximum.reduceat(scores, firsts).tolist()
        rowids = chunks[firsts].tolist()
        lowest = sorted(best, reverse=True)[min(limit, len(best)) - 1]
        cosines = {
            rowid: cosine for rowid, cosine in zip(rowids, best, strict=True) if cosine >= lowest or rowid in also
        }
        return Nearest(cosines, table, rows, scores, chunks)

    def _candidates(self, table: _Table, code: Codes, fetch: int, passing: NDArray[np.bool_] | None) -> Numbers:
        """Return the positions of the passages that are probably nearest."""
        if passing is not None and np.count_nonzero(passing) <= MAX_SUBSET:
            inside = np.flatnonzero(passing)
            return inside[_largest(_products(code[0], table.codes[inside]), fetch)]
        graph = self._graph  # another thread may replace it
        if graph is None or (passing is not None and len(table.ids) <= MAX_FILTERED_SCAN):
            products = _products(code[0], table.codes)
            if passing is None:
                return _largest(products, fetch)
            products[~passing] = -np.inf
            return _largest(products, min(fetch, int(np.count_nonzero(passing))))
        count = fetch * FILTERED_FETCH if passing is not None else fetch
        found = graph.search(code[0], min(count, len(graph)), threads=1).keys.astype(np.int64)
        positions = table.positions(found)
        return positions if passing is None else positions[passing[positions]][:fetch]

    def _scores(self, table: _Table, rows: Numbers, query: Vectors) -> NDArray[np.float64]:
        """Return the cosines of passages: exact ones, but only for the nearest where vectors must be read first.

        The cosines from int8 codes are right to 0.003, and none of the others comes near the first page.
        """
        if table.halves is not None:
            return _products(query, table.halves[rows])
        scores = _products(query, table.codes[rows].astype(np.float32)) / self._scale
        nearest = _largest(scores, MAX_EXACT)
        ids = table.ids[rows[nearest]].tolist()
        deleted = bytes(2 * self._dimensions)  # of a passage deleted in the meantime
        vectors = self._store.vectors(ids)
        scores[nearest] = _products(query, self._to_halves([vectors.get(number, deleted) for number in ids]))
        return scores

    def _apply_changes(self, last: int, on_progress: OnProgress | None) -> _Table:
        """Return the table after all changes, without deleted passages and with new ones."""
        changes = self._changes(last) if self.applied_seq else None
        if changes is None:
            return self._extend_table(self._empty(), np.array([], np.int64), [ALL_CHUNKS], on_progress)
        deleted = [(change.gone_first, change.gone_last) for change in changes if change.gone_first <= change.gone_last]
        added = [(change.first, change.last) for change in changes if change.kind == "vectors"]
        keep = np.ones(len(self._table.ids), np.bool_)
        for first, end in deleted:
            start, stop = np.searchsorted(self._table.chunks, [first, end + 1])
            keep[start:stop] = False
        return self._extend_table(self._table, np.flatnonzero(keep), added, on_progress)

    def _changes(self, last: int) -> list[Any] | None:
        """Return the changes since; None if the change log no longer reaches back far enough."""
        changes: list[Any] = []
        seq = self.applied_seq
        while seq < last:
            batch = self._store.changes(seq)
            if not batch or batch[0].seq != seq + 1:
                return None
            changes += batch
            seq = batch[-1].seq
        return changes

    def _extend_table(
        self,
        table: _Table,
        keep: Numbers,
        added: Iterable[tuple[int, int]],
        on_progress: OnProgress | None,
    ) -> _Table:
        known = set(table.ids[keep].tolist())
        facets = list(table.facets)
        numbers = {_freeze(pairs): number for number, pairs in enumerate(facets)}
        columns = array("q")  # a corpus of many passages is never held as objects
        for first, last in added:
            for item in self._store.passages_between(first, last):
                if item.id not in known:
                    known.add(item.id)
                    columns.extend(self._row(item, numbers, facets))
        rows = np.array(columns, np.int64).reshape(-1, 5)
        rows = rows[np.lexsort((rows[:, 2], rows[:, 1]))]
        halves, codes = self._read(rows[:, 0].tolist(), on_progress)
        has_halves = len(keep) + len(rows) <= MAX_SCANNED
        ids, chunks, spans, sets = (
            np.ascontiguousarray(part) for part in (rows.T[0], rows.T[1], rows[:, 2:4], rows.T[4])
        )
        fresh = _Table(ids, chunks, spans, sets, codes, halves if has_halves else None, facets)
        return fresh if not len(keep) else self._merge(table, keep, fresh)

    def _merge(self, table: _Table, keep: Numbers, fresh: _Table) -> _Table:
        """Return a table of some passages of one and all of another, in order."""
        chunks = np.concatenate([table.chunks[keep], fresh.chunks])
        spans = np.concatenate([table.spans[keep], fresh.spans])
        order = np.lexsort((spans[:, 0], chunks))
        halves = None
        if fresh.halves is not None:
            kept = self._read(table.ids[keep].tolist(), None)[0] if table.halves is None else table.halves[keep]
            halves = np.concatenate([kept, fresh.halves])[order]
        return _Table(
            ids=np.concatenate([table.ids[keep], fresh.ids])[order],
            chunks=chunks[order],
            spans=spans[order],
            facet_sets=np.concatenate([table.facet_sets[keep], fresh.facet_sets])[order],
            codes=np.concatenate([table.codes[keep], fresh.codes])[order],
            halves=halves,
            facets=fresh.facets,
        )

    @staticmethod
    def _row(item: StoredPassage, numbers: dict[Any, int], facets: list[Any]) -> tuple[int, int, int, int, int]:
        key = _freeze(item.facets)
        if key not in numbers:
            numbers[key] = len(facets)
            facets.append(item.facets)
        return item.id, item.passage.chunk_rowid, item.passage.start, item.passage.end, numbers[key]

    def _read(self, ids: list[int], on_progress: OnProgress | None) -> tuple[Halves, Codes]:
        """Read vectors from the store; a large number of exact ones is not kept in memory."""
        keep_exact = len(ids) <= MAX_SCANNED
        # Filled in place: lists of parts would take their size once more.
        halves = np.empty((len(ids) if keep_exact else 0, self._dimensions), np.float16)
        codes = np.empty((len(ids), self._dimensions), np.int8)
        deleted = bytes(2 * self._dimensions)  # of a passage deleted in the meantime; a change will follow
        for start in range(0, len(ids), READ_BATCH):
            part = ids[start : start + READ_BATCH]
            found = self._store.vectors(part)
            vectors = self._to_halves([found.get(number, deleted) for number in part])
            codes[start : start + len(part)] = self._quantize(vectors.astype(np.float32))
            if keep_exact:
                halves[start : start + len(part)] = vectors
            if on_progress:
                on_progress(start + len(part))
        return halves, codes

    def _to_halves(self, vectors: Sequence[bytes]) -> Halves:
        length = 2 * self._dimensions
        vectors = [item if len(item) == length else bytes(length) for item in vectors]  # another model's are far away
        return np.frombuffer(b"".join(vectors), np.float16).reshape(-1, self._dimensions)

    def _quantize(self, vectors: Vectors) -> Codes:
        codes: Codes = np.clip(np.rint(vectors * self._scale), -127, 127).astype(np.int8)
        return codes

    def _empty(self) -> _Table:
        none = np.empty(0, np.int64)
        return _Table(
            none, none, none.reshape(0, 2), none, np.empty((0, self._dimensions), np.int8), self._to_halves([])
        )

    def _update_graph(self) -> None:
        """Make the graph hold what the table holds; build it if it is missing or outdated."""
        table = self._table
        if self._building is not None:
            return
        if len(table.ids) <= MAX_SCANNED:
            self._graph = None
            self._is_unsaved = self._file is not None and self._file.exists()
            return
        graph = self._graph if self._graph is not None else self._open_graph()
        if graph is None:
            self._building = threading.Thread(target=self._build_graph, name="vector-graph", daemon=True)
            self._building.start()
            return
        keys = np.asarray(graph.keys).astype(np.int64)
        extra, missing = np.setdiff1d(keys, table.ids), np.setdiff1d(table.ids, keys)
        if len(extra) + len(missing) and self._read_only:
            graph = self._new_graph()
            extra, missing = np.empty(0, np.int64), table.ids
        self._is_unsaved = self._is_unsaved or bool(len(extra) + len(missing))
        if len(extra):
            graph.remove(extra)
        if len(missing):
            graph.add(missing, table.codes[table.positions(missing)])
        self._graph = graph

    def _build_graph(self) -> None:
        """Build a graph in the place of a damaged one, while searches scan."""
        table, graph = self._table, self._new_graph()
        for start in range(0, len(table.ids), READ_BATCH):
            graph.add(table.ids[start : start + READ_BATCH], table.codes[start : start + READ_BATCH])
        with self._lock:
            self._building = None
            self._graph, self._is_unsaved = graph, True
            self._update_graph()  # for what changed meanwhile

    def _open_graph(self) -> "Index | None":
        """Return the graph of the file, or a new one; None if the file is damaged."""
        index_type = _usearch()
        if self._file is not None and self._file.exists():
            try:
                graph = index_type.restore(str(self._file), view=self._read_only)
            except (OSError, ValueError, RuntimeError) as error:
                logger.error("Rebuilding the vector index: %s", error, extra={"action": "index_rebuilt"})  # noqa: TRY400 - the reason is enough
                with suppress(OSError):
                    if not self._read_only:
                        set_aside(self._file)
                return None
            else:
                if graph is not None and graph.ndim == self._dimensions:
                    # The file does not record them; mypy takes the properties for read-only.
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
    """Import the library of the graph, which a small index never needs.

    onnxruntime must be imported first: after usearch 2.26 it crashes the process.
    """
    with suppress(ImportError):
        import onnxruntime  # noqa: F401, PLC0415
    from usearch.index import Index  # noqa: PLC0415

    return Index


def _products(query: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the product of a query with each row; numpy would convert rows, and wake threads that then spin."""
    if not len(rows):
        return np.empty(0)
    return np.asarray(numkong.cdist(query.astype(rows.dtype)[None], rows, "dot")).ravel()


def _largest(values: NDArray[Any], count: int) -> Numbers:
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(-values, count)[:count]


def _freeze(facets: Any) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(facets.items()))
