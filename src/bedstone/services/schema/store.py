"""Schemas on disk, one folder per org: the last complete schema, and the staged objects of an unfinished sync."""

import sqlite3
import threading
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bedstone.permissions import create_private_file, make_private_folder
from bedstone.salesforce.graph.describes import from_row
from bedstone.salesforce.graph.model import SchemaGraph

FILE = "schema.sqlite"
TABLES = """
CREATE TABLE IF NOT EXISTS objects(name TEXT PRIMARY KEY, row BLOB, since TEXT, error TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS staged(name TEXT PRIMARY KEY, row BLOB, since TEXT, error TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Staged:
    """An object of an unfinished sync: its new row or an error. Without both, the object did not change."""

    name: str
    row: bytes | None
    since: str
    error: str | None = None


class SchemaStore:
    """The schema of one org. Methods block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / FILE
        self._lock = threading.Lock()
        self._reader: tuple[int, sqlite3.Connection] | None = None  # with the inode of the file it reads

    @property
    def folder(self) -> Path:
        """Return the folder of the schema and of what is derived from it."""
        return self._folder

    def version(self) -> tuple[int, int] | None:
        """Return a value that changes when another connection writes; None without a file."""
        with self._lock:
            reader = self._open_reader()
            if reader is None:
                return None
            (version,) = reader[1].execute("PRAGMA data_version").fetchone()
            return reader[0], version

    def facts(self) -> dict[str, str]:
        """Return facts about the schema: time and source of the last sync, progress of the current one."""
        with self._lock:
            reader = self._open_reader()
            return dict(reader[1].execute("SELECT name, value FROM facts")) if reader is not None else {}

    def check_readable(self) -> None:
        """Read facts and an object, if there is a file; raise what SQLite raises if that fails."""
        with self._lock:
            reader = self._open_reader()
            if reader is not None:
                reader[1].execute("SELECT * FROM facts").fetchone()
                reader[1].execute("SELECT * FROM objects").fetchone()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._reader is not None:
                self._reader[1].close()
                self._reader = None

    def load(self) -> SchemaGraph:
        """Return the last complete schema, or an empty one before the first sync."""
        if not self._file.exists():
            return SchemaGraph()
        with closing(self._connect()) as database:
            rows = database.execute("SELECT name, row, error FROM objects").fetchall()
            (unsynced,) = database.execute("SELECT value FROM facts WHERE name = 'unsynced'").fetchone() or ("",)
        problems = {name: error or "not read" for name, row, error in rows if row is None or error}
        objects = (from_row(row) for _, row, _ in rows if row is not None)
        return SchemaGraph.of(objects, problems, unsynced.split())

    def object_times(self) -> dict[str, str]:
        """Return the time of the last describe of each object."""
        with closing(self._connect()) as database:
            return dict(database.execute("SELECT name, since FROM objects WHERE row IS NOT NULL AND since != ''"))

    def staged_names(self) -> set[str]:
        """Return the names of the objects that an interrupted sync has staged."""
        with closing(self._connect()) as database:
            return {name for (name,) in database.execute("SELECT name FROM staged")}

    def stage(self, items: Iterable[Staged], facts: Mapping[str, str]) -> None:
        """Stage objects until the sync completes."""
        with self._lock, closing(self._connect()) as database, database:
            rows = [(item.name, item.row, item.since, item.error) for item in items]
            database.executemany("INSERT OR REPLACE INTO staged VALUES (?, ?, ?, ?)", rows)
            database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())

    def restart(self, facts: Mapping[str, str]) -> None:
        """Discard the staged objects and start a new sync."""
        with self._lock, closing(self._connect()) as database, database:
            database.execute("DELETE FROM staged")
            database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())

    def complete(self, names: Iterable[str], facts: Mapping[str, str]) -> tuple[int, int]:
        """Apply the staged objects, delete those not in `names`, and return the numbers of changed and deleted ones.

        An object that could not be read keeps its row.
        """
        current = set(names)
        with self._lock, closing(self._connect()) as database, database:
            changed = 0
            for name, row, since, error in database.execute("SELECT name, row, since, error FROM staged").fetchall():
                before = database.execute("SELECT row, since FROM objects WHERE name = ?", (name,)).fetchone()
                new_row = row if row is not None else (before[0] if before else None)
                changed += new_row is not None and (before is None or before[0] != new_row)
                # After a failure, the next sync asks for changes since the last success.
                changed_since = since if error is None else (before[1] if before else "")
                values = (name, new_row, changed_since, error)
                database.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", values)
            removed = [name for (name,) in database.execute("SELECT name FROM objects") if name not in current]
            database.executemany("DELETE FROM objects WHERE name = ?", ((name,) for name in removed))
            database.execute("DELETE FROM staged")
            database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())
        return changed, len(removed)

    def update(self, items: Iterable[Staged], removed: Iterable[str], facts: Mapping[str, str]) -> None:
        """Replace some objects of the schema and delete others, without a sync."""
        with self._lock, closing(self._connect()) as database, database:
            rows = [(item.name, item.row, item.since, item.error) for item in items]
            database.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", rows)
            database.executemany("DELETE FROM objects WHERE name = ?", ((name,) for name in removed))
            database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())

    def _open_reader(self) -> tuple[int, sqlite3.Connection] | None:
        """Return the connection for reading; reopen it after the file was replaced."""
        try:
            inode = self._file.stat().st_ino
        except OSError:
            inode = None
        if self._reader is not None and self._reader[0] != inode:
            self._reader[1].close()
            self._reader = None
        if self._reader is None and inode is not None:
            self._reader = (inode, self._connect())
        return self._reader

    def _connect(self) -> sqlite3.Connection:
        make_private_folder(self._folder)
        create_private_file(self._file)
        database = sqlite3.connect(self._file, timeout=10, check_same_thread=False)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.executescript(TABLES)
        return database
