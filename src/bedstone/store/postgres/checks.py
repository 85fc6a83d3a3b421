"""Check a PostgreSQL store completely: references, numbers, and texts and vectors that are missing or unreadable."""

from collections.abc import Callable
from typing import Any

from bedstone.errors import BedstoneError
from bedstone.store.codec import decode_text
from bedstone.store.postgres.connections import Database

OnProgress = Callable[[int, int], None]

MAX_PROBLEMS = 20  # of one kind
BATCH = 500  # chunks
REFERENCES = {
    "SELECT id FROM chunk c WHERE NOT EXISTS (SELECT 1 FROM document d WHERE d.id = c.document)": (
        "chunk {} belongs to no document"
    ),
    "SELECT id FROM chunk c WHERE NOT EXISTS (SELECT 1 FROM facets f WHERE f.id = c.facets)": "chunk {} has no facets",
    "SELECT id FROM passage p WHERE NOT EXISTS (SELECT 1 FROM chunk c WHERE c.number = p.chunk)": (
        "passage {} belongs to no chunk"
    ),
    """
    SELECT document, count(*), max(position) + 1 AS every FROM chunk
    GROUP BY document HAVING count(*) <> max(position) + 1
    """: "document {} has {} of {} chunks",
    """
    SELECT seq + 1 FROM change a WHERE seq < (SELECT seq FROM feed)
    AND NOT EXISTS (SELECT 1 FROM change b WHERE b.seq = a.seq + 1)
    """: "the list of changes lacks number {}",
    """
    SELECT 'chunks' FROM feed WHERE chunk < (SELECT max(number) FROM chunk)
    UNION ALL SELECT 'passages' FROM feed WHERE passage < (SELECT max(id) FROM passage)
    """: "the numbers of {} are used twice",
    "SELECT count(DISTINCT length(vector)) FROM passage HAVING count(DISTINCT length(vector)) > 1": (
        "the vectors have {} different sizes"
    ),
}


def check_completely(database: Database, on_progress: OnProgress) -> list[str]:
    """Return everything that is wrong."""
    try:
        problems = [
            text.format(*row)
            for query, text in REFERENCES.items()
            for row in database.read(f"SELECT * FROM ({query}) AS found LIMIT {MAX_PROBLEMS}")
        ]
        return problems + _unreadable_chunks(database, on_progress)
    except BedstoneError as error:
        return [error.message]


def _unreadable_chunks(database: Database, on_progress: OnProgress) -> list[str]:
    """Return the chunks whose text cannot be restored."""
    ((total,),) = database.read("SELECT count(*) FROM chunk")
    problems, done, last = [], 0, 0
    query = "SELECT number, id, text, plain FROM chunk WHERE number > %s ORDER BY number LIMIT %s"
    while rows := database.read(query, last, BATCH):
        problems += [f"the text of chunk {name} is damaged" for _, name, *texts in rows if not _are_texts(texts)]
        last, done = rows[-1][0], done + len(rows)
        on_progress(done, total)
    return problems


def _are_texts(texts: list[Any]) -> bool:
    try:
        return all(isinstance(decode_text(packed), str) for packed in texts)
    except BedstoneError:
        return False
