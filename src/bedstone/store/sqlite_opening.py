"""Open a SQLite store for writing: create it, check it, and bring an older one up to date."""

import sqlite3
from pathlib import Path

from bedstone.permissions import create_private_file, make_private_folder
from bedstone.store.sql import PRAGMAS
from bedstone.store.sqlite_checks import check_quickly
from bedstone.store.sqlite_errors import translate_errors
from bedstone.store.sqlite_schema import check_readable_version, migrate, read_version

BUSY_SECONDS = 10


def open_writer(path: Path, *, durable: bool) -> sqlite3.Connection:
    """Return a connection that writes; raise `StoreDamaged` if the file is not a complete store."""
    make_private_folder(path.parent)
    create_private_file(path)  # SQLite gives the files beside it the same permissions
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        with translate_errors(path):
            _prepare(connection, path, durable=durable)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, *, durable: bool) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(PRAGMAS)
    if durable:
        connection.execute("PRAGMA synchronous = FULL")
    if found := read_version(connection):
        check_readable_version(found, path)
        check_quickly(connection, path)  # before a migration reads a damaged file
    migrate(connection, path)
    if not found:
        check_quickly(connection, path)
