"""The store in memory: for tests, and for data that need not last."""

import json
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from bedstone.records import (
    Change,
    ChangeKind,
    Chunk,
    ChunkHead,
    Counts,
    Document,
    DocumentAndChunks,
    Passage,
    StoredChunk,
    StoredPassage,
    Task,
    TaskStatus,
)
from bedstone.store.engine import ALL, EMPTY_RANGE
from bedstone.store.filters import Condition, Order, matches, sort_documents
from bedstone.store.notes import Notes


class MemoryStore:
    """Dictionaries behind a lock."""

    notes: Notes | None = None

    @classmethod
    def open(cls, address: str, *, read_only: bool = False, durable: bool = False) -> Self:
        """Return an empty store; nothing is kept when it is closed."""
        return cls()

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._written = threading.Condition(self._lock)
        self._version = 0
        self._documents: dict[str, Document] = {}
        self._chunks: dict[int, StoredChunk] = {}
        self._passages: dict[int, StoredPassage] = {}
        self._vectors: dict[int, bytes] = {}
        self._changes: list[Change] = []
        self._values: dict[str, str] = {}
        self._tasks: dict[str, Task] = {}
        self._cancel_requests: set[str] = set()
        self._lock_owners: dict[str, MemoryLock] = {}
        self._next_chunk = self._next_passage = 1

    def put(self, items: Iterable[DocumentAndChunks]) -> None:
        with self._writing():
            for document, chunks in items:
                gone = self._remove(document.id)
                self._documents[document.id] = document
                self._record("put", self._insert(document.id, chunks), gone)

    def put_with_task(self, item: DocumentAndChunks, task: Task) -> None:
        with self._writing():
            self.put([item])
            self._tasks[task.id] = task

    def delete(self, document_ids: Iterable[str]) -> None:
        with self._writing():
            for document_id in document_ids:
                if document_id in self._documents:
                    self._record("delete", EMPTY_RANGE, self._remove(document_id))

    def put_passages(self, passages: Sequence[tuple[Passage, bytes]]) -> None:
        with self._writing():
            for passage, vector in passages:
                if passage.chunk_rowid in self._chunks:
                    facets = self._chunks[passage.chunk_rowid].head.facets
                    self._passages[self._next_passage] = StoredPassage(self._next_passage, passage, facets)
                    self._vectors[self._next_passage] = vector
                    self._next_passage += 1
            if passages:
                numbers = [passage.chunk_rowid for passage, _ in passages]
                self._record("vectors", (min(numbers), max(numbers)), EMPTY_RANGE)

    def delete_passages(self) -> None:
        with self._writing():
            if self._passages:
                self._passages.clear()
                self._vectors.clear()
                self._record("vectors", (min(self._chunks), max(self._chunks)), EMPTY_RANGE)

    def update_documents(self, documents: Iterable[Document]) -> None:
        with self._writing():
            self._documents |= {item.id: item for item in documents if item.id in self._documents}

    def update_and_delete(self, documents: Iterable[Document], deleted: Iterable[str]) -> None:
        with self._writing():
            self.update_documents(documents)
            self.delete(deleted)

    def find_by_digest(self, digest: str) -> Document | None:
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

    def documents_by_id(self, document_ids: Collection[str]) -> dict[str, Document]:
        return {name: document for name in document_ids if (document := self.document(name))}

    def documents(
        self,
        conditions: Sequence[Condition] = (),
        *,
        order: Order | None = None,
        offset: int = 0,
        limit: int = 1000,
    ) -> list[Document]:
        with self._lock:
            every = [self._documents[name] for name in sorted(self._documents)]
        found = [document for document in every if matches(document, conditions)]
        return (sort_documents(found, order) if order else found)[offset : offset + limit]

    def document_ids(self, conditions: Sequence[Condition]) -> list[str]:
        return [document.id for document in self.documents(conditions, limit=len(self._documents))]

    def count_documents(self, conditions: Sequence[Condition] = ()) -> int:
        return len(self.document_ids(conditions))

    def count_attributes(self, names: Sequence[str]) -> dict[tuple[str, ...], int]:
        with self._lock:
            rows = [item.attributes for item in self._documents.values()]
        return dict(Counter(tuple(attributes.get(name, "") for name in names) for attributes in rows))

    def member_names(self, name: str) -> list[str]:
        with self._lock:
            texts = {item.attributes.get(name) or "{}" for item in self._documents.values()}
        return sorted({key for text in texts for key in json.loads(text)})

    def sum_attribute(self, name: str) -> int:
        with self._lock:
            return sum(int(item.attributes.get(name) or 0) for item in self._documents.values())

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        with self._lock:
            return next((stored for stored in self._chunks.values() if stored.head.id == chunk_id), None)

    def chunks(self, rowids: Sequence[int]) -> dict[int, StoredChunk]:
        with self._lock:
            return {rowid: self._chunks[rowid] for rowid in rowids if rowid in self._chunks}

    def chunk_heads(self, rowids: Sequence[int]) -> dict[int, ChunkHead]:
        return {rowid: stored.head for rowid, stored in self.chunks(rowids).items()}

    def plain_texts(self, rowids: Sequence[int]) -> dict[int, str]:
        return {rowid: stored.plain for rowid, stored in self.chunks(rowids).items()}

    def chunks_of(self, document_id: str) -> list[StoredChunk]:
        with self._lock:
            return [stored for stored in self._chunks.values() if stored.head.document_id == document_id]

    def chunk_counts(self, document_id: str | None = None) -> dict[str, int]:
        with self._lock:
            owners = [stored.head.document_id for stored in self._chunks.values()]
        return dict(Counter(owner for owner in owners if document_id in (None, owner)))

    def first_chunks(self) -> list[int]:
        with self._lock:
            return sorted(rowid for rowid, stored in self._chunks.items() if stored.head.position == 0)

    def chunks_between(self, first: int, last: int) -> Iterator[StoredChunk]:
        with self._lock:
            yield from [stored for rowid, stored in self._chunks.items() if first <= rowid <= last]

    def chunks_without_vectors(
        self, *, document_id: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[StoredChunk]:
        with self._lock:
            embedded = {stored.passage.chunk_rowid for stored in self._passages.values()}
            waiting = [item for rowid, item in self._chunks.items() if rowid > after and rowid not in embedded]
        return [item for item in waiting if document_id in (None, item.head.document_id)][:limit]

    def passages_between(self, first: int, last: int) -> Iterator[StoredPassage]:
        with self._lock:
            inside = [item for item in self._passages.values() if first <= item.passage.chunk_rowid <= last]
            yield from sorted(inside, key=lambda item: (item.passage.chunk_rowid, item.passage.start))

    def vectors(self, passage_ids: Sequence[int]) -> dict[int, bytes]:
        with self._lock:
            return {number: self._vectors[number] for number in passage_ids if number in self._vectors}

    def facets(self) -> Mapping[str, Sequence[str]]:
        with self._lock:
            pairs = {pair for stored in self._chunks.values() for pair in stored.head.facets.items()}
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

    def version(self) -> int:
        with self._lock:
            return self._version

    def wait_for_change(self, after: int, timeout: float) -> bool:
        with self._written:
            return self._written.wait_for(lambda: self._version != after, timeout)

    def lock(self, name: str) -> "MemoryLock":
        return MemoryLock(self._lock_owners, name)

    def put_task(self, task: Task) -> None:
        with self._writing():
            self._tasks[task.id] = task

    def replace_task(self, task: Task, expected_status: TaskStatus) -> bool:
        with self._writing():
            known = self._tasks.get(task.id)
            if known is None or known.status != expected_status:
                return False
            self._tasks[task.id] = task
            return True

    def task(self, task_id: str) -> Task | None:
        return self._tasks.get(task_id)

    def count_queued_before(self, task: Task) -> int:
        queued = self.tasks({"queued"}, limit=len(self._tasks))
        return sum((other.created_at, other.id) < (task.created_at, task.id) for other in queued)

    def tasks(self, statuses: Collection[TaskStatus], *, limit: int = 1000) -> list[Task]:
        with self._lock:
            found = [task for task in self._tasks.values() if task.status in statuses]
        return sorted(found, key=lambda task: (task.created_at, task.id))[:limit]

    def abandoned_tasks(self) -> list[Task]:
        return self.tasks({"running"}, limit=ALL)

    def finished_tasks(
        self, statuses: Collection[TaskStatus], *, dismissed: bool = True, offset: int = 0, limit: int = 1000
    ) -> list[Task]:
        found = [task for task in self._tasks_with(statuses, dismissed=dismissed) if task.finished_at is not None]
        found.sort(key=lambda task: (task.finished_at or 0, task.id), reverse=True)
        return found[offset : offset + limit]

    def count_tasks(self, statuses: Collection[TaskStatus], *, dismissed: bool = True) -> int:
        return len(self._tasks_with(statuses, dismissed=dismissed))

    def _tasks_with(self, statuses: Collection[TaskStatus], *, dismissed: bool) -> list[Task]:
        with self._lock:
            known = list(self._tasks.values())
        return [task for task in known if task.status in statuses and (dismissed or not task.is_dismissed)]

    def prune_tasks(self, before: float, keep: int) -> None:
        with self._writing():
            finished = [task for task in self._tasks.values() if task.finished_at is not None]
            for task in sorted(finished, key=lambda task: -(task.finished_at or 0))[keep:]:
                if (task.finished_at or 0) < before:
                    del self._tasks[task.id]

    def request_cancel(self, task_id: str) -> None:
        with self._writing():
            self._cancel_requests.add(task_id)

    def cancel_requests(self) -> set[str]:
        with self._lock:
            return set(self._cancel_requests)

    def delete_cancel_request(self, task_id: str) -> None:
        with self._writing():
            self._cancel_requests.discard(task_id)

    def check_readable(self) -> None:
        """Do nothing: memory can be read."""

    def check_writable(self) -> None:
        """Do nothing: memory can be written."""

    def check_integrity(self, on_progress: Callable[[int, int], None] = lambda done, total: None) -> list[str]:
        """Return nothing: what is in memory is whole."""
        return []

    def get_value(self, name: str) -> str | None:
        return self._values.get(name)

    def list_values(self, prefix: str) -> dict[str, str]:
        with self._lock:
            found = sorted(self._values.items())
        return {name.removeprefix(prefix): value for name, value in found if name.startswith(prefix)}

    def set_value(self, name: str, value: str) -> None:
        with self._writing():
            self._values[name] = value

    def delete_value(self, name: str) -> None:
        with self._writing():
            self._values.pop(name, None)

    def seal(self) -> None:
        return

    def close(self) -> None:
        """Do nothing: no files are open."""

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._written:
            yield
            self._version += 1
            self._written.notify_all()

    def _insert(self, document_id: str, chunks: Sequence[Chunk]) -> tuple[int, int]:
        first = self._next_chunk
        for position, item in enumerate(chunks):
            place = (first + position, document_id, position, item.id, item.heading, item.level)
            head = ChunkHead(*place, item.breadcrumb, item.facets, item.page, item.places, item.span)
            self._chunks[head.rowid] = StoredChunk(head, item.text, item.plain)
        self._next_chunk += len(chunks)
        return (first, self._next_chunk - 1) if chunks else EMPTY_RANGE

    def _remove(self, document_id: str) -> tuple[int, int]:
        gone = [stored.head.rowid for stored in self.chunks_of(document_id)]
        self._documents.pop(document_id, None)
        for rowid in gone:
            del self._chunks[rowid]
        lost = [number for number, stored in self._passages.items() if stored.passage.chunk_rowid in gone]
        for number in lost:
            del self._passages[number], self._vectors[number]
        return (gone[0], gone[-1]) if gone else EMPTY_RANGE

    def _record(self, kind: ChangeKind, came: tuple[int, int], gone: tuple[int, int]) -> None:
        self._changes.append(Change(len(self._changes) + 1, secrets.randbits(62), kind, *came, *gone))


class MemoryLock:
    """A lock between the users of one store in memory."""

    def __init__(self, owners: "dict[str, MemoryLock]", name: str) -> None:
        self._owners = owners
        self._name = name

    @property
    def is_held(self) -> bool:
        return self._owners.get(self._name) is self

    def acquire(self) -> bool:
        return self._owners.setdefault(self._name, self) is self

    def release(self) -> None:
        if self.is_held:
            del self._owners[self._name]
