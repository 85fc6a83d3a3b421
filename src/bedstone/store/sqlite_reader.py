"""A connection that reads, and that another thread may close."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bedstone.store.sqlite_errors import translate_errors

STREAM_ROWS = 256


class Reader(sqlite3.Connection):
    """A connection that another thread may close between two of its queries, never during one.

    Closing a connection while SQLite runs a query on it crashes the process.
    """

    path = Path()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._lock = threading.Lock()

    def fetch(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock, translate_errors(self.path):
            return self.execute(query, values).fetchall()

    def stream(self, query: str, values: Sequence[Any]) -> Iterator[Any]:
        with self._lock, translate_errors(self.path):
            cursor = self.execute(query, values)
            rows = cursor.fetchmany(STREAM_ROWS)
        while rows:
            yield from rows
            with self._lock, translate_errors(self.path):
                rows = cursor.fetchmany(STREAM_ROWS)

    def close(self) -> None:
        with self._lock:
            super().close()
