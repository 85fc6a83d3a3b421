"""A SQLite file as the source or the target of a move."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from bedstone.errors import InvalidInput
from bedstone.permissions import make_private_folder
from bedstone.store.engine import StoreVersionMismatch
from bedstone.store.locks import FileLock
from bedstone.store.moving.ends import TABLES, Counters, Key, MoveState, Row, Table
from bedstone.store.moving.reading import OWNER, Dialect, RowReader, busy_error
from bedstone.store.opening import UNFINISHED_MOVE
from bedstone.store.sqlite_errors import roll_back, translate_errors
from bedstone.store.sqlite_opening import BUSY_SECONDS, open_writer
from bedstone.store.sqlite_schema import SCHEMA_VERSION, check_readable_version, read_version

DIALECT = Dialect("?", "IN (SELECT value FROM json_each({}))", {"number": "rowid"})
SEQUENCES = ("change", "chunk", "passage")


class _SqliteEnd(RowReader):
    """Reads the rows of a file."""

    dialect = DIALECT

    def __init__(self, path: Path) -> None:
        self._path = path
        self.place = str(path)
        self._lock = FileLock(path.parent / f".{OWNER}")
        if not self._lock.acquire():
            raise busy_error(self.place)
        self._db: sqlite3.Connection

    def counters(self) -> Counters:
        known: dict[str, int] = dict(self._fetch("SELECT name, seq FROM sqlite_sequence"))
        return Counters(*(int(known.get(name, 0)) for name in SEQUENCES))

    def _fetch(self, query: str, *values: object) -> list[Row]:
        with translate_errors(self._path):
            return self._db.execute(query, values).fetchall()

    @staticmethod
    def _key_list(keys: Sequence[Key]) -> object:
        return json.dumps(keys)


class SqliteSource(_SqliteEnd):
    """A file that is only read; others cannot write to it meanwhile."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise InvalidInput(f"{path} does not exist, so there is nothing to move.")
        super().__init__(path)
        address = f"file:{quote(str(path))}"
        self._guard = sqlite3.connect(f"{address}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        self._db = sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            with translate_errors(path):
                self._check_version()
                self._guard.execute("BEGIN IMMEDIATE")  # writes nothing, and keeps other processes from writing
                self._db.execute("BEGIN")
            self.check_complete()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        with suppress(sqlite3.Error):
            roll_back(self._guard)
        connections = [self._guard, self._db]
        wal = self._path.with_name(f"{self._path.name}-wal")
        if not (wal.exists() and wal.stat().st_size):
            connections.reverse()  # the last one that may write removes the files that reading has made
        for connection in connections:
            connection.close()  # the last one that only reads leaves the file as it is
        self._lock.release()

    def _check_version(self) -> None:
        found = read_version(self._db)
        check_readable_version(found, self._path)
        if found != SCHEMA_VERSION:
            raise StoreVersionMismatch(
                f"The store {self._path} has version {found}. Upgrade it first: `bedstone knowledge status` opens it "
                f"and brings it to version {SCHEMA_VERSION}."
            )


class SqliteTarget(_SqliteEnd):
    """A file that a move fills."""

    def __init__(self, path: Path) -> None:
        make_private_folder(path.parent)
        super().__init__(path)
        try:
            self._db = open_writer(path, durable=True)
        except BaseException:
            self._lock.release()
            raise

    def save_state(self, state: MoveState) -> None:
        with self._transaction():
            self._put_state(state)

    def write(self, table: Table, rows: Sequence[Row], state: MoveState) -> None:
        with self._transaction():
            try:
                self._db.executemany(DIALECT.insert(table), rows)
            except UnicodeEncodeError as error:
                raise InvalidInput(
                    f"One of the {table.label} after {state.after!r} has a character that SQLite cannot hold: {error}."
                ) from error
            self._put_state(state)

    def set_counters(self, counters: Counters) -> None:
        with self._transaction():
            self._db.executemany("DELETE FROM sqlite_sequence WHERE name = ?", [(name,) for name in SEQUENCES])
            rows = [(name, getattr(counters, name)) for name in SEQUENCES]
            self._db.executemany("INSERT INTO sqlite_sequence(name, seq) VALUES (?, ?)", rows)

    def clear(self, state: MoveState) -> None:
        with self._transaction():
            for table in reversed(TABLES):
                self._db.execute(f"DELETE FROM {table.name}")
            self._put_state(state)

    def finish(self) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM setting WHERE name = ?", (UNFINISHED_MOVE,))

    def close(self) -> None:
        self._db.close()
        self._lock.release()

    def _put_state(self, state: MoveState) -> None:
        self._db.execute("INSERT OR REPLACE INTO setting(name, value) VALUES (?, ?)", (UNFINISHED_MOVE, state.encode()))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with translate_errors(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                roll_back(self._db)
                raise
