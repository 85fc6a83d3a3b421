"""The two tables in a cluster that follow a store: chunks with their terms, and passages with their vectors."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bedstone.records import Change
from bedstone.search.index import IndexDamaged, OnProgress
from bedstone.search.indexes.fields import Fields, fields_of
from bedstone.search.indexes.languages import ENDINGS
from bedstone.search.indexes.opensearch import bodies
from bedstone.search.indexes.opensearch.connection import ClusterConflict, ClusterUnavailable
from bedstone.search.terms import analyzer
from bedstone.store.engine import Store

if TYPE_CHECKING:
    from bedstone.search.indexes.opensearch.connection import Connection
    from bedstone.search.indexes.opensearch.progress import Progress, Records
    from bedstone.settings.sections import OpenSearchSettings

BATCH_CHANGES = 500
SMALL_BATCH = 50  # where others wait for the index
READ_BATCH = 500
MAX_RANGES = 400  # in one deletion
BYTES_PER_COMPONENT = 2


class Content(Protocol):
    """What a table is filled with."""

    name: str
    dimensions: int

    def body(self, settings: "OpenSearchSettings") -> bodies.Body:
        """Return what the index is created with."""

    def documents(self, changes: Sequence[Change], whole_until: int) -> Iterator[bodies.Body]:
        """Yield what the store has of changes now; a new index gets at once what several changes brought."""

    def stale(self, changes: Sequence[Change], whole_until: int) -> Iterator[bodies.Body]:
        """Yield queries for what is gone, once the documents of a batch are searchable."""


class Chunks:
    """A document for each chunk, and for each stretch of a long one."""

    name = "chunks"
    dimensions = 0

    def __init__(self, store: Store) -> None:
        self._store = store

    def body(self, settings: "OpenSearchSettings") -> bodies.Body:
        return bodies.chunks_body(settings)

    def documents(self, changes: Sequence[Change], whole_until: int) -> Iterator[bodies.Body]:
        document_of = lru_cache(maxsize=16)(self._store.document)
        for first, last in merge(_changed_ranges(changes, {"put"})):
            for stored in self._store.chunks_between(first, last):
                for number, fields in enumerate(fields_of(stored, document_of(stored.head.document_id))):
                    facets = _facets(stored.head.facets)
                    yield {"_id": f"{stored.head.rowid}.{number}", "_source": _to_terms(fields) | facets}

    def stale(self, changes: Sequence[Change], whole_until: int) -> Iterator[bodies.Body]:
        for ranges in _slices(merge(_deleted_ranges(changes))):
            yield bodies.ranges_query(ranges)


class Passages:
    """A document for each passage; those of deleted vectors are recognised by the batch that wrote them."""

    name = "passages"

    def __init__(self, store: Store, dimensions: int) -> None:
        self._store = store
        self.dimensions = dimensions

    def body(self, settings: "OpenSearchSettings") -> bodies.Body:
        return bodies.passages_body(settings, self.dimensions)

    def documents(self, changes: Sequence[Change], whole_until: int) -> Iterator[bodies.Body]:
        batch = changes[-1].seq
        for first, last in merge(_new_vectors(changes, whole_until)):
            passages = iter(self._store.passages_between(first, last))
            while part := list(islice(passages, READ_BATCH)):
                vectors = self._store.vectors([item.id for item in part])
                for item in part:
                    if item.id not in vectors:  # deleted in the meantime; a change will follow
                        continue
                    source = {
                        "rowid": item.passage.chunk_rowid,
                        "start": item.passage.start,
                        "end": item.passage.end,
                        "batch": batch,
                        bodies.VECTOR: self._numbers(vectors[item.id]),
                        **_facets(item.facets),
                    }
                    yield {"_id": str(item.id), "_source": source}

    def stale(self, changes: Sequence[Change], whole_until: int) -> Iterator[bodies.Body]:
        for ranges in _slices(merge(_deleted_ranges(changes))):
            yield bodies.ranges_query(ranges)
        later = [change for change in changes if change.seq > whole_until]
        for ranges in _slices(merge(_changed_ranges(later, {"vectors"}))):
            yield bodies.ranges_query(ranges, before=changes[-1].seq)

    def _numbers(self, vector: bytes) -> list[float]:
        if len(vector) != BYTES_PER_COMPONENT * self.dimensions:  # of another model, which a change replaces
            return [0.0] * self.dimensions
        numbers: list[float] = np.nan_to_num(np.frombuffer(vector, np.float16)).tolist()
        return numbers


class Table:
    """One index in the cluster: `progress` is what is searchable, None before there is anything."""

    def __init__(
        self,
        content: Content,
        store: Store,
        connection: "Connection",
        records: "Records",
        settings: "OpenSearchSettings",
    ) -> None:
        self._content = content
        self._store = store
        self._connection = connection
        self._records = records
        self._settings = settings
        self.progress: Progress | None = None

    @property
    def name(self) -> str:
        """The name of what it is filled with."""
        return self._content.name

    def is_current(self) -> bool:
        """Return whether every change of the store is searchable, without asking the cluster."""
        last, progress = self._store.last_change(), self.progress
        if progress is None or progress.is_damaged:
            return last is None
        return last is not None and (progress.seq, progress.stamp) == (last.seq, last.stamp)

    def reload(self) -> None:
        """Learn what another process wrote."""
        self.progress = self._records.read(self.name)

    def follow(self, on_progress: OnProgress | None, *, in_batches: bool) -> None:
        """Apply the changes of the store; from the beginning if the index followed another history."""
        last = self._store.last_change()  # later changes are for the next call, or this one might never end
        if last is None or self.is_current():
            return
        if self.progress is None:
            self.reload()
        progress = self.progress
        if progress is None or not self._fits(progress):
            progress = self._begin(last, progress)
        size = SMALL_BATCH if in_batches else BATCH_CHANGES
        while progress.seq < last.seq and (changes := self._store.changes(progress.seq, size)):
            if progress.seq and changes[0].seq != progress.seq + 1:  # the next ones were pruned meanwhile
                last = self._store.last_change() or last
                progress = self._begin(last, progress)
                continue
            self._apply(progress, changes)
            progress = self._record(progress, changes)
            if on_progress:
                on_progress(progress.seq)

    def _begin(self, last: Change, old: "Progress | None") -> "Progress":
        """Put an empty index in place of another one."""
        body, dimensions = self._content.body(self._settings), self._content.dimensions
        self.progress = self._records.begin(self.name, body, dimensions, last.seq, old)
        return self.progress

    def _record(self, progress: "Progress", changes: Sequence[Change]) -> "Progress":
        """Record that changes were applied; if another process has become the writer, take back what is gone by now."""
        newest = changes[-1]
        try:
            self.progress = self._records.write(self.name, replace(progress, seq=newest.seq, stamp=newest.stamp))
        except ClusterConflict:
            with suppress(ClusterUnavailable, ClusterConflict, IndexDamaged):
                self._delete_gone(progress.index, newest.seq)
            raise
        return self.progress

    def _delete_gone(self, index: str, after: int) -> None:
        """Delete what later changes took: the writer may have applied them before this process wrote it."""
        while changes := self._store.changes(after, BATCH_CHANGES):
            for ranges in _slices(merge(_deleted_ranges(changes))):
                self._connection.delete_matching(index, bodies.ranges_query(ranges))
            after = changes[-1].seq
        self._connection.refresh(index)

    def discard(self) -> None:
        """Record that the index is not whole: it is made again with the next change that is applied."""
        if self.progress is not None:
            self.progress = self._records.write(self.name, replace(self.progress, is_damaged=True))

    def forget(self) -> None:
        """Read the record again before the next change, which another process may have written."""
        self.progress = None

    def _fits(self, progress: "Progress") -> bool:
        if progress.is_damaged or progress.dimensions != self._content.dimensions:
            return False
        known = [change.stamp for change in self._store.changes(progress.seq - 1, 1)] if progress.seq else [0]
        return known == [progress.stamp]

    def _apply(self, progress: "Progress", changes: Sequence[Change]) -> None:
        """Write what changes brought and delete what they took; done twice, it has the same result."""
        index, whole_until = progress.index, progress.whole_until
        try:
            self._connection.write(index, self._content.documents(changes, whole_until))
            self._connection.refresh(index)
            stale = self._content.stale(changes, whole_until)
            if sum(self._connection.delete_matching(index, query) for query in stale):
                self._connection.refresh(index)
        except IndexDamaged:
            self.discard()
            raise


def merge(ranges: Iterable[bodies.Range]) -> list[bodies.Range]:
    """Return ranges in order, with neighbours as one."""
    merged: list[bodies.Range] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _changed_ranges(changes: Iterable[Change], kinds: set[str]) -> Iterator[bodies.Range]:
    return ((change.first, change.last) for change in changes if change.kind in kinds and change.first <= change.last)


def _new_vectors(changes: Sequence[Change], whole_until: int) -> Iterator[bodies.Range]:
    """Yield the chunks whose vectors are read: with the chunks where there is a history, and as they arrive later."""
    yield from _changed_ranges([change for change in changes if change.seq <= whole_until], {"put"})
    yield from _changed_ranges([change for change in changes if change.seq > whole_until], {"vectors"})


def _deleted_ranges(changes: Iterable[Change]) -> Iterator[bodies.Range]:
    return ((change.gone_first, change.gone_last) for change in changes if change.gone_first <= change.gone_last)


def _slices(ranges: Sequence[bodies.Range]) -> Iterator[Sequence[bodies.Range]]:
    return (ranges[start : start + MAX_RANGES] for start in range(0, len(ranges), MAX_RANGES))


def _facets(facets: Any) -> Fields:
    return {"facets": [bodies.facet_term(key, value) for key, value in facets.items()], "facet_keys": [*facets]}


def _to_terms(fields: Fields) -> Fields:
    """Return the fields of a document with text as terms, which the cluster only has to split at spaces."""
    analyze = analyzer().analyze
    fields = {**fields, **{name: " ".join(analyze(fields[name])) for name in ("all", "head")}}
    if ENDINGS in fields:
        endings = fields[ENDINGS].split()
        fields |= {ENDINGS: endings, bodies.BEGINNINGS: [ending[::-1] for ending in endings]}
    return fields
