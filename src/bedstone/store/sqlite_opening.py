"""Open a SQLite store for writing: create it, check it, and bring an older one up to date."""

import sqlite3
from pathlib import Path

from bedstone.permissions import create_private_file, make_private_folder
from bedstone.store.engine import StoreVersionMismatch
from bedstone.store.sql import ADDITIONS, PRAGMAS, SCHEMA, SCHEMA_VERSION, move_cancel_requests
from bedstone.store.sqlite_checks import check_quickly
from bedstone.store.sqlite_errors import translate_errors

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
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        _create(connection)
    elif version != SCHEMA_VERSION:
        raise StoreVersionMismatch(f"{path} was written by another version of Bedstone.")
    check_quickly(connection, path)
    connection.executescript(ADDITIONS)
    move_cancel_requests(connection)


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:  # else another process was faster
        for statement in SCHEMA.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")
