"""The store in one SQLite file: transactional, crash-safe, no service."""

import json
import secrets
import sqlite3
import threading
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote
from weakref import WeakSet

from bedstone.errors import InvalidInput
from bedstone.records import Chunk, Document, Passage, StoredChunk
from bedstone.store.engine import (
    EMPTY_RANGE,
    Change,
    Counts,
    DocumentAndChunks,
    StoredPassage,
    TaskRecord,
    TaskStatus,
)

SCHEMA_VERSION = 2
SCHEMA = """
CREATE TABLE document(id TEXT PRIMARY KEY, title TEXT NOT NULL, digest TEXT NOT NULL, metadata TEXT NOT NULL);
CREATE TABLE chunk(
    rowid INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    document TEXT NOT NULL REFERENCES document(id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    level INTEGER NOT NULL,
    breadcrumb TEXT NOT NULL,
    heading TEXT NOT NULL,
    page INTEGER,
    facets INTEGER NOT NULL REFERENCES facets(id),
    text BLOB NOT NULL,
    plain BLOB NOT NULL
);
CREATE INDEX chunk_of_document ON chunk(document, position);
CREATE TABLE facets(id INTEGER PRIMARY KEY, pairs TEXT NOT NULL UNIQUE);
CREATE TABLE passage(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    chunk INTEGER NOT NULL REFERENCES chunk(rowid) ON DELETE CASCADE,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    vector BLOB NOT NULL
);
CREATE INDEX passage_of_chunk ON passage(chunk, start);
CREATE TABLE change(
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    stamp INTEGER NOT NULL,
    kind TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    gone_first INTEGER NOT NULL,
    gone_last INTEGER NOT NULL
);
CREATE TABLE task(
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    created REAL NOT NULL,
    details TEXT NOT NULL,
    started REAL,
    finished REAL,
    attempts INTEGER NOT NULL
);
CREATE INDEX task_by_status ON task(status, created);
CREATE TABLE setting(name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
PRAGMAS = """
PRAGMA synchronous = NORMAL;
PRAGMA foreign_keys = ON;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 268435456;
PRAGMA cache_size = -32000;
"""
BUSY_SECONDS = 10
SEAL_PAUSE_SECONDS = 0.02
HEAD_COLUMNS = "c.rowid, c.document, c.position, c.id, c.heading, c.level, c.breadcrumb, c.page, f.pairs"
CHUNK_COLUMNS = f"{HEAD_COLUMNS}, c.text, c.plain"
FROM_CHUNK = "FROM chunk c JOIN facets f ON f.id = c.facets"


class OutdatedStore(InvalidInput):
    """A store was written by another version."""

    code = "outdated_store"


class _Reader(sqlite3.Connection):
    """A connection that can be remembered without being kept."""


class SqliteStore:
    """One writing connection behind a lock, one reading connection per thread.

    A store opened for reading has one connection, opened at once: it goes on reading when its file is replaced. A
    durable one keeps what it was given also when the power fails.
    """

    def __init__(self, path: Path, *, read_only: bool = False, durable: bool = False) -> None:
        self._path = path
        self._durable = durable
        self._read_only = read_only
        self._local = threading.local()
        # Held by their threads: one that ends takes its connection with it.
        self._readers: WeakSet[_Reader] = WeakSet()
        self._written = 0
        self._lock = threading.Lock()
        self._writer = None if read_only else self._open_writer()
        self._only_reader = self._open_reader() if read_only else None

    def put(self, items: Iterable[DocumentAndChunks]) -> None:
        with self._transaction(documents=True) as db:
            for document, chunks in items:
                gone = self._remove(db, document.id)
                db.execute(
                    "INSERT INTO document VALUES (?, ?, ?, ?)",
                    (document.id, document.title, document.digest, json.dumps(dict(document.metadata))),
                )
                _record(db, "put", self._insert_chunks(db, document.id, chunks), gone)

    def delete(self, document_ids: Iterable[str]) -> None:
        with self._transaction(documents=True) as db:
            for document_id in document_ids:
                if db.execute("SELECT 1 FROM document WHERE id = ?", (document_id,)).fetchone():
                    _record(db, "delete", EMPTY_RANGE, self._remove(db, document_id))

    def put_passages(self, passages: Sequence[tuple[Passage, bytes]]) -> None:
        if not passages:
            return
        with self._transaction() as db:
            rows = [(item.chunk, item.start, item.end, vector, item.chunk) for item, vector in passages]
            db.executemany(
                'INSERT INTO passage(chunk, start, "end", vector) SELECT ?, ?, ?, ? '
                "WHERE EXISTS (SELECT 1 FROM chunk WHERE rowid = ?)",
                rows,
            )
            numbers = [item.chunk for item, _ in passages]
            _record(db, "vectors", (min(numbers), max(numbers)), EMPTY_RANGE)

    def delete_passages(self) -> None:
        with self._transaction() as db:
            if db.execute("DELETE FROM passage").rowcount:
                first, last = db.execute("SELECT min(rowid), max(rowid) FROM chunk").fetchone()
                _record(db, "vectors", (first, last), EMPTY_RANGE)

    def update_documents(self, documents: Iterable[Document]) -> None:
        rows = [(item.title, item.digest, json.dumps(dict(item.metadata)), item.id) for item in documents]
        if rows:
            with self._transaction(documents=True) as db:
                db.executemany("UPDATE document SET title = ?, digest = ?, metadata = ? WHERE id = ?", rows)

    def version(self) -> tuple[int, int]:
        with self._lock:
            if self._writer is None:
                return 0, 0
            return self._written, int(self._writer.execute("PRAGMA data_version").fetchone()[0])

    def with_digest(self, digest: str) -> Document | None:
        rows = self._read("SELECT id, title, digest, metadata FROM document WHERE digest = ? LIMIT 1", digest)
        return _document(rows[0]) if rows else None

    def digests(self) -> dict[str, str]:
        return dict(self._read("SELECT id, digest FROM document"))

    def titles(self) -> dict[str, str]:
        return dict(self._read("SELECT id, title FROM document ORDER BY id"))

    def document(self, document_id: str) -> Document | None:
        rows = self._read("SELECT id, title, digest, metadata FROM document WHERE id = ?", document_id)
        return _document(rows[0]) if rows else None

    def documents(self, *, offset: int = 0, limit: int = 1000) -> list[Document]:
        query = "SELECT id, title, digest, metadata FROM document ORDER BY id LIMIT ? OFFSET ?"
        return [_document(row) for row in self._read(query, limit, offset)]

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        rows = self._read(f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} WHERE c.id = ?", chunk_id)
        return _chunk(rows[0]) if rows else None

    def chunks(self, rowids: Sequence[int]) -> dict[int, StoredChunk]:
        query = f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} WHERE c.rowid IN (SELECT value FROM json_each(?))"
        return {row[0]: _chunk(row) for row in self._read(query, _numbers(rowids))}

    def heads(self, rowids: Sequence[int]) -> dict[int, StoredChunk]:
        query = f"SELECT {HEAD_COLUMNS} {FROM_CHUNK} WHERE c.rowid IN (SELECT value FROM json_each(?))"
        return {row[0]: _head(row) for row in self._read(query, _numbers(rowids))}

    def plains(self, rowids: Sequence[int]) -> dict[int, str]:
        query = "SELECT rowid, plain FROM chunk WHERE rowid IN (SELECT value FROM json_each(?))"
        return {rowid: _text(plain) for rowid, plain in self._read(query, _numbers(rowids))}

    def chunks_of(self, document_id: str) -> list[StoredChunk]:
        query = f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} WHERE c.document = ? ORDER BY c.position"
        return [_chunk(row) for row in self._read(query, document_id)]

    def chunk_counts(self, document_id: str | None = None) -> dict[str, int]:
        condition, values = ("WHERE document = ?", [document_id]) if document_id is not None else ("", [])
        return dict(self._read(f"SELECT document, count(*) FROM chunk {condition} GROUP BY document", *values))

    def first_chunks(self) -> list[int]:
        query = "SELECT min(rowid) FROM chunk INDEXED BY chunk_of_document GROUP BY document"
        return sorted(rowid for (rowid,) in self._read(query))

    def chunks_between(self, first: int, last: int) -> Iterator[StoredChunk]:
        query = f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} WHERE c.rowid BETWEEN ? AND ? ORDER BY c.rowid"
        yield from (_chunk(row) for row in self._reader().execute(query, (first, last)))

    def unembedded(self, *, after: int = 0, limit: int = 1000) -> list[StoredChunk]:
        query = (
            f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} WHERE c.rowid > ? "
            "AND NOT EXISTS (SELECT 1 FROM passage p WHERE p.chunk = c.rowid) ORDER BY c.rowid LIMIT ?"
        )
        return [_chunk(row) for row in self._read(query, after, limit)]

    def passages_between(self, first: int, last: int) -> Iterator[StoredPassage]:
        query = (
            'SELECT p.id, p.chunk, p.start, p."end", f.pairs FROM passage p JOIN chunk c ON c.rowid = p.chunk '
            "JOIN facets f ON f.id = c.facets WHERE p.chunk BETWEEN ? AND ? ORDER BY p.chunk, p.start"
        )
        for number, chunk, start, end, pairs in self._reader().execute(query, (first, last)):
            yield StoredPassage(number, Passage(chunk, start, end), _pairs(pairs))

    def vectors(self, passage_ids: Sequence[int]) -> dict[int, bytes]:
        query = "SELECT id, vector FROM passage WHERE id IN (SELECT value FROM json_each(?))"
        return dict(self._read(query, _numbers(passage_ids)))

    def facets(self) -> Mapping[str, Sequence[str]]:
        values: dict[str, set[str]] = {}
        for (pairs,) in self._read("SELECT pairs FROM facets WHERE id IN (SELECT DISTINCT facets FROM chunk)"):
            for key, value in json.loads(pairs).items():
                values.setdefault(key, set()).add(value)
        return {key: sorted(found) for key, found in sorted(values.items())}

    def counts(self) -> Counts:
        tables = ("document", "chunk", "passage")
        return Counts(*(self._read(f"SELECT count(*) FROM {table}")[0][0] for table in tables))

    def changes(self, after: int, limit: int = 1000) -> list[Change]:
        return [
            Change(*row) for row in self._read("SELECT * FROM change WHERE seq > ? ORDER BY seq LIMIT ?", after, limit)
        ]

    def last_change(self) -> Change | None:
        rows = self._read("SELECT * FROM change ORDER BY seq DESC LIMIT 1")
        return Change(*rows[0]) if rows else None

    def put_task(self, task: TaskRecord) -> None:
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO task VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _task_row(task))

    def change_task(self, task: TaskRecord, was: TaskStatus) -> bool:
        with self._transaction() as db:
            changed = db.execute(
                "REPLACE INTO task SELECT ?, ?, ?, ?, ?, ?, ?, ? FROM task WHERE id = ? AND status = ?",
                (*_task_row(task), task.id, was),
            )
            return changed.rowcount > 0

    def task(self, task_id: str) -> TaskRecord | None:
        rows = self._read("SELECT * FROM task WHERE id = ?", task_id)
        return _task(rows[0]) if rows else None

    def queued_before(self, task: TaskRecord) -> int:
        query = "SELECT count(*) FROM task WHERE status = 'queued' AND (created, id) < (?, ?)"
        return int(self._read(query, task.created, task.id)[0][0])

    def tasks(self, statuses: Collection[TaskStatus], *, limit: int = 1000) -> list[TaskRecord]:
        query = "SELECT * FROM task WHERE status IN (SELECT value FROM json_each(?)) ORDER BY created, id LIMIT ?"
        return [_task(row) for row in self._read(query, json.dumps(list(statuses)), limit)]

    def prune_tasks(self, before: float, keep: int) -> None:
        with self._transaction() as db:
            db.execute(
                "DELETE FROM task WHERE finished < ? AND id NOT IN "
                "(SELECT id FROM task WHERE finished IS NOT NULL ORDER BY finished DESC LIMIT ?)",
                (before, keep),
            )

    def setting(self, name: str) -> str | None:
        rows = self._read("SELECT value FROM setting WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

    def settings(self, prefix: str) -> dict[str, str]:
        query = "SELECT substr(name, ?), value FROM setting WHERE substr(name, 1, ?) = ? ORDER BY name"
        return dict(self._read(query, len(prefix) + 1, len(prefix), prefix))

    def probe(self) -> None:
        assert self._writer is not None, "the store was opened for reading"
        with self._lock:
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.execute("ROLLBACK")

    def set_setting(self, name: str, value: str) -> None:
        with self._transaction() as db:
            db.execute(
                "INSERT INTO setting VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
                (name, value),
            )

    def delete_setting(self, name: str) -> None:
        with self._transaction() as db:
            db.execute("DELETE FROM setting WHERE name = ?", (name,))

    def seal(self) -> None:
        """Make one self-contained file of it, which may then be opened on a medium nobody can write to."""
        with self._lock:
            assert self._writer is not None, "the store was opened for reading"
            for reader in list(self._readers):
                reader.close()
            self._readers.clear()
            self._local = threading.local()
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._leave_wal(self._writer)

    @staticmethod
    def _leave_wal(writer: sqlite3.Connection) -> None:
        """Wait for whoever is just looking: here SQLite does not do that itself."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                writer.execute("PRAGMA journal_mode = DELETE")
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(SEAL_PAUSE_SECONDS)
            else:
                return

    def close(self) -> None:
        with self._lock:
            for connection in (*list(self._readers), self._writer):
                if connection is not None:
                    connection.close()
            self._readers.clear()
            self._writer = None

    def _open_writer(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(PRAGMAS)
        if self._durable:
            connection.execute("PRAGMA synchronous = FULL")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self._create(connection)
        elif version != SCHEMA_VERSION:
            connection.close()
            raise OutdatedStore(f"{self._path} is of another version of Bedstone.")
        connection.execute("CREATE INDEX IF NOT EXISTS document_by_digest ON document(digest)")
        return connection

    @staticmethod
    def _create(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:  # else another process was faster
            for statement in SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")

    def _reader(self) -> sqlite3.Connection:
        if self._only_reader is not None:
            return self._only_reader
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._open_reader()
        return connection

    def _open_reader(self) -> _Reader:
        mode = "?mode=ro&immutable=1" if self._read_only else ""
        address = f"file:{quote(str(self._path))}{mode}"
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=_Reader
        )
        connection.executescript(PRAGMAS)
        if self._read_only and connection.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
            connection.close()
            raise OutdatedStore(f"{self._path} is of another version of Bedstone: build it again.")
        with self._lock:
            self._readers.add(connection)
        return connection

    def _read(self, query: str, *values: Any) -> list[Any]:
        return self._reader().execute(query, values).fetchall()

    @contextmanager
    def _transaction(self, *, documents: bool = False) -> Iterator[sqlite3.Connection]:
        assert self._writer is not None, "the store was opened for reading"
        with self._lock:
            # A deferred transaction that reads first fails at once when somebody else commits in between.
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise
            self._writer.execute("COMMIT")
            self._written += documents

    @staticmethod
    def _remove(db: sqlite3.Connection, document_id: str) -> tuple[int, int]:
        """Delete a document; the range of chunk numbers that are gone with it."""
        first, last = db.execute(
            "SELECT min(rowid), max(rowid) FROM chunk WHERE document = ?", (document_id,)
        ).fetchone()
        db.execute("DELETE FROM document WHERE id = ?", (document_id,))
        return (first, last) if first is not None else EMPTY_RANGE

    @staticmethod
    def _insert_chunks(db: sqlite3.Connection, document_id: str, chunks: Sequence[Chunk]) -> tuple[int, int]:
        """Add chunks; their range of numbers, which has no gaps because nobody else writes meanwhile."""
        last = 0
        for position, chunk in enumerate(chunks):
            cursor = db.execute(
                "INSERT INTO chunk(id, document, position, level, breadcrumb, heading, page, facets, text, plain) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    chunk.id,
                    document_id,
                    position,
                    chunk.level,
                    json.dumps(chunk.breadcrumb, ensure_ascii=False),
                    chunk.heading,
                    chunk.page,
                    _facets_id(db, chunk.facets),
                    zlib.compress(chunk.text.encode(), 1),
                    zlib.compress(chunk.plain.encode(), 1),
                ),
            )
            last = int(cursor.lastrowid or 0)
        return (last - len(chunks) + 1, last) if chunks else EMPTY_RANGE


