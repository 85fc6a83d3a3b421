"""StoreEngine: what every store does, and what its users may rely on."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from bedstone.records import Chunk, Document, Passage, StoredChunk

ChangeKind = Literal["put", "delete", "vectors"]
EMPTY_RANGE = (1, 0)
DocumentAndChunks = tuple[Document, Sequence[Chunk]]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that happened: chunks `first` to `last` appeared, `gone_first` to `gone_last` went.

    `vectors` says that the passages of chunks `first` to `last` arrived. Ranges are empty when they begin above their
    end. `stamp` is random: an index that knows a sequence number with another stamp followed another history.
    """

    seq: int
    stamp: int
    kind: ChangeKind
    first: int
    last: int
    gone_first: int
    gone_last: int


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage, and the facets of the chunk it belongs to."""

    id: int
    passage: Passage
    facets: Mapping[str, str]


TaskStatus = Literal["queued", "running", "completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """Work that outlives its process. Times are seconds since 1970; `details` are the work's own."""

    id: str
    kind: str
    status: TaskStatus
    created: float
    details: Mapping[str, Any] = field(default_factory=dict)
    started: float | None = None
    finished: float | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Counts:
    documents: int
    chunks: int
    passages: int


class StoreEngine(Protocol):
    """The truth. Every method that changes something is one transaction: all of it is there afterwards, or nothing.

    Chunks and passages are numbered; a number is never given twice, also not after its owner is gone. Methods block;
    they may be called from several threads.
    """

    def put(self, items: Iterable[DocumentAndChunks]) -> None:
        """Add documents, each in place of the one with its id; every document is one change."""

    def delete(self, document_ids: Iterable[str]) -> None:
        """Remove documents with everything that belongs to them; unknown ids do nothing."""

    def put_passages(self, passages: Sequence[tuple[Passage, bytes]]) -> None:
        """Add vectors to chunks; passages of chunks that are gone by now are dropped."""

    def delete_passages(self) -> None:
        """Remove every vector: another model is to make them. One change, over all chunks there are."""

    def update_documents(self, documents: Iterable[Document]) -> None:
        """Replace what is known of documents without touching their chunks; no change for any index."""

    def version(self) -> tuple[int, int]:
        """Another one whenever documents may have changed, whoever changed them."""

    def with_digest(self, digest: str) -> Document | None:
        """A document with this digest."""

    def digests(self) -> dict[str, str]:
        """The digest of every document by its id."""

    def titles(self) -> dict[str, str]:
        """The title of every document by its id, in the order of their ids."""

    def document(self, document_id: str) -> Document | None:
        """One document."""

    def documents(self, *, offset: int = 0, limit: int = 1000) -> list[Document]:
        """Documents in the order of their ids."""

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        """One chunk by its public id."""

    def chunks(self, rowids: Sequence[int]) -> dict[int, StoredChunk]:
        """Chunks by number; those that are gone are missing."""

    def heads(self, rowids: Sequence[int]) -> dict[int, StoredChunk]:
        """The same without texts: `text` and `plain` are empty."""

    def plains(self, rowids: Sequence[int]) -> dict[int, str]:
        """Their plain texts alone."""

    def chunks_of(self, document_id: str) -> list[StoredChunk]:
        """A document's chunks in order."""

    def chunk_counts(self, document_id: str | None = None) -> dict[str, int]:
        """How many chunks each document has, or one of them; documents without any are missing."""

    def first_chunks(self) -> list[int]:
        """The number of each document's first chunk, in order: the others follow it without a gap."""

    def chunks_between(self, first: int, last: int) -> Iterator[StoredChunk]:
        """The chunks with numbers in a range, in order."""

    def unembedded(self, *, after: int = 0, limit: int = 1000) -> list[StoredChunk]:
        """Chunks without passages, in the order of their numbers."""

    def passages_between(self, first: int, last: int) -> Iterator[StoredPassage]:
        """The passages of the chunks with numbers in a range, by chunk and start."""

    def vectors(self, passage_ids: Sequence[int]) -> dict[int, bytes]:
        """Vectors by passage, as little-endian float16; those that are gone are missing."""

    def facets(self) -> Mapping[str, Sequence[str]]:
        """Every facet with its values, sorted."""

    def counts(self) -> Counts:
        """How much there is."""

    def changes(self, after: int, limit: int = 1000) -> list[Change]:
        """What happened after a sequence number, in order."""

    def last_change(self) -> Change | None:
        """The newest change."""

    def put_task(self, task: TaskRecord) -> None:
        """Add a task, or replace the one with its id."""

    def change_task(self, task: TaskRecord, was: TaskStatus) -> bool:
        """Replace a task only if it is still in a state; of several that try, one succeeds."""

    def task(self, task_id: str) -> TaskRecord | None:
        """One task."""

    def queued_before(self, task: TaskRecord) -> int:
        """How many queued tasks come before one."""

    def tasks(self, statuses: Collection[TaskStatus], *, limit: int = 1000) -> list[TaskRecord]:
        """Tasks in these states, the oldest first."""

    def prune_tasks(self, before: float, keep: int) -> None:
        """Forget tasks that ended before a time, but never the last `keep` that ended."""

    def probe(self) -> None:
        """Raise if nothing can be written right now; nothing is."""

    def setting(self, name: str) -> str | None:
        """A value kept beside the documents."""

    def settings(self, prefix: str) -> dict[str, str]:
        """The values whose names begin so, by the rest of the name."""

    def set_setting(self, name: str, value: str) -> None:
        """Keep a value."""

    def delete_setting(self, name: str) -> None:
        """Forget a value; an unknown one does nothing."""

    def close(self) -> None:
        """Let go of files."""
