"""A PostgreSQL schema as the source or the target of a move."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from psycopg import Connection, Cursor, errors, sql

from bedstone.store.codec import decode_document, decode_task
from bedstone.store.moving.ends import (
    CANCEL_REQUESTS,
    CHANGES,
    CHUNK,
    DOCUMENTS,
    FACETS,
    PASSAGES,
    TABLES,
    TASKS,
    VALUES,
    Counters,
    Key,
    MoveState,
    Row,
    Table,
)
from bedstone.store.moving.reading import OWNER, Dialect, RowReader, busy_error
from bedstone.store.notes import SERVERS
from bedstone.store.opening import UNFINISHED_MOVE
from bedstone.store.postgres.address import Address
from bedstone.store.postgres.conditions import derive_columns
from bedstone.store.postgres.connections import Database
from bedstone.store.postgres.errors import translate_errors
from bedstone.store.postgres.locks import LockSession, PostgresLock
from bedstone.store.postgres.schema import MIGRATIONS, NAMES, migrate, read_version
from bedstone.store.postgres.writing import (
    CHUNK_TYPES,
    COPY_CHUNKS,
    COPY_PASSAGES,
    DOCUMENT_COLUMNS,
    PASSAGE_TYPES,
    text_key,
)
from bedstone.store.versions import check_version

DIALECT = Dialect("%s", "= ANY({})")
THERE = "SELECT 1 FROM note WHERE starts_with(name, %s::text) AND ends > now() LIMIT 1"
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ"
INSERTS = {
    DOCUMENTS.name: f"INSERT INTO document({DOCUMENT_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)",
    FACETS.name: "INSERT INTO facets(id, pairs, key) VALUES (%s, %s, %s)",
    TASKS.name: f"INSERT INTO task({', '.join(TASKS.columns)}, dismissed) VALUES ({', '.join(['%s'] * 9)})",
    VALUES.name: "INSERT INTO setting(name, value, key) VALUES (%s, %s, %s)",
    CHANGES.name: DIALECT.insert(CHANGES),
    CANCEL_REQUESTS.name: DIALECT.insert(CANCEL_REQUESTS),
}
# What this engine keeps beside a row, so that it finds it.
DERIVED: Mapping[str, Callable[[Row], Sequence[Any]]] = MappingProxyType(
    {
        DOCUMENTS.name: lambda row: derive_columns(decode_document((row[0], row[1], row[2], row[3])).attributes),
        FACETS.name: lambda row: [text_key(row[1])],
        TASKS.name: lambda row: [decode_task(row).is_dismissed],
        VALUES.name: lambda row: [text_key(row[0])],
    }
)
COPIES = {CHUNK.name: (COPY_CHUNKS, CHUNK_TYPES), PASSAGES.name: (COPY_PASSAGES, PASSAGE_TYPES)}
PUT_STATE = (
    "INSERT INTO setting(name, value, key) VALUES (%s, %s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


class _PostgresEnd(RowReader):
    """Reads the rows of a schema, on one connection."""

    dialect = DIALECT

    def __init__(self, address: str) -> None:
        self._address = Address.parse(address)
        self.place = self._address.place
        self._database = Database(self._address, durable=True)
        self._session = LockSession(self._database.connect, self._address.schema)
        self._db: Connection[Any] = self._database.connect()
        try:
            with translate_errors(self.place):
                self._db.execute("SET idle_in_transaction_session_timeout = 0")  # the other end may take its time
                self._open()
        except BaseException:
            self.close()
            raise

    def counters(self) -> Counters:
        return Counters(*self._fetch("SELECT seq, chunk, passage FROM feed")[0])

    def close(self) -> None:
        self._db.close()
        self._session.close()

    def _open(self) -> None:
        raise NotImplementedError

    def _take_lock(self) -> None:
        self._lock = PostgresLock(self._session, OWNER)
        if not self._lock.acquire():
            raise busy_error(self.place)

    def _fetch(self, query: str, *values: Any) -> list[Row]:
        with translate_errors(self.place):
            return self._db.execute(query.encode(), values or None).fetchall()

    @staticmethod
    def _key_list(keys: Sequence[Key]) -> object:
        return list(keys)


class PostgresSource(_PostgresEnd):
    """A schema that is only read; others cannot write to it meanwhile."""

    def _open(self) -> None:
        found = read_version(self._db, self._address.schema)
        check_version(found, len(MIGRATIONS), self.place)
        self._take_lock()
        if self._fetch(THERE, SERVERS):  # each of them has a lock of its own
            raise busy_error(self.place)
        self._db.execute(SNAPSHOT)
        tables = sql.SQL(", ").join(map(sql.Identifier, NAMES))
        try:
            self._db.execute(sql.SQL("LOCK TABLE {} IN SHARE MODE").format(tables))
        except errors.LockNotAvailable as error:
            raise busy_error(self.place) from error
        self.check_complete()


class PostgresTarget(_PostgresEnd):
    """A schema that a move fills."""

    def _open(self) -> None:
        migrate(self._db, self._address, read_only=False)
        self._take_lock()

    def save_state(self, state: MoveState) -> None:
        self._write(lambda cursor: _put_state(cursor, state))

    def write(self, table: Table, rows: Sequence[Row], state: MoveState) -> None:
        def add(cursor: Cursor[Any]) -> None:
            if table.name in COPIES:
                query, types = COPIES[table.name]
                with cursor.copy(query) as copy:
                    copy.set_types(types)
                    for row in rows:
                        copy.write_row(row)
            else:
                cursor.executemany(INSERTS[table.name], [(*row, *_derive(table, row)) for row in rows])
            _put_state(cursor, state)

        self._write(add)

    def set_counters(self, counters: Counters) -> None:
        values = [counters.change, counters.chunk, counters.passage]
        self._write(lambda cursor: cursor.execute("UPDATE feed SET seq = %s, chunk = %s, passage = %s", values))

    def clear(self, state: MoveState) -> None:
        def empty(cursor: Cursor[Any]) -> None:
            names = sql.SQL(", ").join(sql.Identifier(table.name) for table in TABLES)
            cursor.execute(sql.SQL("TRUNCATE {}").format(names))
            _put_state(cursor, state)

        self._write(empty)

    def finish(self) -> None:
        def end(cursor: Cursor[Any]) -> None:
            cursor.execute("DELETE FROM setting WHERE key = %s", [text_key(UNFINISHED_MOVE)])
            cursor.execute("UPDATE activity SET version = version + 1")

        self._write(end)
        with translate_errors(self.place):
            for table in TABLES:  # otherwise the first queries are planned for empty tables
                self._db.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table.name)))

    def _write(self, work: Callable[[Cursor[Any]], object]) -> None:
        with translate_errors(self.place), self._db.transaction(), self._db.cursor() as cursor:
            work(cursor)


def _derive(table: Table, row: Row) -> Sequence[Any]:
    return DERIVED[table.name](row) if table.name in DERIVED else ()


def _put_state(cursor: Cursor[Any], state: MoveState) -> None:
    cursor.execute(PUT_STATE, [UNFINISHED_MOVE, state.encode(), text_key(UNFINISHED_MOVE)])
