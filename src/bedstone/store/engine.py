"""Store: what every store engine does, and what its callers can rely on."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from bedstone.errors import InvalidInput, Unavailable
from bedstone.records import (
    Change,
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
from bedstone.store.filters import Condition, Order
from bedstone.store.locks import Lock
from bedstone.store.notes import Notes

EMPTY_RANGE = (1, 0)
ALL = 2**31  # as a limit: every record


class StoreVersionMismatch(InvalidInput):
    """A store was written by another version of Bedstone."""

    code = "outdated_store"


class StoreUnavailable(Unavailable):
    """A store cannot be read or written; the message says why."""

    code = "store_unavailable"


class StoreDamaged(StoreUnavailable):
    """The files of a store are corrupt, or a part of its content is; the message says what is."""

    code = "store_damaged"


class Store(Protocol):
    """The truth. Every method that changes something is one transaction: it happens completely or not at all.

    Chunks and passages are numbered; a number is never used twice, even after its owner is deleted. Methods block;
    several threads may call them.
    """

    @property
    def notes(self) -> Notes | None:
        """Where processes on several machines leave each other notes; None for a store of one machine.

        With notes, any number of processes may run tasks at the same time, and each task has the connection of its
        process as its holder.
        """

    def put(self, items: Iterable[DocumentAndChunks]) -> None:
        """Add documents, each in place of the one with its id; every document is one change."""

    def put_with_task(self, item: DocumentAndChunks, task: Task) -> None:
        """Add a document and the task that completes it, in one transaction."""

    def delete(self, document_ids: Iterable[str]) -> None:
        """Delete documents with their chunks and passages; ignore unknown ids."""

    def put_passages(self, passages: Sequence[tuple[Passage, bytes]]) -> None:
        """Add vectors to chunks; drop passages of chunks that no longer exist."""

    def delete_passages(self) -> None:
        """Delete every vector, as one change over all chunks: another model is going to make them."""

    def update_documents(self, documents: Iterable[Document]) -> None:
        """Replace titles, digests and attributes without touching chunks; not a change for any index."""

    def update_and_delete(self, documents: Iterable[Document], deleted: Iterable[str]) -> None:
        """Do both in one transaction: no reader sees an old version without its new one, or both as complete."""

    def find_by_digest(self, digest: str) -> Document | None:
        """Return a document with this digest."""

    def digests(self) -> dict[str, str]:
        """Return the digest of every document by its id."""

    def titles(self) -> dict[str, str]:
        """Return the title of every document by its id, in the order of the ids."""

    def document(self, document_id: str) -> Document | None:
        """Return one document."""

    def documents_by_id(self, document_ids: Collection[str]) -> dict[str, Document]:
        """Return the documents that exist."""

    def documents(
        self,
        conditions: Sequence[Condition] = (),
        *,
        order: Order | None = None,
        offset: int = 0,
        limit: int = 1000,
    ) -> list[Document]:
        """Return the documents that meet every condition, by id or in another order."""

    def document_ids(self, conditions: Sequence[Condition]) -> list[str]:
        """Return the ids of the documents that meet every condition, in any order."""

    def count_documents(self, conditions: Sequence[Condition] = ()) -> int:
        """Return how many documents meet every condition."""

    def count_attributes(self, names: Sequence[str]) -> dict[tuple[str, ...], int]:
        """Return how many documents have each combination of values; a missing attribute is an empty text."""

    def member_names(self, name: str) -> list[str]:
        """Return the keys that an attribute has in any document, sorted; the attribute is a JSON object."""

    def sum_attribute(self, name: str) -> int:
        """Return the sum of an attribute over all documents."""

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        """Return one chunk by its public id."""

    def chunks(self, rowids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return chunks by number; deleted ones are missing."""

    def chunk_heads(self, rowids: Sequence[int]) -> dict[int, ChunkHead]:
        """Return chunks without their texts by number; deleted ones are missing."""

    def plain_texts(self, rowids: Sequence[int]) -> dict[int, str]:
        """Return the plain texts of chunks by number; deleted ones are missing."""

    def chunks_of(self, document_id: str) -> list[StoredChunk]:
        """Return a document's chunks in order."""

    def chunk_counts(self, document_id: str | None = None) -> dict[str, int]:
        """Return how many chunks each document has, or one of them; documents without chunks are missing."""

    def first_chunks(self) -> list[int]:
        """Return the number of each document's first chunk, in order; the others follow it without a gap."""

    def chunks_between(self, first: int, last: int) -> Iterator[StoredChunk]:
        """Iterate over the chunks with numbers in a range, in order."""

    def chunks_without_vectors(
        self, *, document_id: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[StoredChunk]:
        """Return chunks without passages, of one document or of all, in the order of their numbers."""

    def passages_between(self, first: int, last: int) -> Iterator[StoredPassage]:
        """Iterate over the passages of the chunks with numbers in a range, by chunk and start."""

    def vectors(self, passage_ids: Sequence[int]) -> dict[int, bytes]:
        """Return vectors by passage, as little-endian float16; deleted ones are missing."""

    def facets(self) -> Mapping[str, Sequence[str]]:
        """Return every facet with its values, sorted."""

    def counts(self) -> Counts:
        """Return how many documents, chunks and passages there are."""

    def changes(self, after: int, limit: int = 1000) -> list[Change]:
        """Return the changes after a sequence number, in order."""

    def last_change(self) -> Change | None:
        """Return the newest change."""

    def version(self) -> int:
        """Return a number that differs after any process has written anything."""

    def wait_for_change(self, after: int, timeout: float) -> bool:
        """Wait until the version is another one than `after`, at most `timeout` seconds; return whether it is."""

    def lock(self, name: str) -> Lock:
        """Return a lock that all processes with this store share; it is lost with the connection to the store."""

    def put_task(self, task: Task) -> None:
        """Add a task, or replace the one with its id, unless another process is known to run it."""

    def replace_task(self, task: Task, expected_status: TaskStatus) -> bool:
        """Replace a task only if it still has a status; of several callers that try, one succeeds."""

    def task(self, task_id: str) -> Task | None:
        """Return one task."""

    def count_queued_before(self, task: Task) -> int:
        """Return how many queued tasks come before a task."""

    def tasks(self, statuses: Collection[TaskStatus], *, limit: int = 1000) -> list[Task]:
        """Return tasks with one of these statuses, the oldest first."""

    def abandoned_tasks(self) -> list[Task]:
        """Return the running tasks whose process has ended, the oldest first; only the owner of the tasks may ask."""

    def finished_tasks(
        self, statuses: Collection[TaskStatus], *, dismissed: bool = True, offset: int = 0, limit: int = 1000
    ) -> list[Task]:
        """Return finished tasks with one of these statuses, the last to finish first."""

    def count_tasks(self, statuses: Collection[TaskStatus], *, dismissed: bool = True) -> int:
        """Return how many tasks have one of these statuses, with dismissed ones or without."""

    def prune_tasks(self, before: float, keep: int) -> None:
        """Delete tasks that finished before a time, but never the last `keep` that finished."""

    def request_cancel(self, task_id: str) -> None:
        """Ask the process that runs a task to cancel it."""

    def cancel_requests(self) -> set[str]:
        """Return the ids of the tasks that are to be cancelled."""

    def delete_cancel_request(self, task_id: str) -> None:
        """Delete a request to cancel; ignore an unknown one."""

    def check_readable(self) -> None:
        """Raise `StoreUnavailable` if nothing can be read now."""

    def check_writable(self) -> None:
        """Raise `StoreUnavailable` if nothing can be written now; undo what is written to find out."""

    def check_integrity(self, on_progress: Callable[[int, int], None] = lambda done, total: None) -> list[str]:
        """Return what is wrong, after reading everything; `on_progress` gets the chunks that were read, and all."""

    def get_value(self, name: str) -> str | None:
        """Return a named value that is kept beside the documents."""

    def list_values(self, prefix: str) -> dict[str, str]:
        """Return the values whose names start with a prefix, by the rest of the name."""

    def set_value(self, name: str, value: str) -> None:
        """Keep a named value."""

    def delete_value(self, name: str) -> None:
        """Delete a named value; ignore an unknown one."""

    def seal(self) -> None:
        """Make the store self-contained, so that it can be copied and opened on read-only media."""

    def close(self) -> None:
        """Close all files."""


class StoreFactory(Protocol):
    """What a store registers under its name: usually its class."""

    def open(self, address: str, *, read_only: bool = False, durable: bool = False) -> Store:
        """Open the store at an address that begins with the registered name and a colon."""
