"""What SQLite reports: a damaged file, and what the machine lacks, such as a full disk or a lock."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bedstone.store.engine import StoreDamaged, StoreUnavailable

CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise `StoreDamaged` where the file is corrupt, and `StoreUnavailable` where it cannot be read or written now."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in CORRUPT:
            raise damage_error(path, str(error)) from error
        if isinstance(error, sqlite3.OperationalError):
            raise StoreUnavailable(str(error)) from error
        raise


def damage_error(path: Path, reason: str) -> StoreDamaged:
    """Return the error for a file that is not a complete store."""
    return StoreDamaged(f"The store {path} is damaged: {reason}.", path=str(path))


def roll_back(writer: sqlite3.Connection) -> None:
    """End a transaction; SQLite has done so itself after some errors, such as a full disk."""
    if writer.in_transaction:
        writer.execute("ROLLBACK")


def write_and_undo(writer: sqlite3.Connection) -> None:
    """Write a named value and undo it, to find out whether anything can be written."""
    writer.execute("BEGIN IMMEDIATE")
    try:
        writer.execute("INSERT OR REPLACE INTO setting(name, value) VALUES ('probe', '')")
    finally:
        roll_back(writer)
