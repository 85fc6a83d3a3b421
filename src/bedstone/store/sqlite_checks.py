"""Check a SQLite store: quickly when it is opened, completely on demand."""

import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bedstone.store.sqlite_errors import damage_error

OnProgress = Callable[[int, int], None]

TABLES = ("document", "chunk", "facets", "passage", "change", "task", "setting")
MAX_PROBLEMS = 20  # of one kind
BATCH = 500  # chunks


def check_quickly(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `StoreDamaged` if the file lacks a table, or if the ends of a table cannot be read.

    The cost does not depend on the size of the store; SQLite itself refuses a file that is cut off. Never open the file
    here by other means: closing it would release the locks that SQLite holds on it.
    """
    known = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if lacking := sorted(set(TABLES) - known):
        raise damage_error(path, f"it has no table {lacking[0]!r}")
    for table in TABLES:
        for order in ("ASC", "DESC"):
            connection.execute(f"SELECT * FROM {table} ORDER BY rowid {order} LIMIT 1").fetchone()  # noqa: S608 - our own names


def check_completely(connection: sqlite3.Connection, on_progress: OnProgress) -> list[str]:
    """Return everything that is wrong: pages, references, and texts and vectors that are missing or unreadable."""
    try:
        found = [text for (text,) in connection.execute(f"PRAGMA integrity_check({MAX_PROBLEMS})") if text != "ok"]
        if found:
            return found
        broken = connection.execute("PRAGMA foreign_key_check").fetchmany(MAX_PROBLEMS)
        problems = [f"a row of {table} belongs to no {owner}" for table, _, owner, _ in broken]
        return problems + _unreadable_chunks(connection, on_progress)
    except sqlite3.DatabaseError as error:
        return [str(error)]


def _unreadable_chunks(connection: sqlite3.Connection, on_progress: OnProgress) -> list[str]:
    """Return the chunks whose text cannot be restored, and documents whose chunks are not all there."""
    (total,) = connection.execute("SELECT count(*) FROM chunk").fetchone()
    problems, done, last = [], 0, 0
    query = "SELECT rowid, id, text, plain FROM chunk WHERE rowid > ? ORDER BY rowid LIMIT ?"
    while rows := connection.execute(query, (last, BATCH)).fetchall():
        problems += [f"the text of chunk {name} is damaged" for _, name, *texts in rows if not _are_texts(texts)]
        last, done = rows[-1][0], done + len(rows)
        on_progress(done, total)
    gaps = (
        "SELECT document, count(*), max(position) + 1 FROM chunk GROUP BY document HAVING count(*) <> max(position) + 1"
    )
    (sizes,) = connection.execute("SELECT count(DISTINCT length(vector)) FROM passage").fetchone()
    if sizes > 1:
        problems.append(f"the vectors have {sizes} different sizes")
    for document, count, expected in connection.execute(gaps).fetchmany(MAX_PROBLEMS):
        problems.append(f"document {document} has {count} of {expected} chunks")
    return problems


def _are_texts(texts: list[Any]) -> bool:
    try:
        return all(isinstance(zlib.decompress(packed).decode(), str) for packed in texts)
    except (zlib.error, UnicodeDecodeError, TypeError):
        return False
