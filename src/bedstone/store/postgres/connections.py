"""The connections of one PostgreSQL store: a pool, reads that are retried once, and transactions that say who wrote."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import Connection, Cursor, pq
from psycopg_pool import ConnectionPool, PoolTimeout

from bedstone.store.engine import StoreUnavailable
from bedstone.store.postgres.adapting import register
from bedstone.store.postgres.address import Address
from bedstone.store.postgres.errors import CLOSED, REPEATABLE, translate_errors, unavailable

MAX_CONNECTIONS = 10  # of the pool; locks and notifications have one more each
WAIT_SECONDS = 10.0  # for a connection, while all are in use
RETRY_SECONDS = 1.0  # while the server does not answer, callers fail at once and one of them tries again
RECONNECT_SECONDS = 1.0
IDLE_SECONDS = 300.0
CLOSE_SECONDS = 5.0
MAX_ATTEMPTS = 5
SESSION = {
    "jit": "off",  # compiling would take longer than any of our queries
    "lock_timeout": "20s",
    "idle_in_transaction_session_timeout": "60s",  # a process that hangs must not keep the others from writing
    "idle_session_timeout": "0",  # locks and notifications end with their connections, which are quiet for long
}
# What is acknowledged must be on a disk, also where the server is set up otherwise; stricter settings stay.
DURABLE = """
SELECT set_config('synchronous_commit', 'local', false) WHERE current_setting('synchronous_commit') = 'off'
"""
BUMP = "WITH bumped AS (UPDATE activity SET version = version + 1) SELECT pg_notify(%s, '')"

Row = tuple[Any, ...]
Work = Callable[[Cursor[Row]], "T"]
T = TypeVar("T")

# The pool logs each of its attempts to connect; what is wrong is in our own errors.
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


class Unchanged(Exception):
    """Raised inside a transaction that has nothing to write: it is rolled back without a notification."""


class Database:
    """Runs queries and transactions in one schema; several threads may call it."""

    def __init__(self, address: Address, *, read_only: bool = False, durable: bool = False) -> None:
        self.address = address
        self.channel = f"bedstone_{address.schema}"[:63]
        self._read_only = read_only
        self._durable = durable
        self._state = threading.Lock()
        self._retry_at = 0.0
        self._reason: str | None = None  # why the server does not answer
        self._pool: ConnectionPool[Connection[Row]] = ConnectionPool(
            address.conninfo,
            kwargs={"autocommit": True},
            configure=self._configure,
            min_size=1,
            max_size=MAX_CONNECTIONS,
            timeout=WAIT_SECONDS,
            max_idle=IDLE_SECONDS,
            reconnect_timeout=RECONNECT_SECONDS,
            num_workers=2,
            name=f"bedstone-{address.schema}",
            open=False,
        )

    def open(self) -> None:
        """Start the pool."""
        self._pool.open()

    def close(self) -> None:
        """Close all connections; queries that run meanwhile fail."""
        self._pool.close(CLOSE_SECONDS)

    def connect(self) -> Connection[Row]:
        """Return a connection of its own, outside the pool."""
        with translate_errors(self.address.place):
            connection = psycopg.connect(self.address.conninfo, autocommit=True)
            try:
                self._configure(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def read(self, query: str, *values: Any) -> list[Row]:
        """Return all rows of a query; after a lost connection it runs again on a new one."""

        def fetch(cursor: Cursor[Row]) -> list[Row]:
            return cursor.execute(query.encode(), values or None).fetchall()

        for is_last in (False, True):
            try:
                with self._cursor() as cursor:
                    return fetch(cursor)
            except _ConnectionLost as error:
                if is_last:
                    raise error.reason from error
                self._discard_broken()
        raise AssertionError("unreachable")

    def write(self, work: "Work[T]") -> T | None:
        """Run a transaction, completely or not at all; None if it has nothing to write.

        It runs again if nothing of it can have been saved: after a deadlock, and if the connection was lost before
        the transaction was to be committed.
        """
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return self._write_once(work)
            except _ConnectionLost as error:
                if error.is_unsure or attempt > 1:
                    raise error.reason from error
                self._discard_broken()
            except StoreUnavailable as error:
                if not isinstance(error.__cause__, REPEATABLE) or attempt == MAX_ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def _write_once(self, work: "Work[T]") -> T | None:
        is_committing = False
        try:
            with self._cursor() as cursor:
                cursor.execute("BEGIN")
                try:
                    result = work(cursor)
                    cursor.execute(BUMP, [self.channel])
                    is_committing = True
                    cursor.execute("COMMIT")
                except BaseException:
                    roll_back(cursor.connection)
                    raise
        except Unchanged:
            return None
        except _ConnectionLost as error:
            error.is_unsure = is_committing
            if is_committing:
                error.reason = unavailable(
                    self.address.place, "the connection was lost while a change was being saved; it may be saved or not"
                )
            raise
        return result

    @contextmanager
    def _cursor(self) -> Iterator[Cursor[Row]]:
        """Lend a connection; errors of the database become ours."""
        connection = self._lend()
        try:
            with translate_errors(self.address.place), connection.cursor() as cursor:
                yield cursor
        except StoreUnavailable as error:
            if connection.closed:
                raise _ConnectionLost(error) from error
            raise
        finally:
            self._pool.putconn(connection)

    def _lend(self) -> Connection[Row]:
        if self._pool.closed:
            raise StoreUnavailable(CLOSED)
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            self._check_reachable()
            try:
                return self._pool.getconn(RETRY_SECONDS)  # a pool that could not connect tries again when it is asked
            except PoolTimeout as error:
                self._probe_if_due()
                if time.monotonic() >= deadline:
                    reason = f"all {MAX_CONNECTIONS} connections of this process are in use"
                    raise unavailable(self.address.place, reason) from error
            except psycopg.Error as error:
                raise unavailable(self.address.place, error) from error

    def _check_reachable(self) -> None:
        """While the server does not answer, fail at once; one caller a second finds out whether it is back."""
        with self._state:
            if self._reason is None:
                return
            if time.monotonic() < self._retry_at:
                raise StoreUnavailable(self._reason)
        self._probe_if_due()

    def _probe_if_due(self) -> None:
        """Find out whether the server answers, unless another call did so a moment ago."""
        with self._state:
            if time.monotonic() < self._retry_at:
                return
            self._retry_at = time.monotonic() + RETRY_SECONDS
        self._probe()

    def _probe(self) -> None:
        """Connect outside the pool; its own attempts do not say why they fail."""
        try:
            self.connect().close()
        except StoreUnavailable as error:
            with self._state:
                self._reason, self._retry_at = error.message, time.monotonic() + RETRY_SECONDS
            raise
        with self._state:
            self._reason = None

    def _discard_broken(self) -> None:
        """Replace idle connections that broke as well; raise an error if the server does not answer at all."""
        self._probe()
        with suppress(psycopg.Error):
            self._pool.check()

    def _configure(self, connection: Connection[Row]) -> None:
        """Prepare a new connection: our schema, our limits, our texts."""
        register(connection)
        values = {"search_path": f'"{self.address.schema}"'} | SESSION
        if self._read_only:
            values["default_transaction_read_only"] = "on"
        calls = ", ".join(["set_config(%s, %s, false)"] * len(values))
        connection.execute(f"SELECT {calls}".encode(), [part for pair in values.items() for part in pair])
        if self._durable:
            connection.execute(DURABLE)


class _ConnectionLost(Exception):
    """The connection of a query broke; `is_unsure` if that was while a transaction was being committed."""

    def __init__(self, reason: StoreUnavailable) -> None:
        super().__init__(reason.message)
        self.reason = reason
        self.is_unsure = False


def roll_back(connection: Connection[Any]) -> None:
    """End a transaction; PostgreSQL has done so itself if the connection is gone."""
    if not connection.closed and connection.info.transaction_status != pq.TransactionStatus.IDLE:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")


def to_integers(numbers: Sequence[Any]) -> list[int]:
    """Return numbers as integers of Python; those of numpy are of another type."""
    return [int(number) for number in numbers]
