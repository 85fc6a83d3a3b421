"""What is moved, and what the two ends of a move do."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, Self

Row = tuple[Any, ...]  # the first column is the key
Key = str | int

SMALL = 200  # rows with texts of any length
CHUNKS = 500
LARGE = 1_000


@dataclass(frozen=True)
class Table:
    """Rows in the form that both ends read and write; `batch` of them fit into memory."""

    name: str
    label: str  # for people
    columns: tuple[str, ...]
    batch: int


# In the order in which rows refer to each other. A chunk is named by its number, which indexes know.
DOCUMENTS = Table("document", "documents", ("id", "title", "digest", "metadata"), SMALL)
FACETS = Table("facets", "facets", ("id", "pairs"), LARGE)
CHUNK = Table(
    "chunk",
    "chunks",
    ("number", "document", "position", "facets", "id", "level", "breadcrumb", "heading", "page", "text", "plain"),
    CHUNKS,
)
PASSAGES = Table("passage", "vectors", ("id", "chunk", "start", "end", "vector"), LARGE)
CHANGES = Table(
    "change", "changes", ("seq", "stamp", "kind", "first", "last", "gone_first", "gone_last"), LARGE
)  # indexes know the last one they applied, and need not be built again
TASKS = Table("task", "tasks", ("id", "kind", "status", "created", "details", "started", "finished", "attempts"), SMALL)
CANCEL_REQUESTS = Table("cancel_request", "requests to cancel", ("task",), LARGE)
VALUES = Table("setting", "values", ("name", "value"), SMALL)
TABLES = (DOCUMENTS, FACETS, CHUNK, PASSAGES, CHANGES, TASKS, CANCEL_REQUESTS, VALUES)


@dataclass(frozen=True)
class Counters:
    """The last numbers that were given out; none is used twice, even after its owner is deleted."""

    change: int
    chunk: int
    passage: int


@dataclass(frozen=True)
class MoveState:
    """How far a move is; kept in its target, in the transaction that writes what it counts as moved."""

    base: str  # what is moved
    content: str  # a digest of what it contained at the start
    to: str
    table: str = TABLES[0].name
    after: Key | None = None
    is_void: bool = False  # what is there was found to differ, so everything is moved again

    @classmethod
    def decode(cls, value: str) -> Self:
        """Return the state of a value."""
        return cls(**json.loads(value))

    def encode(self) -> str:
        """Return the value that keeps the state."""
        return json.dumps(asdict(self))

    def at(self, table: Table, after: Key | None) -> Self:
        """Return the state with another position."""
        return replace(self, table=table.name, after=after)


class Source(Protocol):
    """A store that other processes cannot write to until it is closed."""

    @property
    def place(self) -> str:
        """Return what messages name."""

    def value(self, name: str) -> str | None:
        """Return a named value."""

    def count(self, table: Table) -> int:
        """Return how many rows there are."""

    def rows_after(self, table: Table, after: Key | None, limit: int) -> list[Row]:
        """Return the rows with keys after one, or the first ones, in the order of the keys."""

    def rows_with(self, table: Table, keys: Sequence[Key]) -> Mapping[Key, Row]:
        """Return rows by key; others are missing."""

    def counters(self) -> Counters:
        """Return the last numbers that were given out."""

    def close(self) -> None:
        """Let others write again."""


class Target(Source, Protocol):
    """A store that is written by one move."""

    def state(self) -> MoveState | None:
        """Return how far the move is; None if none has begun."""

    def save_state(self, state: MoveState) -> None:
        """Note how far the move is."""

    def write(self, table: Table, rows: Sequence[Row], state: MoveState) -> None:
        """Add rows and note how far the move is, in one transaction."""

    def set_counters(self, counters: Counters) -> None:
        """Continue the numbers of the source."""

    def clear(self, state: MoveState) -> None:
        """Delete everything that was moved, and note how far the move is, in one transaction."""

    def finish(self) -> None:
        """Forget the move: the store is complete."""
