"""Locks between processes: advisory locks of one session, which PostgreSQL frees when its connection ends."""

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import Connection

from bedstone.store.engine import StoreUnavailable
from bedstone.store.postgres.errors import CLOSED
from bedstone.store.postgres.schema import lock_number

CHECK_SECONDS = 0.2  # a connection that was used within this time is taken to be alive

# Whether a process with a number is still connected. Advisory locks of 64 bits are shown in two halves.
IS_ALIVE = """EXISTS (
    SELECT 1 FROM pg_catalog.pg_locks AS held
    WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 1
    AND held.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    AND (held.classid::bigint << 32 | held.objid::bigint) = {holder}
)"""


class LockSession:
    """One connection with the locks of this process, and with the number under which it holds tasks.

    If the connection breaks, all of them are lost, and other processes may take them.
    """

    def __init__(self, connect: Callable[[], Connection[Any]], schema: str) -> None:
        self._connect = connect
        self._schema = schema
        self._guard = threading.RLock()
        self._connection: Connection[Any] | None = None
        self._checked_at = 0.0
        self._number: int | None = None
        self._owners: dict[str, PostgresLock] = {}
        self._is_closed = False

    @property
    def number(self) -> int | None:
        """Return the number under which this process holds tasks now, if it does."""
        with self._guard:
            return self._number if self._is_alive() else None

    def take_number(self) -> int:
        """Return the number under which this process holds tasks; connect first if necessary."""
        with self._guard:
            self._open()
            assert self._number is not None
            return self._number

    def acquire(self, lock: "PostgresLock", name: str) -> bool:
        """Take a lock, unless another one of this process or another process has it."""
        with self._guard:
            self._checked_at = 0.0
            self._open()
            assert self._connection is not None
            owner = self._owners.get(name)
            if owner is not None:
                return owner is lock
            try:
                row = self._connection.execute(
                    "SELECT pg_try_advisory_lock(%s)", [lock_number(self._schema, f"lock {name}")]
                ).fetchone()
            except psycopg.Error:
                self._drop()
                return False
            if row is not None and row[0]:
                self._owners[name] = lock
            return name in self._owners

    def release(self, lock: "PostgresLock", name: str) -> None:
        """Let others take a lock."""
        with self._guard:
            if self._owners.get(name) is not lock:
                return
            del self._owners[name]
            if self._connection is not None:
                with suppress(psycopg.Error):  # it is free already
                    number = lock_number(self._schema, f"lock {name}")
                    self._connection.execute("SELECT pg_advisory_unlock(%s)", [number])

    def has(self, lock: "PostgresLock", name: str) -> bool:
        """Return whether a lock is held, as far as that is known."""
        with self._guard:
            return self._owners.get(name) is lock and self._is_alive()

    def close(self) -> None:
        """Free all locks; the end of the connection alone would do that a moment later."""
        with self._guard:
            self._is_closed = True
            if self._connection is not None:
                with suppress(psycopg.Error):
                    self._connection.execute("SELECT pg_advisory_unlock_all()")
            self._drop()

    def _open(self) -> None:
        if self._is_alive():
            return
        if self._is_closed:
            raise StoreUnavailable(CLOSED)
        connection = self._connect()
        number = secrets.randbits(62)
        try:
            connection.execute("SELECT pg_advisory_lock(%s)", [number])
        except BaseException:
            connection.close()
            raise
        self._connection, self._number, self._checked_at = connection, number, time.monotonic()

    def _is_alive(self) -> bool:
        if self._connection is None:
            return False
        if time.monotonic() - self._checked_at < CHECK_SECONDS:
            return True
        try:
            self._connection.execute("SELECT 1")
        except psycopg.Error:
            self._drop()
            return False
        self._checked_at = time.monotonic()
        return True

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._number = None
        self._owners.clear()


class PostgresLock:
    """A lock that one process holds at a time."""

    def __init__(self, session: LockSession, name: str) -> None:
        self._session = session
        self._name = name

    @property
    def is_held(self) -> bool:
        """Return whether this object holds the lock."""
        return self._session.has(self, self._name)

    def acquire(self) -> bool:
        """Take the lock unless another process holds it; return whether it is held now."""
        return self._session.acquire(self, self._name)

    def release(self) -> None:
        """Let another process take the lock."""
        self._session.release(self, self._name)
