"""Notes in PostgreSQL: rows with the time when they end, outside the numbers that tell of changes."""

from collections.abc import Callable, Mapping

from bedstone.store.postgres.connections import Database
from bedstone.store.postgres.listening import Listener

# Each is one statement in a transaction of its own, and the same when it runs twice after a lost connection.
PUT = """
INSERT INTO note VALUES (%s, %s, now() + make_interval(secs => %s::float8))
ON CONFLICT (name) DO UPDATE SET text = excluded.text, ends = excluded.ends RETURNING name
"""
PUT_ONCE = "INSERT INTO note VALUES (%s, %s, 'infinity') ON CONFLICT (name) DO NOTHING RETURNING name"
PUT_AND_WAKE = f"""
WITH noted AS ({PUT}), bumped AS (UPDATE note_revision SET number = number + 1 RETURNING number)
SELECT pg_notify(%s, '') FROM bumped
"""


class PostgresNotes:
    """The notes of one schema."""

    def __init__(self, database: Database, listener: Listener) -> None:
        self._database = database
        self._listener = listener

    def put(self, name: str, text: str, seconds: float, *, wakes: bool = False) -> None:
        if wakes:
            self._database.read(PUT_AND_WAKE, name, text, seconds, self._database.channel)
        else:
            self._database.read(PUT, name, text, seconds)

    def put_once(self, name: str, text: str) -> str:
        query = "SELECT text FROM note WHERE name = %s"
        rows = self._database.read(query, name)  # first: a server that only reads may not write
        if not rows:
            self._database.read(PUT_ONCE, name, text)
            rows = self._database.read(query, name)
        return str(rows[0][0])

    def read(self, prefix: str) -> Mapping[str, str]:
        query = "SELECT name, text FROM note WHERE starts_with(name, %s::text) AND ends > now() ORDER BY name"
        return {name[len(prefix) :]: text for name, text in self._database.read(query, prefix)}

    def delete(self, name: str) -> None:
        self._database.read("DELETE FROM note WHERE name = %s RETURNING name", name)

    def prune(self) -> None:
        self._database.read("DELETE FROM note WHERE ends < now() RETURNING name")

    def revision(self) -> int:
        return int(self._database.read("SELECT number FROM note_revision")[0][0])

    def wait(self, has_changed: Callable[[], bool], seconds: float) -> bool:
        return self._listener.wait(has_changed, seconds)
