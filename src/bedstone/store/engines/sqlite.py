"""The store in one SQLite file: transactional, crash-safe, no service."""

import sqlite3
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote
from weakref import WeakSet

from bedstone.records import (
    Change,
    Chunk,
    ChunkHead,
    Counts,
    Document,
    DocumentAndChunks,
    Passage,
    StoredChunk,
    StoredPassage,
    Task,
)
from bedstone.store.codec import (
    CHANGE_COLUMNS,
    DOCUMENT_COLUMNS,
    decode_chunk,
    decode_document,
    decode_facets,
    decode_head,
    decode_text,
    encode_chunk,
    encode_document,
    encode_facets,
    encode_numbers,
)
from bedstone.store.engine import EMPTY_RANGE, StoreUnavailable
from bedstone.store.filters import Condition, Order
from bedstone.store.locks import FileLock
from bedstone.store.notes import Notes
from bedstone.store.sql import (
    PRAGMAS,
    add_functions,
    attribute,
    order_clause,
    readable_json,
    record_change,
    where_clause,
)
from bedstone.store.sqlite_checks import OnProgress, check_completely, check_quickly
from bedstone.store.sqlite_errors import damage_error, roll_back, translate_errors, write_and_undo
from bedstone.store.sqlite_opening import BUSY_SECONDS, open_writer
from bedstone.store.sqlite_reader import Reader
from bedstone.store.sqlite_schema import check_readable_version, read_version
from bedstone.store.sqlite_tasks import SqliteTasks, put_task

SEAL_PAUSE_SECONDS = 0.02
POLL_SECONDS = 0.05  # reading the version takes a few microseconds
UPDATE_DOCUMENT = "UPDATE document SET title = ?, digest = ?, metadata = ? WHERE id = ?"
HEAD_COLUMNS = "c.rowid, c.document, c.position, c.id, c.heading, c.level, c.breadcrumb, f.pairs, c.page"
CHUNK_COLUMNS = f"{HEAD_COLUMNS}, c.text, c.plain"
FROM_CHUNK = "FROM chunk c JOIN facets f ON f.id = c.facets"


