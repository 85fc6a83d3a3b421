"""The tables of the SQLite engine, and the migrations that make them; `versions.py` has their rules."""

import sqlite3

from bedstone.store.engine import StoreVersionMismatch
from bedstone.store.versions import check_not_newer

FIRST_VERSION = 2  # the version that the first migration makes; what was before was never released
WAIT_SECONDS = 600  # for another process that migrates
TABLES = """
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
# Stores of version 2 have some of these, depending on which program opened them last. Requests to cancel a task were
# first kept among the named values.
LOOKUPS = """
CREATE INDEX IF NOT EXISTS document_by_digest ON document(digest);
CREATE INDEX IF NOT EXISTS document_by_added ON document(CAST(json_extract(metadata, '$.added') AS REAL) DESC, id);
CREATE INDEX IF NOT EXISTS document_by_contexts ON document(json_extract(metadata, '$.contexts'), id);
CREATE INDEX IF NOT EXISTS document_by_source ON document(json_extract(metadata, '$.source'));
CREATE INDEX IF NOT EXISTS document_by_filename ON document(json_extract(metadata, '$.filename'));
CREATE INDEX IF NOT EXISTS document_by_state ON document(
    json_extract(metadata, '$.status'), json_extract(metadata, '$.format'), json_extract(metadata, '$.method')
);
CREATE INDEX IF NOT EXISTS task_by_finished ON task(finished, id);
CREATE TABLE IF NOT EXISTS cancel_request(task TEXT PRIMARY KEY);
INSERT OR IGNORE INTO cancel_request SELECT substr(name, 8) FROM setting WHERE substr(name, 1, 7) = 'cancel:';
DELETE FROM setting WHERE substr(name, 1, 7) = 'cancel:';
"""
MIGRATIONS = (TABLES, LOOKUPS)
SCHEMA_VERSION = FIRST_VERSION + len(MIGRATIONS) - 1


def read_version(connection: sqlite3.Connection) -> int:
    """Return the version of a store; 0 if the file is empty."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_readable_version(found: int, place: object) -> None:
    """Raise `StoreVersionMismatch` for a store that this version cannot read; an older one it can, as it only adds."""
    check_not_newer(found, SCHEMA_VERSION, str(place))
    if 0 < found < FIRST_VERSION:
        raise StoreVersionMismatch(
            f"The store at {place} has version {found}, which is too old: the oldest that can be upgraded is "
            f"{FIRST_VERSION}."
        )


def migrate(connection: sqlite3.Connection, place: object, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Bring a store up to date in one transaction, one process at a time; create it first if necessary."""
    newest = FIRST_VERSION + len(migrations) - 1
    if read_version(connection) < newest:
        (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
        connection.execute(f"PRAGMA busy_timeout = {WAIT_SECONDS * 1_000}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            _apply(connection, read_version(connection), migrations)  # another process may have been faster
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.execute(f"PRAGMA busy_timeout = {patience}")
    check_not_newer(read_version(connection), newest, str(place))


def _apply(connection: sqlite3.Connection, version: int, migrations: tuple[str, ...]) -> None:
    done = version - FIRST_VERSION + 1 if version else 0
    for migration in migrations[done:]:
        for statement in filter(str.strip, migration.split(";\n")):
            connection.execute(statement)
    newest = FIRST_VERSION + len(migrations) - 1
    if version < newest:
        connection.execute(f"PRAGMA user_version = {newest}")
