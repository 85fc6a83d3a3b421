"""The store in memory: for tests, and for what need not last."""

import secrets
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from bedstone.records import Chunk, Document, Passage, StoredChunk
from bedstone.store.engine import (
    EMPTY_RANGE,
    Change,
    ChangeKind,
    Counts,
    DocumentAndChunks,
    StoredPassage,
    TaskRecord,
    TaskStatus,
)


class MemoryStore:
    """Dictionaries behind a lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._documents: dict[str, Document] = {}
        self._chunks: dict[int, StoredChunk] = {}
        self._passages: dict[int, StoredPassage] = {}
        self._vectors: dict[int, bytes] = {}
        self._changes: list[Change] = []
        self._settings: dict[str, str] = {}
        self._tasks: dict[str, TaskRecord] = {}
        self._next_chunk = self._next_passage = 1
        self._version = 0

    def put(self, items: Iterable[DocumentAndChunks]) -> None:
        with self._lock:
            for document, chunks in items:
                gone = self._remove(document.id)
                self._documents[document.id] = document
                self._record("put", self._insert(document.id, chunks), gone)

    def delete(self, document_ids: Iterable[str]) -> None:
        with self._lock:
            for document_id in document_ids:
                if document_id in self._documents:
                    self._record("delete", EMPTY_RANGE, self._remove(document_id))

    def put_passages(self, passages: Sequence[tuple[Passage, bytes]]) -> None:
        with self._lock:
            for passage, vector in passages:
                if passage.chunk in self._chunks:
                    facets = self._chunks[passage.chunk].chunk.facets
                    self._passages[self._next_passage] = StoredPassage(self._next_passage, passage, facets)
                    self._vectors[self._next_passage] = vector
                    self._next_passage += 1
            if passages:
                numbers = [passage.chunk for passage, _ in passages]
                self._record("vectors", (min(numbers), max(numbers)), EMPTY_RANGE)

    def delete_passages(self) -> None:
        with self._lock:
            if self._passages:
                self._passages.clear()
                self._vectors.clear()
                self._record("vectors", (min(self._chunks), max(self._chunks)), EMPTY_RANGE)

    def update_documents(self, documents: Iterable[Document]) -> None:
        with self._lock:
            self._documents |= {item.id: item for item in documents if item.id in self._documents}

    def version(self) -> tuple[int, int]:
        with self._lock:
            self._version += 1  # cheap to read, so nobody needs to know whether anything changed
            return self._version, 0

    def with_digest(self, digest: str) -> Document | None:
        with self._lock:
            return next((item for item in self._documents.values() if item.digest == digest), None)

    def digests(self) -> dict[str, str]:
        with self._lock:
            return {document.id: document.digest for document in self._documents.values()}

    def titles(self) -> dict[str, str]:
        with self._lock:
            return {identity: self._documents[identity].title for identity in sorted(self._documents)}

    def document(self, document_id: str) -> Document | None:
        return self._documents.get(document_id)

    def documents(self, *, offset: int = 0, limit: int = 1000) -> list[Document]:
        with self._lock:
            return [self._documents[name] for name in sorted(self._documents)[offset : offset + limit]]

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        with self._lock:
            return next((stored for stored in self._chunks.values() if stored.chunk.id == chunk_id), None)

    def chunks(self, rowids: Sequence[int]) -> dict[int, StoredChunk]:
        with self._lock:
            return {rowid: self._chunks[rowid] for rowid in rowids if rowid in self._chunks}

    def heads(self, rowids: Sequence[int]) -> dict[int, StoredChunk]:
        return {rowid: _without_texts(stored) for rowid, stored in self.chunks(rowids).items()}

    def plains(self, rowids: Sequence[int]) -> dict[int, str]:
        return {rowid: stored.chunk.plain for rowid, stored in self.chunks(rowids).items()}

    def chunks_of(self, document_id: str) -> list[StoredChunk]:
        with self._lock:
            return [stored for stored in self._chunks.values() if stored.document == document_id]

    def chunk_counts(self, document_id: str | None = None) -> dict[str, int]:
        with self._lock:
            owners = [stored.document for stored in self._chunks.values()]
        return dict(Counter(owner for owner in owners if document_id in (None, owner)))

    def first_chunks(self) -> list[int]:
        with self._lock:
            return sorted(rowid for rowid, stored in self._chunks.items() if stored.position == 0)

    def chunks_between(self, first: int, last: int) -> Iterator[StoredChunk]:
        with self._lock:
            yield from [stored for rowid, stored in self._chunks.items() if first <= rowid <= last]

    def unembedded(self, *, after: int = 0, limit: int = 1000) -> list[StoredChunk]:
        with self._lock:
            embedded = {stored.passage.chunk for stored in self._passages.values()}
            waiting = [item for rowid, item in self._chunks.items() if rowid > after and rowid not in embedded]
            return waiting[:limit]

    def passages_between(self, first: int, last: int) -> Iterator[StoredPassage]:
        with self._lock:
            inside = [item for item in self._passages.values() if first <= item.passage.chunk <= last]
            yield from sorted(inside, key=lambda item: (item.passage.chunk, item.passage.start))

    def vectors(self, passage_ids: Sequence[int]) -> dict[int, bytes]:
        with self._lock:
            return {number: self._vectors[number] for number in passage_ids if number in self._vectors}

    def facets(self) -> Mapping[str, Sequence[str]]:
        with self._lock:
            pairs = {pair for stored in self._chunks.values() for pair in stored.chunk.facets.items()}
            return {
                key: sorted(value for name, value in pairs if name == key)
                for key in sorted({name for name, _ in pairs})
            }

    def counts(self) -> Counts:
        with self._lock:
            return Counts(len(self._documents), len(self._chunks), len(self._passages))

    def changes(self, after: int, limit: int = 1000) -> list[Change]:
        with self._lock:
            return self._changes[after : after + limit]

    def last_change(self) -> Change | None:
        with self._lock:
            return self._changes[-1] if self._changes else None

    def put_task(self, task: TaskRecord) -> None:
        with self._lock:
            self._tasks[task.id] = task

    def change_task(self, task: TaskRecord, was: TaskStatus) -> bool:
        with self._lock:
            known = self._tasks.get(task.id)
            if known is None or known.status != was:
                return False
            self._tasks[task.id] = task
            return True

    def task(self, task_id: str) -> TaskRecord | None:
        return self._tasks.get(task_id)

    def queued_before(self, task: TaskRecord) -> int:
        return sum((other.created, other.id) < (task.created, task.id) for other in self.tasks({"queued"}, limit=10**9))

    def tasks(self, statuses: Collection[TaskStatus], *, limit: int = 1000) -> list[TaskRecord]:
        with self._lock:
            found = [task for task in self._tasks.values() if task.status in statuses]
        return sorted(found, key=lambda task: (task.created, task.id))[:limit]

    def prune_tasks(self, before: float, keep: int) -> None:
        with self._lock:
            ended = sorted(
                (task for task in self._tasks.values() if task.finished is not None),
                key=lambda task: -(task.finished or 0),
            )
            for task in ended[keep:]:
                if (task.finished or 0) < before:
                    del self._tasks[task.id]

    def probe(self) -> None:
        pass

    def setting(self, name: str) -> str | None:
        return self._settings.get(name)

    def settings(self, prefix: str) -> dict[str, str]:
        found = sorted(self._settings.items())
        return {name.removeprefix(prefix): value for name, value in found if name.startswith(prefix)}

    def set_setting(self, name: str, value: str) -> None:
        self._settings[name] = value

    def delete_setting(self, name: str) -> None:
        self._settings.pop(name, None)

    def close(self) -> None:
        """Nothing to let go of."""

    def _insert(self, document_id: str, chunks: Sequence[Chunk]) -> tuple[int, int]:
        first = self._next_chunk
        for position, chunk in enumerate(chunks):
            self._chunks[first + position] = StoredChunk(first + position, document_id, position, chunk)
        self._next_chunk += len(chunks)
        return (first, self._next_chunk - 1) if chunks else EMPTY_RANGE

    def _remove(self, document_id: str) -> tuple[int, int]:
        gone = [stored.rowid for stored in self.chunks_of(document_id)]
        self._documents.pop(document_id, None)
        for rowid in gone:
            del self._chunks[rowid]
        lost = [number for number, stored in self._passages.items() if stored.passage.chunk in gone]
        for number in lost:
            del self._passages[number], self._vectors[number]
        return (gone[0], gone[-1]) if gone else EMPTY_RANGE

    def _record(self, kind: ChangeKind, came: tuple[int, int], gone: tuple[int, int]) -> None:
        self._changes.append(Change(len(self._changes) + 1, secrets.randbits(62), kind, *came, *gone))


def _without_texts(stored: StoredChunk) -> StoredChunk:
    return replace(stored, chunk=replace(stored.chunk, text="", plain=""))
