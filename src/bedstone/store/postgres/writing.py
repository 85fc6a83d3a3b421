"""What a transaction of the PostgreSQL engine writes: documents, chunks, passages, and the changes that tell of them.

Every one of them locks the row of `feed` first, so that they run one after another and cannot block each other.
"""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Cursor

from bedstone.records import ChangeKind, Chunk, Document, Passage
from bedstone.store.codec import CHANGE_COLUMNS, encode_chunk, encode_document, encode_facets
from bedstone.store.engine import EMPTY_RANGE
from bedstone.store.postgres.conditions import derive_columns

PRUNE_EVERY = 1_000  # changes
KEEP_CHANGES = 100_000  # an index that is further behind starts again from all chunks

DOCUMENT_COLUMNS = "id, title, digest, metadata, attributes, lowered, items"
PUT_DOCUMENT = f"""
INSERT INTO document({DOCUMENT_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET title = excluded.title, digest = excluded.digest, metadata = excluded.metadata,
    attributes = excluded.attributes, lowered = excluded.lowered, items = excluded.items
"""
UPDATE_DOCUMENT = """
UPDATE document SET title = %s, digest = %s, metadata = %s, attributes = %s, lowered = %s, items = %s WHERE id = %s
"""
TAKE_NUMBERS = """
UPDATE feed SET seq = seq + %s, chunk = chunk + %s, passage = passage + %s RETURNING seq, chunk, passage
"""
CHUNK_TYPES = ("int8", "text", "int4", "int8", "text", "int4", "text", "text", "int4", "bytea", "bytea")
COPY_CHUNKS = """
COPY chunk(number, document, position, facets, id, level, breadcrumb, heading, page, text, plain)
FROM STDIN (FORMAT BINARY)
"""
PASSAGE_TYPES = ("int8", "int8", "int4", "int4", "bytea")
RANGES = """
SELECT document, min(number), max(number) FROM chunk WHERE document = ANY(%s::text[]) GROUP BY document
"""
DELETE_PASSAGES = """
DELETE FROM passage USING chunk WHERE passage.chunk = chunk.number AND chunk.document = ANY(%s::text[])
"""
COPY_PASSAGES = 'COPY passage(id, chunk, start, "end", vector) FROM STDIN (FORMAT BINARY)'

Range = tuple[int, int]  # the first and the last number


@dataclass(frozen=True)
class EncodedDocument:
    """The rows of a document and its chunks; made before the transaction, which others wait for."""

    row: tuple[Any, ...]
    facets: Sequence[str]  # of each chunk
    chunks: Sequence[tuple[Any, ...]]

    @classmethod
    def of(cls, document: Document, chunks: Iterable[Chunk]) -> "EncodedDocument":
        """Return the rows to write."""
        pairs = [(encode_facets(chunk.facets), encode_chunk(chunk)) for chunk in chunks]
        row = (*encode_document(document), *derive_columns(document.attributes))
        return cls(row, [facets for facets, _ in pairs], [columns for _, columns in pairs])