def _facets_id(db: sqlite3.Connection, facets: Mapping[str, str]) -> int:
    pairs = json.dumps(dict(facets), sort_keys=True, ensure_ascii=False)
    found = db.execute("SELECT id FROM facets WHERE pairs = ?", (pairs,)).fetchone()
    return int(found[0] if found else db.execute("INSERT INTO facets(pairs) VALUES (?)", (pairs,)).lastrowid or 0)


def _record(db: sqlite3.Connection, kind: str, came: tuple[int, int], gone: tuple[int, int]) -> None:
    db.execute(
        "INSERT INTO change(stamp, kind, first, last, gone_first, gone_last) VALUES (?, ?, ?, ?, ?, ?)",
        (secrets.randbits(62), kind, *came, *gone),
    )


def _task_row(task: TaskRecord) -> tuple[Any, ...]:
    details = json.dumps(dict(task.details), ensure_ascii=False)
    return (task.id, task.kind, task.status, task.created, details, task.started, task.finished, task.attempts)


def _task(row: Any) -> TaskRecord:
    identity, kind, status, created, details, started, finished, attempts = row
    return TaskRecord(identity, kind, status, created, json.loads(details), started, finished, attempts)


def _document(row: tuple[str, str, str, str]) -> Document:
    identity, title, digest, metadata = row
    return Document(identity, title, digest, json.loads(metadata))


def _chunk(row: Any) -> StoredChunk:
    *head, text, plain = row
    return _head(head, _text(text), _text(plain))


def _head(row: Any, text: str = "", plain: str = "") -> StoredChunk:
    rowid, document, position, identity, heading, level, breadcrumb, page, pairs = row
    chunk = Chunk(identity, text, plain, heading, level, _breadcrumb(breadcrumb), _pairs(pairs), page)
    return StoredChunk(rowid, document, position, chunk)


def _text(packed: bytes) -> str:
    return zlib.decompress(packed).decode()


def _numbers(rowids: Sequence[int]) -> str:
    """Numbers for `json_each`; numpy's are no JSON."""
    return json.dumps([int(rowid) for rowid in rowids])


@lru_cache(maxsize=4096)
def _pairs(text: str) -> Mapping[str, str]:
    pairs: Mapping[str, str] = json.loads(text)
    return pairs


@lru_cache(maxsize=4096)
def _breadcrumb(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))
