"""The store in a PostgreSQL schema: for several servers, and for bases that one machine does not hold."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Self

from psycopg import Cursor

from bedstone.records import (
    Change,
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
)
from bedstone.store.filters import Condition, Order
from bedstone.store.notes import Notes
from bedstone.store.postgres.address import Address
from bedstone.store.postgres.checks import check_completely
from bedstone.store.postgres.conditions import attribute, number, order_clause, where_clause
from bedstone.store.postgres.connections import Database, Unchanged, to_integers
from bedstone.store.postgres.errors import translate_errors
from bedstone.store.postgres.listening import Listener
from bedstone.store.postgres.notes import PostgresNotes
from bedstone.store.postgres.schema import MIGRATIONS, migrate
from bedstone.store.postgres.task_table import TaskTable
from bedstone.store.postgres.writing import EncodedDocument, Writer, prune_changes, text_key
from bedstone.store.versions import check_version

FIRST_PAGE = 16  # rows; callers that want the first one only should not wait for many
MAX_PAGE = 1_024
HEAD_COLUMNS = "c.number, c.document, c.position, c.id, c.heading, c.level, c.breadcrumb, f.pairs, c.page"
CHUNK_COLUMNS = f"{HEAD_COLUMNS}, c.text, c.plain"
FROM_CHUNK = "FROM chunk c JOIN facets f ON f.id = c.facets"
WITH_NUMBERS = "WHERE c.number = ANY(%s::bigint[])"
PUT_VALUE = (
    "INSERT INTO setting(key, name, value) VALUES (%s, %s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


class PostgresStore(TaskTable):
    """A pool of connections, one connection for locks and one for notifications."""

    @classmethod
    def open(cls, address: str, *, read_only: bool = False, durable: bool = False) -> Self:
        """Open the schema of an address such as `postgresql://user@host/database?schema=bedstone`."""
        return cls(Address.parse(address), read_only=read_only, durable=durable)

    def __init__(self, address: Address, *, read_only: bool = False, durable: bool = False) -> None:
        database = Database(address, read_only=read_only, durable=durable)
        with database.connect() as connection, translate_errors(address.place):
            migrate(connection, address, read_only=read_only)
        super().__init__(database)
        self._listener = Listener(database.connect, database.channel)
        self.notes: Notes | None = PostgresNotes(database, self._listener)
        database.open()

    def put(self, items: Iterable[DocumentAndChunks]) -> None:
        rows = [EncodedDocument.of(document, chunks) for document, chunks in items]
        if rows:
            self._database.write(lambda cursor: _put(cursor, rows))

    def put_with_task(self, item: DocumentAndChunks, task: Task) -> None:
        rows = [EncodedDocument.of(*item)]

        def put(cursor: Cursor[Any]) -> None:
            _put(cursor, rows)
            self._put_task(cursor, task)

        self._database.write(put)

    def delete(self, document_ids: Iterable[str]) -> None:
        wanted = list(dict.fromkeys(document_ids))
        self._database.write(lambda cursor: _update_and_delete(cursor, [], wanted))

    def put_passages(self, passages: Sequence[tuple[Passage, bytes]]) -> None:
        def put(cursor: Cursor[Any]) -> None:
            writer = Writer(cursor, changes=1, passages=len(passages))
            writer.put_passages(passages)
            writer.prune_if_due()

        if passages:
            self._database.write(put)

    def delete_passages(self) -> None:
        def delete(cursor: Cursor[Any]) -> None:
            writer = Writer(cursor, changes=1)
            if cursor.execute("DELETE FROM passage").rowcount == 0:
                raise Unchanged
            writer.record_deleted_passages()

        self._database.write(delete)

    def update_documents(self, documents: Iterable[Document]) -> None:
        changed = list(documents)
        if changed:
            self._database.write(lambda cursor: Writer(cursor).update(changed))

    def update_and_delete(self, documents: Iterable[Document], deleted: Iterable[str]) -> None:
        changed, wanted = list(documents), list(dict.fromkeys(deleted))
        self._database.write(lambda cursor: _update_and_delete(cursor, changed, wanted))

    def find_by_digest(self, digest: str) -> Document | None:
        rows = self._read(f"SELECT {DOCUMENT_COLUMNS} FROM document WHERE digest = %s LIMIT 1", digest)
        return _document(rows[0]) if rows else None

    def document(self, document_id: str) -> Document | None:
        rows = self._read(f"SELECT {DOCUMENT_COLUMNS} FROM document WHERE id = %s", document_id)
        return _document(rows[0]) if rows else None

    def documents_by_id(self, document_ids: Collection[str]) -> dict[str, Document]:
        query = f"SELECT {DOCUMENT_COLUMNS} FROM document WHERE id = ANY(%s::text[])"
        return {row[0]: _document(row) for row in self._read(query, list(document_ids))}

    def documents(
        self,
        conditions: Sequence[Condition] = (),
        *,
        order: Order | None = None,
        offset: int = 0,
        limit: int = 1000,
    ) -> list[Document]:
        where, values = where_clause(conditions)
        query = f"SELECT {DOCUMENT_COLUMNS} FROM document {where} {order_clause(order)} LIMIT %s OFFSET %s"
        return [_document(row) for row in self._read(query, *values, limit, offset)]

    def document_ids(self, conditions: Sequence[Condition]) -> list[str]:
        where, values = where_clause(conditions)
        return [identity for (identity,) in self._read(f"SELECT id FROM document {where}", *values)]

    def count_documents(self, conditions: Sequence[Condition] = ()) -> int:
        where, values = where_clause(conditions)
        return int(self._read(f"SELECT count(*) FROM document {where}", *values)[0][0])

    def count_attributes(self, names: Sequence[str]) -> dict[tuple[str, ...], int]:
        columns = ", ".join(f"coalesce({attribute(name)}, '')" for name in names)
        numbers = ", ".join(str(place) for place, _ in enumerate(names, 1))
        rows = self._read(f"SELECT {columns}, count(*) FROM document GROUP BY {numbers}")
        return {tuple(values): int(count) for *values, count in rows}

    def member_names(self, name: str) -> list[str]:
        query = "SELECT DISTINCT jsonb_object_keys(items #> %s::text[]) FROM document"
        return sorted(key for (key,) in self._read(query, [name, "members"]))

    def sum_attribute(self, name: str) -> int:
        return int(self._read(f"SELECT coalesce(sum(trunc({number(name)})), 0) FROM document")[0][0])

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        rows = self._read(f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} WHERE c.id = %s", chunk_id)
        return decode_chunk(rows[0]) if rows else None

    def chunks(self, rowids: Sequence[int]) -> dict[int, StoredChunk]:
        rows = self._read(f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} {WITH_NUMBERS}", to_integers(rowids))
        return {row[0]: decode_chunk(row) for row in rows}

    def chunk_heads(self, rowids: Sequence[int]) -> dict[int, ChunkHead]:
        rows = self._read(f"SELECT {HEAD_COLUMNS} {FROM_CHUNK} {WITH_NUMBERS}", to_integers(rowids))
        return {row[0]: decode_head(row) for row in rows}

    def plain_texts(self, rowids: Sequence[int]) -> dict[int, str]:
        rows = self._read(f"SELECT c.number, c.plain FROM chunk c {WITH_NUMBERS}", to_integers(rowids))
        return {rowid: decode_text(plain) for rowid, plain in rows}

    def chunks_of(self, document_id: str) -> list[StoredChunk]:
        query = f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} WHERE c.document = %s ORDER BY c.position"
        return [decode_chunk(row) for row in self._read(query, document_id)]

    def chunk_counts(self, document_id: str | None = None) -> dict[str, int]:
        condition, values = ("WHERE document = %s", [document_id]) if document_id is not None else ("", [])
        return dict(self._pairs(f"SELECT document, count(*) FROM chunk {condition} GROUP BY document", *values))

    def first_chunks(self) -> list[int]:
        return [rowid for (rowid,) in self._read("SELECT number FROM chunk WHERE position = 0 ORDER BY number")]

    def chunks_between(self, first: int, last: int) -> Iterator[StoredChunk]:
        query = f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} WHERE c.number BETWEEN %s AND %s ORDER BY c.number LIMIT %s"
        size = FIRST_PAGE
        while rows := self._read(query, first, last, size):
            yield from (decode_chunk(row) for row in rows)
            first, size = rows[-1][0] + 1, min(size * 4, MAX_PAGE)

    def chunks_without_vectors(
        self, *, document_id: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[StoredChunk]:
        owner, owners = ("AND c.document = %s", [document_id]) if document_id is not None else ("", [])
        query = (
            f"SELECT {CHUNK_COLUMNS} {FROM_CHUNK} WHERE c.number > %s {owner} "
            "AND NOT EXISTS (SELECT 1 FROM passage p WHERE p.chunk = c.number) ORDER BY c.number LIMIT %s"
        )
        return [decode_chunk(row) for row in self._read(query, after, *owners, limit)]

    def passages_between(self, first: int, last: int) -> Iterator[StoredPassage]:
        query = (
            'SELECT p.id, p.chunk, p.start, p."end", f.pairs FROM passage p JOIN chunk c ON c.number = p.chunk '
            "JOIN facets f ON f.id = c.facets WHERE p.chunk <= %s AND (p.chunk, p.start, p.id) > (%s, %s, %s) "
            "ORDER BY p.chunk, p.start, p.id LIMIT %s"
        )
        size, after = FIRST_PAGE, (first, -1, 0)
        while rows := self._read(query, last, *after, size):
            for identity, chunk, start, end, pairs in rows:
                yield StoredPassage(identity, Passage(chunk, start, end), decode_facets(pairs))
            identity, chunk, start, *_ = rows[-1]
            size, after = min(size * 4, MAX_PAGE), (chunk, start, identity)

    def vectors(self, passage_ids: Sequence[int]) -> dict[int, bytes]:
        query = "SELECT id, vector FROM passage WHERE id = ANY(%s::bigint[])"
        return dict(self._pairs(query, to_integers(passage_ids)))

    def counts(self) -> Counts:
        tables = ("document", "chunk", "passage")
        (row,) = self._read("SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in tables))
        return Counts(*row)

    def changes(self, after: int, limit: int = 1000) -> list[Change]:
        query = f"SELECT {CHANGE_COLUMNS} FROM change WHERE seq > %s ORDER BY seq LIMIT %s"
        return [Change(*row) for row in self._read(query, after, limit)]

    def prune_changes(self, keep: int) -> None:
        """Keep about the last `keep` changes; this happens by itself after many."""

        def prune(cursor: Cursor[Any]) -> None:
            Writer(cursor)
            prune_changes(cursor, keep)

        self._database.write(prune)

    def version(self) -> int:
        return int(self._read("SELECT version FROM activity")[0][0])

    def wait_for_change(self, after: int, timeout: float) -> bool:
        return self._listener.wait(lambda: self.version() != after, timeout)

    def check_readable(self) -> None:
        found = self._read("SELECT version FROM schema_version")[0][0]
        check_version(found, len(MIGRATIONS), self._database.address.place)
        self._read(f"SELECT {DOCUMENT_COLUMNS} FROM document LIMIT 1")
        self._read("SELECT * FROM chunk LIMIT 1")

    def check_writable(self) -> None:
        def write_and_undo(cursor: Cursor[Any]) -> None:
            cursor.execute(PUT_VALUE.encode(), [text_key("probe"), "probe", ""])
            raise Unchanged

        self._database.write(write_and_undo)

    def check_integrity(self, on_progress: Callable[[int, int], None] = lambda done, total: None) -> list[str]:
        return check_completely(self._database, on_progress)

    def get_value(self, name: str) -> str | None:
        rows = self._read("SELECT value FROM setting WHERE key = %s", text_key(name))
        return str(rows[0][0]) if rows else None

    def list_values(self, prefix: str) -> dict[str, str]:
        rows = self._pairs("SELECT name, value FROM setting WHERE starts_with(name, %s::text) ORDER BY name", prefix)
        return {name[len(prefix) :]: value for name, value in rows}

    def set_value(self, name: str, value: str) -> None:
        self._write(PUT_VALUE, text_key(name), name, value)

    def delete_value(self, name: str) -> None:
        self._write("DELETE FROM setting WHERE key = %s", text_key(name))

    def seal(self) -> None:
        """Do nothing: a schema cannot be opened without its server."""

    def close(self) -> None:
        self._listener.close()
        self._session.close()
        self._database.close()

    def _pairs(self, query: str, *values: Any) -> list[tuple[Any, Any]]:
        return [(first, second) for first, second in self._database.read(query, *values)]


def _document(row: tuple[Any, ...]) -> Document:
    identity, title, digest, metadata = row
    return decode_document((identity, title, digest, metadata))


def _put(cursor: Cursor[Any], items: Sequence[EncodedDocument]) -> None:
    writer = Writer(cursor, changes=len(items), chunks=sum(len(item.chunks) for item in items))
    for item in items:
        writer.put(item)
    writer.prune_if_due()


def _update_and_delete(cursor: Cursor[Any], changed: Sequence[Document], wanted: Sequence[str]) -> None:
    Writer(cursor).update(changed)
    found = cursor.execute("SELECT id FROM document WHERE id = ANY(%s::text[])", [list(wanted)]).fetchall()
    known = {identity for (identity,) in found}
    if not known and not changed:
        raise Unchanged
    writer = Writer(cursor, changes=len(known))
    writer.delete([identity for identity in wanted if identity in known])
    writer.prune_if_due()
