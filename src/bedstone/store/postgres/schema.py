"""The tables of the PostgreSQL engine, and the migrations that make them; `store/versions.py` has their rules."""

import hashlib

from psycopg import Connection, sql

from bedstone.errors import InvalidSetting
from bedstone.store.postgres.address import Address
from bedstone.store.versions import check_version

MIN_SERVER = 140_000  # PostgreSQL 14
LOCK_NAMESPACE = "bedstone"

# Text is compared by code points in every locale of a database, so that all stores sort alike.
TABLES = """
CREATE FUNCTION as_number(text) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN $1 ~ '^\\s*[-+]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]{1,3})?\\s*$'
        THEN $1::double precision END
$$;

-- One row that every change of documents, chunks or passages updates in its own transaction: numbers are then given
-- out in the order of the commits, without gaps. A sequence would let a reader skip what commits late.
CREATE TABLE feed(
    id boolean PRIMARY KEY DEFAULT true CHECK (id),
    seq bigint NOT NULL DEFAULT 0,
    chunk bigint NOT NULL DEFAULT 0,
    passage bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO feed DEFAULT VALUES;

-- The number of writing transactions: callers compare it to find out whether anything has changed.
CREATE TABLE activity(
    id boolean PRIMARY KEY DEFAULT true CHECK (id),
    version bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO activity DEFAULT VALUES;

-- `metadata` is what is read back. The rest is derived from it, for conditions: every attribute, those that differ in
-- lower case, and the items of those that are JSON.
CREATE TABLE document(
    id text COLLATE "C" PRIMARY KEY,
    title text NOT NULL,
    digest text COLLATE "C" NOT NULL,
    metadata text NOT NULL,
    attributes jsonb NOT NULL,
    lowered jsonb NOT NULL,
    items jsonb NOT NULL,
    status text COLLATE "C" GENERATED ALWAYS AS (attributes ->> 'status') STORED,
    format text COLLATE "C" GENERATED ALWAYS AS (attributes ->> 'format') STORED,
    method text COLLATE "C" GENERATED ALWAYS AS (attributes ->> 'method') STORED,
    filename text COLLATE "C" GENERATED ALWAYS AS (attributes ->> 'filename') STORED,
    source text COLLATE "C" GENERATED ALWAYS AS (attributes ->> 'source') STORED,
    contexts text COLLATE "C" GENERATED ALWAYS AS (attributes ->> 'contexts') STORED,
    added double precision GENERATED ALWAYS AS (as_number(attributes ->> 'added')) STORED,
    size double precision GENERATED ALWAYS AS (as_number(attributes ->> 'size')) STORED
);
CREATE INDEX document_by_digest ON document USING hash (digest);
CREATE INDEX document_by_source ON document USING hash (source);
CREATE INDEX document_by_filename ON document USING hash (filename);
CREATE INDEX document_by_state ON document(status, format, method);
CREATE INDEX document_by_added ON document(added DESC NULLS LAST, id);
CREATE INDEX document_by_items ON document USING gin (items jsonb_path_ops);

CREATE TABLE facets(id bigint PRIMARY KEY, key bytea NOT NULL UNIQUE, pairs text NOT NULL);

CREATE TABLE chunk(
    number bigint PRIMARY KEY,
    document text COLLATE "C" NOT NULL,
    position integer NOT NULL,
    facets bigint NOT NULL,
    id text COLLATE "C" NOT NULL UNIQUE,
    level integer NOT NULL,
    breadcrumb text NOT NULL,
    heading text NOT NULL,
    page integer,
    text bytea NOT NULL,
    plain bytea NOT NULL,
    UNIQUE (document, position) INCLUDE (number)
);
ALTER TABLE chunk ALTER text SET STORAGE EXTERNAL, ALTER plain SET STORAGE EXTERNAL;

CREATE TABLE passage(
    id bigint PRIMARY KEY,
    chunk bigint NOT NULL,
    start integer NOT NULL,
    "end" integer NOT NULL,
    vector bytea NOT NULL
);
ALTER TABLE passage ALTER vector SET STORAGE EXTERNAL;
CREATE INDEX passage_of_chunk ON passage(chunk, start, id);

CREATE TABLE change(
    seq bigint PRIMARY KEY,
    stamp bigint NOT NULL,
    kind text NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    gone_first bigint NOT NULL,
    gone_last bigint NOT NULL
);

-- `holder` is the number of an advisory lock that the process which runs the task holds as long as it is connected.
CREATE TABLE task(
    id text COLLATE "C" PRIMARY KEY,
    kind text NOT NULL,
    status text COLLATE "C" NOT NULL,
    created double precision NOT NULL,
    details text NOT NULL,
    started double precision,
    finished double precision,
    attempts integer NOT NULL,
    dismissed boolean NOT NULL,
    holder bigint
) WITH (fillfactor = 70);
CREATE INDEX task_by_status ON task(status, created, id);
CREATE INDEX task_by_finished ON task(finished, id);

CREATE TABLE cancel_request(task text COLLATE "C" PRIMARY KEY);

CREATE TABLE setting(key bytea PRIMARY KEY, name text COLLATE "C" NOT NULL, value text NOT NULL);
"""
# What servers tell each other for a while: who is there, which logins have ended.
NOTES = """
CREATE TABLE note(name text COLLATE "C" PRIMARY KEY, text text NOT NULL, ends timestamptz NOT NULL)
    WITH (fillfactor = 70);
CREATE TABLE note_revision(id boolean PRIMARY KEY DEFAULT true CHECK (id), number bigint NOT NULL DEFAULT 0);
INSERT INTO note_revision DEFAULT VALUES;
"""
MIGRATIONS = (TABLES, NOTES)
NAMES = (
    *("feed", "activity", "document", "facets", "chunk", "passage", "change", "task", "cancel_request", "setting"),
    *("note", "note_revision"),
)


