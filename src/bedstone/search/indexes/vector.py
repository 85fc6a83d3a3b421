"""The vector index: segments that never change and a tail that grows, so that a change costs what changed."""

import logging
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bedstone.records import Change, StoredPassage
from bedstone.search.embedder import Vectors
from bedstone.search.filters import Filter
from bedstone.search.index import OnProgress
from bedstone.search.indexes.segments.arrays import ArraysDamaged
from bedstone.search.indexes.segments.facets import FacetList
from bedstone.search.indexes.segments.files import SegmentFiles
from bedstone.search.indexes.segments.graphs import make_graph
from bedstone.search.indexes.segments.loading import (
    ALL_CHUNKS,
    Changed,
    Found,
    VectorReader,
    changes_since,
    collect,
    summarize,
)
from bedstone.search.indexes.segments.manifest import Position, check_segment
from bedstone.search.indexes.segments.nearest import Nearest, find_nearest
from bedstone.search.indexes.segments.segment import Codes, Halves, Numbers, Part, Rows, Segment, Tail
from bedstone.search.indexes.segments.state import MAX_TAIL, State, Step, flush_step, next_step
from bedstone.search.indexes.segments.writing import merge_parts, write_segment
from bedstone.store.engine import Store

logger = logging.getLogger(__name__)

RETRY_SECONDS = 30.0  # before segments that could not be written are tried again
# Of numpy and usearch, when what they read makes no sense.
MISREAD = (LookupError, ValueError, RuntimeError, OverflowError)


