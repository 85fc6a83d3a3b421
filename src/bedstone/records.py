"""The records that every part shares: documents, their chunks and passages, background tasks, changes of a store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

ABOUT = "about"  # attribute of a document: words that say what it is about, which are searched with its first chunk
CHUNK_SEPARATOR = "\n\n"  # between the chunks of a docs file that is read whole
ChangeKind = Literal["put", "delete", "vectors"]
TaskStatus = Literal["queued", "running", "completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Document:
    """A file, docs page or article. `digest` identifies its content; its service gives the attributes a type."""

    id: str
    title: str
    digest: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stretch of a chunk is in its document: the page, and the headings above it.

    It begins at `start` in the plain text and at `text_start` in the original, and ends where the next one begins.
    """

    start: int
    text_start: int
    page: int | None
    breadcrumb: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document with an id of its own.

    `text` is quoted, in its original form; `plain` is the same without markup, for search. `breadcrumb` holds the
    headings from the outermost to the chunk's own; `page` is where it begins, in documents that have pages. A chunk
    with text of several pages or sections has `places`, of which the first is its beginning. `span` is its range in the
    text of the document, if that is known.
    """

    id: str
    text: str
    plain: str
    heading: str = ""
    level: int = 0
    breadcrumb: tuple[str, ...] = ()
    facets: Mapping[str, str] = field(default_factory=dict)
    page: int | None = None
    places: tuple[Place, ...] = ()
    span: tuple[int, int] | None = None


DocumentAndChunks = tuple[Document, Sequence[Chunk]]


@dataclass(frozen=True, slots=True)
class ChunkHead:
    """A stored chunk without its texts: its number, its position in the document, and what it is filtered by."""

    rowid: int
    document_id: str
    position: int
    id: str
    heading: str
    level: int
    breadcrumb: tuple[str, ...]
    facets: Mapping[str, str]
    page: int | None
    places: tuple[Place, ...] = ()
    span: tuple[int, int] | None = None

    @property
    def all_places(self) -> tuple[Place, ...]:
        """Return the places of the chunk: at least the one where it begins."""
        return self.places or (Place(0, 0, self.page, self.breadcrumb),)

    @property
    def last_page(self) -> int | None:
        """Return the page on which the chunk ends."""
        return self.all_places[-1].page


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A stored chunk with its texts."""

    head: ChunkHead
    text: str
    plain: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a chunk's plain text, short enough for the embedding model."""

    chunk_rowid: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage, and the facets of the chunk it belongs to."""

    id: int
    passage: Passage
    facets: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a store: chunks `first` to `last` appeared, `gone_first` to `gone_last` disappeared.

    `vectors` means that the passages of chunks `first` to `last` arrived. Ranges are empty when they begin above their
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
class Counts:
    """How many documents, chunks and passages a store has."""

    documents: int
    chunks: int
    passages: int


@dataclass(frozen=True, slots=True)
class ProgressSnapshot:
    """How far a task has come: the current step, and how many steps of all are done."""

    step: str = ""
    done: float = 0.0
    total: float = 1.0
    ends_at: float | None = None  # when the task will probably end, in seconds since 1970

    @property
    def share(self) -> float:
        """Return the share that is done, from 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0


@dataclass(frozen=True, slots=True)
class TaskError:
    """Why a task failed: the name of the error's class in short, and a sentence for the user."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class TaskRetry:
    """Why a queued task waits: what the machine lacked, how often in a row, and when the task runs again."""

    reason: str
    count: int
    at: float


@dataclass(frozen=True, slots=True)
class Task:
    """Work that outlives its process. Times are seconds since 1970; the payload belongs to the task's handler.

    `attempts` counts those that ended with their process, and the current one.
    """

    id: str
    kind: str
    status: TaskStatus
    created_at: float
    payload: Mapping[str, Any] = field(default_factory=dict)
    started_at: float | None = None
    finished_at: float | None = None
    attempts: int = 0
    progress: ProgressSnapshot | None = None
    result: Mapping[str, Any] | None = None
    error: TaskError | None = None
    is_dismissed: bool = False
    retry: TaskRetry | None = None
