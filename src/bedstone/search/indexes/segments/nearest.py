"""Search in segments: a scan of the codes or a graph proposes passages, exact vectors decide."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numkong
import numpy as np
from numpy.typing import NDArray

from bedstone.search.embedder import Vectors
from bedstone.search.filters import Filter
from bedstone.search.indexes.segments.facets import Mask
from bedstone.search.indexes.segments.segment import Codes, Numbers, Part, Snapshot

MAX_SUBSET = 20_000  # passages that pass a filter: up to this number, only they are scanned
MAX_FILTERED_SCAN = 200_000  # passages; up to this number all are scanned under a filter, above the graph fetches more
FILTERED_FETCH = 10  # times as many candidates from a graph under a filter
SAMPLED = 20_000  # products; of more, a sample shows where the largest begin
STEP = 16  # of the products, one in so many is in the sample
MARGIN = 2.0  # times the expected share of the sample, so that it seldom misleads

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Nearest:
    """The cosines of chunks, and on demand the span of each one's plain text that is nearest."""

    cosines: dict[int, float]
    _snapshot: Snapshot
    _rows: Numbers
    _scores: Scores
    _chunks: Numbers

    def span(self, rowid: int) -> tuple[int, int] | None:
        """Return the nearest span of a chunk."""
        if rowid not in self.cosines:
            return None
        first = int(self._chunks.searchsorted(rowid))
        last = int(self._chunks.searchsorted(rowid, "right"))
        best = first if last == first + 1 else first + int(self._scores[first:last].argmax())
        row = int(self._rows[best])
        at = next(at for at, end in enumerate(self._snapshot.starts[1:]) if row < end)
        start, end = self._snapshot.parts[at].segment.spans[row - self._snapshot.starts[at]].tolist()
        return start, end


def find_nearest(
    snapshot: Snapshot, query: Vectors, code: Codes, limit: int, *, filter: Filter | None, also: Collection[int]
) -> Nearest:
    """Return the nearest chunks that pass the filter, and the cosines of some others."""
    if not snapshot.live:
        return _nothing(snapshot)
    fetch = limit * snapshot.starts[-1] // max(1, snapshot.chunk_count) + limit // 2
    near = _candidates(snapshot, code, fetch, filter)
    wanted = np.fromiter(also, np.int64, len(also))
    wanted.sort()  # neighbours are near each other in memory
    rows = _with_passages_of(snapshot, near, wanted)
    if not len(rows):
        return _nothing(snapshot)
    halves, chunks = _read(snapshot, rows)
    scores = products(query, halves)
    if len(snapshot.parts) > 1:
        order = chunks.argsort(kind="stable")
        rows, scores, chunks = rows[order], scores[order], chunks[order]
    is_first = np.empty(len(chunks), np.bool_)
    is_first[0] = True
    np.not_equal(chunks[1:], chunks[:-1], out=is_first[1:])
    firsts = is_first.nonzero()[0]
    best, rowids = np.maximum.reduceat(scores, firsts), chunks[firsts]
    if len(best) > limit:
        keep = best >= np.partition(best, len(best) - limit)[len(best) - limit]
        if len(wanted):
            keep |= wanted.take(wanted.searchsorted(rowids), mode="clip") == rowids
        best, rowids = best[keep], rowids[keep]
    return Nearest(dict(zip(rowids.tolist(), best.tolist(), strict=True)), snapshot, rows, scores, chunks)


def _nothing(snapshot: Snapshot) -> Nearest:
    none = np.empty(0, np.int64)
    return Nearest({}, snapshot, none, np.empty(0), none)