class VectorIndex:
    """Finds chunks by their best passage; derived from a store.

    Vectors are scaled to int8 by `max_component`, the largest component they are expected to have. Segments are kept
    in `folder`, which one process writes; others map its files, and follow the store beyond them in memory. Segments
    are merged in the background, while searches use the old ones.
    """

    def __init__(
        self,
        store: Store,
        dimensions: int,
        max_component: float,
        folder: Path | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        self._store = store
        self._dimensions = dimensions
        self._reader = VectorReader(store, dimensions, 127 / max_component)
        self._files = SegmentFiles(folder, dimensions, self._reader.scale, is_writer=not read_only) if folder else None
        self._writes = self._files is not None and not read_only
        self._lock = threading.RLock()
        self._state = State((), Tail.empty(dimensions))
        self._is_open = False
        self._is_damaged = False
        self._has_changed = False  # the files, since they were saved last
        self._worker: threading.Thread | None = None
        self._is_stopping = False
        self._retry_at = 0.0

    def __len__(self) -> int:
        return self._state.snapshot.live

    @property
    def applied_seq(self) -> int:
        """The sequence number of the last change that is searchable."""
        return self._state.position.seq

    @property
    def problem(self) -> str | None:
        """What is repaired right now; all vectors are scanned meanwhile."""
        return "The vector index was damaged and is being rebuilt" if self._is_damaged else None

    def search(self, query: Vectors, limit: int, filter: Filter | None = None, also: Collection[int] = ()) -> Nearest:
        """Return the nearest chunks that pass the filter, and the cosines of some others."""
        code = self._reader.quantize(query)
        try:
            return find_nearest(self._state.snapshot, query, code, limit, filter=filter, also=also)
        except MISREAD:
            if not self.verify():
                raise
        return find_nearest(self._state.snapshot, query, code, limit, filter=filter, also=also)

    def catch_up(self, on_progress: OnProgress | None = None) -> None:
        """Apply the changes of the store."""
        with self._lock:
            last = self._store.last_change()
            if last is None or (self._is_open and last.seq == self._state.position.seq):
                return
            state = self._open()
            self._is_open = True
            changes = changes_since(self._store, state.position.seq, last.seq) if state.position.seq else None
            if changes is None:
                self._start_again(last, on_progress)
            else:
                self._use(self._apply(state, summarize(changes), _position(last), on_progress))
        self._maintain_soon()

    def verify(self) -> bool:
        """Read all files; if one is damaged, set them aside, start again from the store and return True."""
        if self._files is None or (reason := self._files.find_damage()) is None:
            return False
        with self._lock:
            if self._files.find_damage() is None:  # the files were replaced meanwhile
                return False
            self._replace_damaged(reason)
        self._maintain_soon()
        return True

    def finish(self) -> None:
        """Wait until segments are merged, and a damaged index is whole."""
        while self._maintain_soon():
            if (worker := self._worker) is not None:
                worker.join()

    def save(self) -> bool:
        """Write what is only in memory, after ending the work in the background; return whether files changed."""
        self._is_stopping = True
        try:
            if (worker := self._worker) is not None:
                worker.join()
            with self._lock:
                if not self._writes or not self._is_open:
                    return False
                if step := flush_step(self._state):
                    self._run(step)
                self._publish()
                has_changed, self._has_changed = self._has_changed, False
                return has_changed
        finally:
            self._is_stopping = False

    # Opening

    def _open(self) -> State:
        """Return the state of the files, if they are new; otherwise the one of this process."""
        if self._files is None or (self._is_open and self._writes):
            return self._state
        try:
            opened = self._files.open()
        except ArraysDamaged as error:
            if self._is_open:
                return self._state  # of another process, which repairs them
            self._set_aside(str(error))
            return self._state
        if opened is None:
            return self._state
        parts, position = opened
        if [change.stamp for change in self._store.changes(position.seq - 1, 1)] != [position.stamp]:
            return State((), Tail.empty(self._dimensions))  # its history differs
        return State(parts, Tail.empty(self._dimensions), position, position)

    def _set_aside(self, reason: str) -> None:
        logger.error("Rebuilding the vector index: %s", reason, extra={"action": "index_rebuilt"})
        assert self._files is not None
        self._is_damaged = True
        try:
            self._files.set_aside()
        except OSError as error:
            logger.warning("Cannot set the vector index aside: %s", error, extra={"action": "index_not_saved"})

    def _replace_damaged(self, reason: str) -> None:
        self._set_aside(reason)
        if (last := self._store.last_change()) is not None:
            self._start_again(last, None)

    def _start_again(self, last: Change, on_progress: OnProgress | None) -> None:
        """Read all vectors from the store."""
        empty = State((), Tail.empty(self._dimensions))
        self._use(self._apply(empty, Changed((), [ALL_CHUNKS]), _position(last), on_progress))

    def _use(self, state: State) -> None:
        self._state = state
        if self._writes and any(part.segment.file not in self._known_files() for part in state.segments):
            self._try_publish()

    def _known_files(self) -> set[Path | None]:
        assert self._files is not None
        return {None, *self._files.named_segments}

    # Changes

    def _apply(self, state: State, changed: Changed, position: Position, on_progress: OnProgress | None) -> State:
        """Return the state after changes: without deleted passages and with new ones."""
        segments = [part.without_chunks(changed.gone) for part in state.segments]
        tail = _without_chunks(state.tail, changed)
        if changed.read:
            facets = FacetList()
            found = collect(self._passages(changed), facets)
            live = [part.segment.ids[part.live_between(*pair)] for part in segments for pair in changed.read]
            tail_part = Part(tail.segment)
            live += [tail_part.segment.ids[tail_part.live_between(*pair)] for pair in changed.read]
            known = np.concatenate(live) if live else np.empty(0, np.int64)
            if len(gone := known[~np.isin(known, found.ids)]):
                segments = [_without_ids(part, gone) for part in segments]
                tail = tail.only(~np.isin(tail.rows.ids, gone))
            fresh = found.only(~np.isin(found.ids, known))
            if len(fresh) > MAX_TAIL:
                segments.append(Part(self._write_found(fresh, facets, position, on_progress)))
            elif len(fresh):
                tail = self._extend(tail, fresh, facets)
        after = State([part for part in segments if part.live], tail, position, state.flushed)
        return replace(after, flushed=position) if after.is_flushed else after

    def _passages(self, changed: Changed) -> Iterator[StoredPassage]:
        for first, last in changed.read:
            yield from self._store.passages_between(first, last)

    def _extend(self, tail: Tail, found: Found, facets: FacetList) -> Tail:
        codes, halves = self._reader.read(found.ids)
        sets = np.array([tail.facets.number(facets.sets[number]) for number in found.sets.tolist()], np.int32)
        return tail.append(Rows(found.ids, found.chunks, found.spans, sets, codes, halves))

    def _write_found(
        self, found: Found, facets: FacetList, position: Position, on_progress: OnProgress | None
    ) -> Segment:
        """Write many passages of the store as a segment; to memory where the disk does not take them."""

        def read_vectors(start: int, stop: int) -> tuple[Codes, Halves]:
            return self._reader.read(found.ids[start:stop])

        table, progress = facets.freeze(), on_progress or (lambda _: None)
        path = self._new_path(position, "segment")
        try:
            return write_segment(
                path, found.columns, table, self._dimensions, read_vectors=read_vectors, check=progress
            )
        except OSError as error:
            if path is None:
                raise
            self._delay(error)
            return write_segment(
                None, found.columns, table, self._dimensions, read_vectors=read_vectors, check=progress
            )

    def _new_path(self, position: Position, kind: str) -> Path | None:
        return self._files.new_path(position, kind) if self._files is not None and self._writes else None

    # Merging

    def _maintain_soon(self) -> bool:
        """Merge segments in a thread, if there is anything to merge; return whether there is."""
        with self._lock:
            if self._worker is not None:
                return True
            if self._is_stopping or time.monotonic() < self._retry_at:
                return False
            if next_step(self._state, has_files=self._writes) is None:
                self._is_damaged = False
                return False
            self._worker = threading.Thread(target=self._maintain, name="vector-segments", daemon=True)
            self._worker.start()
            return True

    def _maintain(self) -> None:
        try:
            while step := next_step(self._state, has_files=self._writes):
                self._run_or_replace(step)
            self._is_damaged = False
        except _Stopped:
            pass
        except Exception as error:  # noqa: BLE001 - searches use the old segments; the store may be closed
            self._delay(error)
        finally:
            with self._lock:
                self._worker = None

    def _run_or_replace(self, step: Step) -> None:
        """Run a step; if what it reads is damaged, start again from the store."""
        try:
            self._run(step)
        except ArraysDamaged as error:
            with self._lock:
                self._check()
                if any(part.segment is known.segment for part in step.parts for known in self._state.segments):
                    self._replace_damaged(str(error))

    def _delay(self, error: Exception) -> None:
        logger.warning("Cannot write the vector index: %s", error, extra={"action": "index_not_saved"})
        self._retry_at = time.monotonic() + RETRY_SECONDS

    def _check(self, _: int = 0) -> None:
        if self._is_stopping and threading.current_thread() is self._worker:
            raise _Stopped

    def _run(self, step: Step) -> None:
        """Write one segment in the place of several, without keeping searches or changes waiting."""
        try:
            merged = self._merge(step) if step.sources else None
            self._replace(step, merged)
        finally:
            if self._files is not None:
                with self._lock:
                    self._files.forget_drafts()

    def _replace(self, step: Step, merged: Segment | None) -> None:
        with self._lock:
            before = self._state
            held = [part for part in before.segments if any(part.segment is old.segment for old in step.parts)]
            if len(held) < len(step.parts):  # the index started again meanwhile
                return
            others = [part for part in before.segments if part not in held]
            tail = _after_flush(before.tail, step.state.tail) if step.takes_tail else before.tail
            if merged is not None:
                others.append(_without_ids(Part(merged), self._gone_meanwhile(step, held, before.tail)))
            after = State([part for part in others if part.live], tail, before.position, before.flushed)
            if after.is_flushed:
                after = replace(after, flushed=before.position)
            elif step.takes_tail and all(part.segment.file for part in others):
                after = replace(after, flushed=step.state.position)
            self._state = after
            if self._writes and not self._is_stopping:
                self._try_publish()

    def _merge(self, step: Step) -> Segment:
        sources, position = step.sources, step.state.position
        for part in sources:  # a new file would give what is wrong a right checksum
            check_segment(part.segment)
        old = next((part.segment for part in sources if part.segment.graph is not None), None)
        if len(sources) == 1 and not sources[0].deleted_count and sources[0].segment.file and step.wants_graph:
            segment = sources[0].segment
        else:
            path = self._new_path(position, "segment")
            segment = merge_parts(path, sources, self._dimensions, self._check)
        if not step.wants_graph:
            return segment
        old_graph, old_ids = (old.graph, old.ids) if old is not None else (None, segment.ids[:0])
        return replace(
            segment, graph=make_graph(segment, self._new_path(position, "graph"), old_graph, old_ids, self._check)
        )

    @staticmethod
    def _gone_meanwhile(step: Step, held: Sequence[Part], tail: Tail) -> Numbers:
        """Return the ids of the passages that were deleted while a segment with them was written."""
        gone = []
        for old in step.parts:
            new = next(part for part in held if part.segment is old.segment)
            if new.deleted is not None and new.deleted_count > old.deleted_count:
                were = np.zeros(len(new.segment), np.bool_) if old.deleted is None else old.deleted
                gone.append(new.segment.ids[new.deleted & ~were])
        if step.takes_tail:
            before = step.state.tail.rows.ids
            gone.append(before[~np.isin(before, tail.rows.ids)])
        return np.concatenate(gone) if gone else np.empty(0, np.int64)

    def _try_publish(self) -> None:
        try:
            self._publish()
        except OSError as error:
            self._delay(error)

    def _publish(self) -> None:
        assert self._files is not None
        parts = [part for part in self._state.segments if part.segment.file]
        self._has_changed = self._files.publish(parts, self._state.flushed) or self._has_changed


class _Stopped(Exception):
    """The index is about to be closed."""


def _position(change: Change) -> Position:
    return Position(change.seq, change.stamp)


def _without_chunks(tail: Tail, changed: Changed) -> Tail:
    part = Part(tail.segment).without_chunks(changed.gone)
    return tail if part.deleted is None else tail.only(~part.deleted)


def _without_ids(part: Part, ids: Numbers) -> Part:
    positions = part.segment.positions(ids) if len(ids) else ids
    return part.without([positions]) if len(positions) else part


def _after_flush(tail: Tail, flushed: Tail) -> Tail:
    """Return a tail of what came after a flush."""
    rows = tail.rows
    keep = ~np.isin(rows.ids, flushed.rows.ids)
    fresh = Tail.empty(rows.codes.shape[1])
    if not keep.any():
        return fresh
    sets = [fresh.facets.number(tail.facets.sets[number]) for number in rows.sets[keep].tolist()]
    return fresh.append(
        Rows(
            rows.ids[keep],
            rows.chunks[keep],
            rows.spans[keep],
            np.array(sets, np.int32),
            rows.codes[keep],
            rows.halves[keep],
        )
    )
