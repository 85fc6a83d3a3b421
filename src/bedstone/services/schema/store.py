"""Schemas kept on disk, one folder for each org: what is complete is served, what is being synced waits beside it."""

import sqlite3
import threading
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

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
    """An object of a sync that is not complete yet: its row, or why there is none; no row means it did not change."""

    name: str
    row: bytes | None
    since: str
    error: str | None = None


class SchemaStore:
    """One org's schema. Methods block."""

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
        """Return another value whenever another connection may have written; None without a file."""
        with self._lock:
            reader = self._open_reader()
            if reader is None:
                return None
            (version,) = reader[1].execute("PRAGMA data_version").fetchone()
            return reader[0], version

    def facts(self) -> dict[str, str]:
        """Return facts about the whole schema: when it was synced, from where, how far a sync has come."""
        with self._lock:
            reader = self._open_reader()
            return dict(reader[1].execute("SELECT name, value FROM facts")) if reader is not None else {}

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._reader is not None:
                self._reader[1].close()
                self._reader = None

    def load(self) -> SchemaGraph:
        """The last complete schema; an empty one if there is none."""
        if not self._file.exists():
            return SchemaGraph()
        with closing(self._connected()) as database:
            rows = database.execute("SELECT name, row, error FROM objects").fetchall()
            listed = dict(database.execute("SELECT name, value FROM facts WHERE name = 'unsynced'")).get("unsynced", "")
        problems = {name: error or "not read" for name, row, error in rows if row is None or error}
        objects = (from_row(row) for _, row, _ in rows if row is not None)
        return SchemaGraph.of(objects, problems, listed.split())

    def known(self) -> dict[str, str]:
        """Since when each object is known as it is."""
        with closing(self._connected()) as database:
            return dict(database.execute("SELECT name, since FROM objects WHERE row IS NOT NULL AND since != ''"))

    def staged(self) -> set[str]:
        """The objects an interrupted sync has already."""
        with closing(self._connected()) as database:
            return {name for (name,) in database.execute("SELECT name FROM staged")}

    def stage(self, items: Iterable[Staged], facts: Mapping[str, str]) -> None:
        """Put objects aside until all are there."""
        with self._lock, closing(self._connected()) as database, database:
            rows = [(item.name, item.row, item.since, item.error) for item in items]
            database.executemany("INSERT OR REPLACE INTO staged VALUES (?, ?, ?, ?)", rows)
            database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())

    def restart(self, facts: Mapping[str, str]) -> None:
        """Begin a sync from its start."""
        with self._lock, closing(self._connected()) as database, database:
            database.execute("DELETE FROM staged")
            database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())

    def complete(self, names: Iterable[str], facts: Mapping[str, str]) -> tuple[int, int]:
        """Put what was staged in place, and drop objects that are no more; how many are new or others, how many gone.

        An object that could not be read keeps the row it had.
        """
        wanted = set(names)
        with self._lock, closing(self._connected()) as database, database:
            changed = 0
            for name, row, since, error in database.execute("SELECT name, row, since, error FROM staged").fetchall():
                before = database.execute("SELECT row, since FROM objects WHERE name = ?", (name,)).fetchone()
                kept = row if row is not None else (before[0] if before else None)
                changed += kept is not None and (before is None or before[0] != kept)
                # What failed is asked for again as of the time it was last known.
                known_since = since if error is None else (before[1] if before else "")
                database.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", (name, kept, known_since, error))
            gone = [name for (name,) in database.execute("SELECT name FROM objects") if name not in wanted]
            database.executemany("DELETE FROM objects WHERE name = ?", ((name,) for name in gone))
            database.execute("DELETE FROM staged")
            database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())
        return changed, len(gone)

    def _open_reader(self) -> tuple[int, sqlite3.Connection] | None:
        """Return the connection that stays open for reading, and a new one after the file was replaced."""
        try:
            inode = self._file.stat().st_ino
        except OSError:
            inode = None
        if self._reader is not None and self._reader[0] != inode:
            self._reader[1].close()
            self._reader = None
        if self._reader is None and inode is not None:
            self._reader = (inode, self._connected())
        return self._reader

    def _connected(self) -> sqlite3.Connection:
        self._folder.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self._file, timeout=10, check_same_thread=False)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.executescript(TABLES)
        return database