def _candidates(snapshot: Snapshot, code: Codes, fetch: int, filter: Filter | None) -> Numbers:
    """Return the rows of the passages that are probably nearest."""
    masks = [_passing(part, filter) for part in snapshot.parts]
    passing = (
        snapshot.live if filter is None else sum(int(np.count_nonzero(mask)) for mask in masks if mask is not None)
    )
    found, values = [], []
    for part, start, mask in zip(snapshot.parts, snapshot.starts, masks, strict=False):
        if not len(part.segment):
            continue
        if filter is not None and mask is not None and passing <= MAX_SUBSET:
            positions = np.flatnonzero(mask)
            near = products(code, part.segment.codes[positions])
        elif part.segment.graph is None or (filter is not None and snapshot.live <= MAX_FILTERED_SCAN):
            near = products(code, part.segment.codes)
            if mask is not None:
                near[~mask] = -np.inf
            positions = largest(near, fetch)
            near = near[positions]
        else:
            count = fetch * FILTERED_FETCH if filter is not None else fetch
            positions = _ask_graph(part, code, count)
            if mask is not None:
                positions = positions[mask[positions]]
            near = products(code, part.segment.codes[positions])
        found.append(positions + start if start else positions)
        values.append(near)
    if not found:
        return np.empty(0, np.int64)
    rows, near = (found[0], values[0]) if len(found) == 1 else (np.concatenate(found), np.concatenate(values))
    best = largest(near, min(fetch, passing))
    rows, near = rows[best], near[best]
    return rows[near > -np.inf]  # a graph may find fewer than there are, and what does not pass would take their places


def _ask_graph(part: Part, code: Codes, count: int) -> Numbers:
    """Return the positions of what a graph finds; it does not know which passages were deleted since."""
    assert part.segment.graph is not None
    index = part.segment.graph.index
    spare = min(count, part.deleted_count)
    found = index.search(code, min(count + spare, len(index)), threads=1).keys
    return part.segment.positions(found.astype(np.int64))


def _passing(part: Part, filter: Filter | None) -> Mask | None:
    if filter is None:
        return None if part.deleted is None else ~part.deleted
    passing = part.segment.passing(filter)
    return passing if part.deleted is None else passing & ~part.deleted


def _with_passages_of(snapshot: Snapshot, near: Numbers, chunks: Numbers) -> Numbers:
    """Return rows in order, with those of all passages of some chunks."""
    if not len(chunks):
        return np.sort(near)
    found = [near]
    for part, start in zip(snapshot.parts, snapshot.starts, strict=False):
        positions = part.segment.passages_of(chunks)
        if part.deleted is not None:
            positions = positions[~part.deleted[positions]]
        found.append(positions + start if start else positions)
    rows = np.concatenate(found)
    rows.sort()
    is_first = np.empty(len(rows), np.bool_)
    is_first[:1] = True
    np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
    return rows[is_first]


def _read(snapshot: Snapshot, rows: Numbers) -> tuple[NDArray[np.float16], Numbers]:
    """Return the exact vectors and the chunks of rows, which are in order."""
    if len(snapshot.parts) == 1:
        segment = snapshot.parts[0].segment
        return segment.halves.take(rows, axis=0), segment.chunks.take(rows)
    bounds = rows.searchsorted(snapshot.starts).tolist()
    halves, chunks = [], []
    for at, part in enumerate(snapshot.parts):
        if bounds[at] < bounds[at + 1]:
            positions = rows[bounds[at] : bounds[at + 1]] - snapshot.starts[at]
            halves.append(part.segment.halves.take(positions, axis=0))
            chunks.append(part.segment.chunks.take(positions))
    return np.concatenate(halves), np.concatenate(chunks)


def products(query: NDArray[Any], rows: NDArray[Any]) -> Scores:
    """Return the product of a query with each row; numpy would convert rows, and wake threads that then spin."""
    if not len(rows):
        return np.empty(0)
    return np.asarray(numkong.cdist(query.astype(rows.dtype)[None], rows, "dot")).ravel()


def largest(values: Scores, count: int) -> Numbers:
    """Return the positions of the largest values."""
    size = len(values)
    if count >= size:
        return np.arange(size)
    if size > SAMPLED:
        sample = values[::STEP]
        kept = min(len(sample) - 1, int(count * MARGIN / STEP) + STEP)
        bound = np.partition(sample, len(sample) - kept)[len(sample) - kept]
        above = np.flatnonzero(values >= bound)
        if count <= len(above) < size // 2:
            return above if count == len(above) else above[np.argpartition(-values[above], count)[:count]]
    return np.argpartition(-values, count)[:count]