def lock_number(schema: str, name: str) -> int:
    """Return the number of an advisory lock; advisory locks have no names, and all schemas of a database share them."""
    digest = hashlib.sha256(f"{LOCK_NAMESPACE}\0{schema}\0{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def read_version(connection: Connection, schema: str) -> int:
    """Return how many migrations a schema has had; 0 if the store does not exist yet."""
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [f"{schema}.schema_version"]).fetchone()
    if row is None or not row[0]:
        return 0
    row = connection.execute(sql.SQL("SELECT version FROM {}.schema_version").format(sql.Identifier(schema))).fetchone()
    return int(row[0]) if row else 0


def migrate(
    connection: Connection, address: Address, *, read_only: bool, migrations: tuple[str, ...] = MIGRATIONS
) -> None:
    """Bring a store up to date, one process at a time; create it first if necessary."""
    _check_server(connection, address.place)
    if read_only or read_version(connection, address.schema) >= len(migrations):
        check_version(read_version(connection, address.schema), len(migrations), address.place)
        return
    # Outside the transaction: one that had begun before would not see the tables that another process made meanwhile.
    lock = [lock_number(address.schema, "migrations")]
    connection.execute("SELECT pg_advisory_lock(%s)", lock)
    try:
        with connection.transaction():
            _apply(connection, address.schema, migrations)
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s)", lock)
    check_version(read_version(connection, address.schema), len(migrations), address.place)


def _apply(connection: Connection, name: str, migrations: tuple[str, ...]) -> None:
    schema, version = sql.Identifier(name), read_version(connection, name)
    if version == 0:
        if connection.execute("SELECT to_regnamespace(%s)", [name]).fetchone() == (None,):
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
        connection.execute(sql.SQL("CREATE TABLE {}.schema_version(version integer NOT NULL)").format(schema))
        connection.execute(sql.SQL("INSERT INTO {}.schema_version VALUES (0)").format(schema))
    connection.execute(sql.SQL("SET LOCAL search_path = {}").format(schema))
    for migration in migrations[version:]:
        connection.execute(migration.encode())
    if version < len(migrations):
        connection.execute("UPDATE schema_version SET version = %s", [len(migrations)])


def _check_server(connection: Connection, place: str) -> None:
    version = connection.info.server_version
    if version < MIN_SERVER:
        raise InvalidSetting(
            f"The server at {place} is PostgreSQL {version // 10_000}. Bedstone needs PostgreSQL 14 or later."
        )
    row = connection.execute("SHOW server_encoding").fetchone()
    if row is None or row[0] != "UTF8":
        raise InvalidSetting(
            f"The database at {place} is not in UTF-8. Create one with: CREATE DATABASE ... ENCODING UTF8"
        )