class Writer:
    """One transaction that changes documents, with the numbers that it gives out."""

    def __init__(self, cursor: Cursor[Any], *, changes: int = 0, chunks: int = 0, passages: int = 0) -> None:
        """Lock the feed; with 0 of everything only that."""
        self._cursor = cursor
        last = cursor.execute(TAKE_NUMBERS, [changes, chunks, passages]).fetchone()
        assert last is not None, "the feed has one row"
        self._first_seq = last[0] - changes
        self._seq, self._chunk, self._passage = last[0] - changes, last[1] - chunks, last[2] - passages

    def put(self, item: EncodedDocument) -> None:
        """Add a document in place of the one with its id."""
        gone = self._delete_chunks([item.row[0]])
        self._cursor.execute(PUT_DOCUMENT, item.row)
        self._record(("put", self._copy_chunks(item), gone.get(item.row[0], EMPTY_RANGE)))

    def delete(self, document_ids: Sequence[str]) -> None:
        """Delete documents that are there."""
        gone = self._delete_chunks(document_ids)
        self._cursor.execute("DELETE FROM document WHERE id = ANY(%s::text[])", [list(document_ids)])
        self._record(*(("delete", EMPTY_RANGE, gone.get(name, EMPTY_RANGE)) for name in document_ids))

    def put_passages(self, passages: Sequence[tuple[Passage, bytes]]) -> None:
        """Add vectors to the chunks that are there."""
        numbers = [int(item.chunk_rowid) for item, _ in passages]
        found = self._cursor.execute("SELECT number FROM chunk WHERE number = ANY(%s::bigint[])", [numbers])
        known = {number for (number,) in found}
        with self._cursor.copy(COPY_PASSAGES) as copy:
            copy.set_types(PASSAGE_TYPES)
            for number, (item, vector) in zip(numbers, passages, strict=True):
                if number in known:
                    self._passage += 1
                    copy.write_row((self._passage, number, item.start, item.end, vector))
        self._record(("vectors", (min(numbers), max(numbers)), EMPTY_RANGE))

    def record_deleted_passages(self) -> None:
        """Note that no chunk has passages any more."""
        row = self._cursor.execute("SELECT min(number), max(number) FROM chunk").fetchone()
        assert row is not None
        self._record(("vectors", (row[0], row[1]) if row[0] is not None else EMPTY_RANGE, EMPTY_RANGE))

    def update(self, documents: Iterable[Document]) -> None:
        """Replace titles, digests and attributes."""
        rows = [(encode_document(item), derive_columns(item.attributes)) for item in documents]
        self._cursor.executemany(UPDATE_DOCUMENT, [(*row[1:], *derived, row[0]) for row, derived in rows])

    def prune_if_due(self) -> None:
        """Prune the list of changes now and then."""
        if self._seq // PRUNE_EVERY != self._first_seq // PRUNE_EVERY:
            prune_changes(self._cursor, KEEP_CHANGES)

    def _delete_chunks(self, document_ids: Sequence[str]) -> dict[str, Range]:
        """Delete the chunks of documents, whose numbers follow each other; return their ranges."""
        names = [list(document_ids)]
        found = self._cursor.execute(RANGES, names).fetchall()
        if found:
            self._cursor.execute(DELETE_PASSAGES, names)
            self._cursor.execute("DELETE FROM chunk WHERE document = ANY(%s::text[])", names)
        return {document: (first, last) for document, first, last in found}

    def _copy_chunks(self, item: EncodedDocument) -> Range:
        if not item.chunks:
            return EMPTY_RANGE
        facets, first = self._facet_ids(item.facets), self._chunk + 1
        with self._cursor.copy(COPY_CHUNKS) as copy:
            copy.set_types(CHUNK_TYPES)
            for position, (pairs, columns) in enumerate(zip(item.facets, item.chunks, strict=True)):
                self._chunk += 1
                copy.write_row((self._chunk, item.row[0], position, facets[pairs], *columns))
        return first, self._chunk

    def _facet_ids(self, facets: Iterable[str]) -> dict[str, int]:
        """Return the numbers of facets, which many chunks share."""
        keys = {text_key(pairs): pairs for pairs in dict.fromkeys(facets)}
        query = "SELECT key, id FROM facets WHERE key = ANY(%s::bytea[])"
        known = dict(self._cursor.execute(query, [list(keys)]).fetchall())
        for key, pairs in keys.items():
            if key not in known:
                row = self._cursor.execute(
                    "INSERT INTO facets(id, key, pairs) SELECT coalesce(max(id), 0) + 1, %s, %s FROM facets "
                    "RETURNING id",
                    [key, pairs],
                ).fetchone()
                assert row is not None
                known[key] = row[0]
        return {pairs: known[key] for key, pairs in keys.items()}

    def _record(self, *changes: tuple[ChangeKind, Range, Range]) -> None:
        """Tell what came and what went; each change gets the next number."""
        first = self._seq + 1
        self._seq += len(changes)
        rows = [
            (seq, secrets.randbits(62), kind, *came, *gone) for seq, (kind, came, gone) in enumerate(changes, first)
        ]
        self._cursor.executemany(f"INSERT INTO change({CHANGE_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)", rows)


def text_key(text: str) -> bytes:
    """Return the key of a text that can be longer than an index takes: facets, and names of values that are paths."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def prune_changes(cursor: Cursor[Any], keep: int) -> None:
    """Delete old changes; the oldest one that stays stands for all chunks that were added until then.

    An index that has applied it, or a later one, goes on as before. One that is further behind does not find the change
    it applied last, and starts again: from that one change it gets every chunk that is still there. That change must
    not be one that only brought vectors, because it takes the kind `put`.
    """
    oldest = cursor.execute(
        "SELECT max(seq) FROM change WHERE kind <> 'vectors' AND seq <= (SELECT seq FROM feed) - %s", [keep]
    ).fetchone()
    if oldest is None or oldest[0] is None:
        return
    cursor.execute(
        "UPDATE change SET kind = 'put', first = 1, last = (SELECT coalesce(max(last), 0) FROM change "
        "WHERE kind = 'put' AND seq <= %s) WHERE seq = %s",
        [oldest[0], oldest[0]],
    )
    cursor.execute("DELETE FROM change WHERE seq < %s", [oldest[0]])