class SqliteStore(SqliteTasks):
    """One writing connection behind a lock, one reading connection per thread.

    A store opened for reading has one connection, opened at once: it continues to read when its file is replaced. A
    durable store survives a power failure.
    """

    notes: Notes | None = None  # its processes are on one machine, and their locks and files are enough

    @classmethod
    def open(cls, address: str, *, read_only: bool = False, durable: bool = False) -> Self:
        """Open the file of an address such as `sqlite:/data/knowledge.sqlite`."""
        return cls(Path(address.partition(":")[2]), read_only=read_only, durable=durable)

    def __init__(self, path: Path, *, read_only: bool = False, durable: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._local = threading.local()
        # Held by their threads: one that ends takes its connection with it.
        self._readers: WeakSet[Reader] = WeakSet()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        with translate_errors(path):
            self._writer = None if read_only else open_writer(path, durable=durable)
            self._only_reader = self._open_reader() if read_only else None
        self._version_lock = threading.Lock()
        self._version_reader: Reader | None = None

    def put(self, items: Iterable[DocumentAndChunks]) -> None:
        with self._transaction() as db:
            for document, chunks in items:
                self._put(db, document, chunks)

    def put_with_task(self, item: DocumentAndChunks, task: Task) -> None:
        with self._transaction() as db:
            self._put(db, *item)
            put_task(db, task)

    def delete(self, document_ids: Iterable[str]) -> None:
        with self._transaction() as db:
            self._delete(db, document_ids)

    def put_passages(self, passages: Sequence[tuple[Passage, bytes]]) -> None:
        if not passages:
            return
        with self._transaction() as db:
            rows = [(item.chunk_rowid, item.start, item.end, vector, item.chunk_rowid) for item, vector in passages]
            db.executemany(
                'INSERT INTO passage(chunk, start, "end", vector) SELECT ?, ?, ?, ? '
                "WHERE EXISTS (SELECT 1 FROM chunk WHERE rowid = ?)",
                rows,
            )
            numbers = [item.chunk_rowid for item, _ in passages]
            record_change(db, "vectors", (min(numbers), max(numbers)), EMPTY_RANGE)

    def delete_passages(self) -> None:
        with self._transaction() as db:
            if db.execute("DELETE FROM passage").rowcount:
                first, last = db.execute("SELECT min(rowid), max(rowid) FROM chunk").fetchone()
                record_change(db, "vectors", (first, last), EMPTY_RANGE)

    def update_documents(self, documents: Iterable[Document]) -> None:
        rows = [(*encode_document(item)[1:], item.id) for item in documents]
        if rows:
            with self._transaction() as db:
                db.executemany(UPDATE_DOCUMENT, rows)

    def update_and_delete(self, documents: Iterable[Document], deleted: Iterable[str]) -> None:
        with self._transaction() as db:
            db.executemany(UPDATE_DOCUMENT, [(*encode_document(item)[1:], item.id) for item in documents])
            self._delete(db, deleted)

    def find_by_digest(self, digest: str) -> Document | None:
        rows = self._read(f"SELECT {DOCUMENT_COLUMNS} FROM document WHERE digest = ? LIMIT 1", digest)
        return decode_document(rows[0]) if rows else None

    def document(self, document_id: str) -> Document | None:
        rows = self._read(f"SELECT {DOCUMENT_COLUMNS} FROM document WHERE id = ?", document_id)
        return decode_document(rows[0]) if rows else None

    def documents_by_id(self, document_ids: Collection[str]) -> dict[str, Document]:
        query = f"SELECT {DOCUMENT_COLUMNS} FROM document WHERE id IN ({', '.join('?' * len(document_ids))})"
        return {row[0]: decode_document(row) for row in self._read(query, *document_ids)}

    def documents(
        self,
        conditions: Sequence[Condition] = (),
        *,
        order: Order | None = None,
        offset: int = 0,
        limit: int = 1000,
    ) -> list[Document]:
        where, values = where_clause(conditions, in_order=order is not None)
        page = f"FROM document {where} {order_clause(order)} LIMIT ? OFFSET ?"
        query = f"SELECT {DOCUMENT_COLUMNS} {page}"
        if offset:  # what is skipped is sorted without its contents: 18 instead of 28 ms in the middle of 10,000
            query = f"SELECT {DOCUMENT_COLUMNS} FROM document WHERE id IN (SELECT id {page}) {order_clause(order)}"
        return [decode_document(row) for row in self._read(query, *values, limit, offset)]

    def document_ids(self, conditions: Sequence[Condition]) -> list[str]:
        where, values = where_clause(conditions)
        return [identity for (identity,) in self._read(f"SELECT id FROM document {where}", *values)]

    def count_documents(self, conditions: Sequence[Condition] = ()) -> int:
        where, values = where_clause(conditions)
        return int(self._read(f"SELECT count(*) FROM document {where}", *values)[0][0])

    def count_attributes(self, names: Sequence[str]) -> dict[tuple[str, ...], int]:
        columns = ", ".join(map(attribute, names))
        rows = self._read(f"SELECT {columns}, count(*) FROM document GROUP BY {columns}")
        return {tuple(value or "" for value in values): count for *values, count in rows}

    def member_names(self, name: str) -> list[str]:
        texts = f"SELECT DISTINCT {attribute(name)} AS text FROM document"
        query = f"SELECT DISTINCT item.key FROM ({texts}), json_each({readable_json('text')}) AS item"
        return sorted(key for (key,) in self._read(query) if isinstance(key, str))

    def sum_attribute(self, name: str) -> int:
        query = f"SELECT coalesce(sum(CAST({attribute(name)} AS INTEGER)), 0) FROM document"
        return int(self._read(query)[0][0])

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        rows = self._read(f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} WHERE c.id = ?", chunk_id)
        return decode_chunk(rows[0]) if rows else None

    def chunks(self, rowids: Sequence[int]) -> dict[int, StoredChunk]:
        query = f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} WHERE c.rowid IN (SELECT value FROM json_each(?))"
        return {row[0]: decode_chunk(row) for row in self._read(query, encode_numbers(rowids))}

    def chunk_heads(self, rowids: Sequence[int]) -> dict[int, ChunkHead]:
        query = f"SELECT {HEAD_COLUMNS} {FROM_CHUNK} WHERE c.rowid IN (SELECT value FROM json_each(?))"
        return {row[0]: decode_head(row) for row in self._read(query, encode_numbers(rowids))}

    def plain_texts(self, rowids: Sequence[int]) -> dict[int, str]:
        query = "SELECT rowid, plain FROM chunk WHERE rowid IN (SELECT value FROM json_each(?))"
        return {rowid: decode_text(plain) for rowid, plain in self._read(query, encode_numbers(rowids))}

    def chunks_of(self, document_id: str) -> list[StoredChunk]:
        query = f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} WHERE c.document = ? ORDER BY c.position"
        return [decode_chunk(row) for row in self._read(query, document_id)]

    def chunk_counts(self, document_id: str | None = None) -> dict[str, int]:
        condition, values = ("WHERE document = ?", [document_id]) if document_id is not None else ("", [])
        return dict(self._read(f"SELECT document, count(*) FROM chunk {condition} GROUP BY document", *values))

    def first_chunks(self) -> list[int]:
        query = "SELECT min(rowid) FROM chunk INDEXED BY chunk_of_document GROUP BY document"
        return sorted(rowid for (rowid,) in self._read(query))

    def chunks_between(self, first: int, last: int) -> Iterator[StoredChunk]:
        query = f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} WHERE c.rowid BETWEEN ? AND ? ORDER BY c.rowid"
        yield from (decode_chunk(row) for row in self._reader().stream(query, (first, last)))

    def chunks_without_vectors(
        self, *, document_id: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[StoredChunk]:
        owner, owners = ("AND c.document = ?", [document_id]) if document_id is not None else ("", [])
        query = (
            f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} WHERE c.rowid > ? {owner} "
            "AND NOT EXISTS (SELECT 1 FROM passage p WHERE p.chunk = c.rowid) ORDER BY c.rowid LIMIT ?"
        )
        return [decode_chunk(row) for row in self._read(query, after, *owners, limit)]

    def passages_between(self, first: int, last: int) -> Iterator[StoredPassage]:
        query = (
            'SELECT p.id, p.chunk, p.start, p."end", f.pairs FROM passage p JOIN chunk c ON c.rowid = p.chunk '
            "JOIN facets f ON f.id = c.facets WHERE p.chunk BETWEEN ? AND ? ORDER BY p.chunk, p.start"
        )
        for number, chunk, start, end, pairs in self._reader().stream(query, (first, last)):
            yield StoredPassage(number, Passage(chunk, start, end), decode_facets(pairs))

    def vectors(self, passage_ids: Sequence[int]) -> dict[int, bytes]:
        query = "SELECT id, vector FROM passage WHERE id IN (SELECT value FROM json_each(?))"
        return dict(self._read(query, encode_numbers(passage_ids)))

    def counts(self) -> Counts:
        tables = ("document", "chunk", "passage")
        return Counts(*(self._read(f"SELECT count(*) FROM {table}")[0][0] for table in tables))

    def changes(self, after: int, limit: int = 1000) -> list[Change]:
        return [
            Change(*row)
            for row in self._read(
                f"SELECT {CHANGE_COLUMNS} FROM change WHERE seq > ? ORDER BY seq LIMIT ?", after, limit
            )
        ]

    def version(self) -> int:
        if self._read_only:
            return 0
        with self._version_lock:
            # A connection that never writes: it counts the commits of every other one, in this process and elsewhere.
            if self._version_reader is None:
                self._version_reader = self._open_reader()
            return int(self._version_reader.fetch("PRAGMA data_version")[0][0])

    def wait_for_change(self, after: int, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        with suppress(sqlite3.ProgrammingError):  # closed meanwhile
            while self.version() == after:
                left = deadline - time.monotonic()
                if left <= 0 or self._closed.wait(min(POLL_SECONDS, left)):
                    return False
        return True

    def lock(self, name: str) -> FileLock:
        return FileLock(self._path.parent / f".{name}")

    def check_readable(self) -> None:
        try:
            check_readable_version(self._read("PRAGMA user_version")[0][0], self._path)
            self._read("SELECT * FROM document LIMIT 1")
            self._read("SELECT * FROM chunk LIMIT 1")
        except sqlite3.Error as error:
            raise StoreUnavailable(str(error)) from error

    def check_writable(self) -> None:
        assert self._writer is not None, "the store was opened for reading"
        try:
            with self._lock:
                write_and_undo(self._writer)
        except sqlite3.Error as error:
            raise StoreUnavailable(str(error)) from error

    def check_integrity(self, on_progress: OnProgress = lambda done, total: None) -> list[str]:
        return check_completely(self._reader(), on_progress)

    def seal(self) -> None:
        """Make the store one self-contained file that can be opened on read-only media."""
        with self._lock:
            assert self._writer is not None, "the store was opened for reading"
            for reader in list(self._readers):
                reader.close()
            self._readers.clear()
            self._local = threading.local()
            self._version_reader = None
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._leave_wal(self._writer)

    @staticmethod
    def _leave_wal(writer: sqlite3.Connection) -> None:
        """Wait for other readers: SQLite does not do that itself here."""
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
        self._closed.set()
        with self._lock:
            for connection in (*list(self._readers), self._writer):
                if connection is not None:
                    connection.close()
            self._readers.clear()
            self._writer = None

    def _reader(self) -> Reader:
        if self._only_reader is not None:
            return self._only_reader
        connection: Reader | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._open_reader()
        return connection

    def _open_reader(self) -> Reader:
        mode = "?mode=ro&immutable=1" if self._read_only else ""
        address = f"file:{quote(str(self._path))}{mode}"
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=Reader
        )
        connection.path = self._path
        try:
            with translate_errors(self._path):
                connection.executescript(PRAGMAS)
            add_functions(connection)
            if self._read_only:
                self._check_frozen(connection)
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if self._closed.is_set():  # meanwhile: a connection of its own would read on
                connection.close()
            self._readers.add(connection)
        return connection

    def _check_frozen(self, connection: Reader) -> None:
        """Check a store that is only read, once, when it is opened."""
        with translate_errors(self._path):
            version = read_version(connection)
            if version == 0:
                raise damage_error(self._path, "it is empty")
            check_readable_version(version, self._path)
            check_quickly(connection, self._path)

    def _read(self, query: str, *values: Any) -> list[Any]:
        return self._reader().fetch(query, values)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        assert self._writer is not None, "the store was opened for reading"
        with self._lock, translate_errors(self._path):
            # A deferred transaction that reads first fails at once when another connection commits in between.
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                roll_back(self._writer)
                raise

    def _put(self, db: sqlite3.Connection, document: Document, chunks: Sequence[Chunk]) -> None:
        gone = self._remove(db, document.id)
        db.execute(f"INSERT INTO document({DOCUMENT_COLUMNS}) VALUES (?, ?, ?, ?)", encode_document(document))
        record_change(db, "put", self._insert_chunks(db, document.id, chunks), gone)

    def _delete(self, db: sqlite3.Connection, document_ids: Iterable[str]) -> None:
        for document_id in document_ids:
            if db.execute("SELECT 1 FROM document WHERE id = ?", (document_id,)).fetchone():
                record_change(db, "delete", EMPTY_RANGE, self._remove(db, document_id))

    @staticmethod
    def _remove(db: sqlite3.Connection, document_id: str) -> tuple[int, int]:
        """Delete a document; return the range of its chunk numbers."""
        first, last = db.execute(
            "SELECT min(rowid), max(rowid) FROM chunk WHERE document = ?", (document_id,)
        ).fetchone()
        db.execute("DELETE FROM document WHERE id = ?", (document_id,))
        return (first, last) if first is not None else EMPTY_RANGE

    @staticmethod
    def _insert_chunks(db: sqlite3.Connection, document_id: str, chunks: Sequence[Chunk]) -> tuple[int, int]:
        """Add chunks; return their range of numbers, without gaps because the transaction excludes other writers."""
        last = 0
        for position, chunk in enumerate(chunks):
            cursor = db.execute(
                "INSERT INTO chunk(document, position, facets, id, level, breadcrumb, heading, page, text, plain) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (document_id, position, _facets_id(db, chunk.facets), *encode_chunk(chunk)),
            )
            last = int(cursor.lastrowid or 0)
        return (last - len(chunks) + 1, last) if chunks else EMPTY_RANGE


def _facets_id(db: sqlite3.Connection, facets: Mapping[str, str]) -> int:
    pairs = encode_facets(facets)
    found = db.execute("SELECT id FROM facets WHERE pairs = ?", (pairs,)).fetchone()
    return int(found[0] if found else db.execute("INSERT INTO facets(pairs) VALUES (?)", (pairs,)).lastrowid or 0)
