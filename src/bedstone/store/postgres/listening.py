"""Waits for what other processes write: PostgreSQL notifies one connection of each store."""

import selectors
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import Connection, sql

from bedstone.store.engine import StoreUnavailable

CHECK_SECONDS = 15.0  # between looks at whether a quiet connection is alive
POLL_SECONDS = 1.0  # a notification may be lost with its connection
RETRY_SECONDS = 1.0


class Listener:
    """A thread that listens, from the first wait on."""

    def __init__(self, connect: Callable[[], Connection[Any]], channel: str) -> None:
        self._connect = connect
        self._channel = channel
        self._woken = threading.Condition()
        self._count = 0
        self._thread: threading.Thread | None = None
        self._is_closed = threading.Event()
        self._bell: socket.socket | None = None  # ends the thread's wait when the other one, the rope, is closed
        self._rope: socket.socket | None = None

    def wait(self, has_changed: Callable[[], bool], seconds: float) -> bool:
        """Wait until something has changed, or the listener is closed; return whether it has."""
        self._start()
        deadline = time.monotonic() + seconds
        while not self._is_closed.is_set():
            with self._woken:
                count = self._count
            if has_changed():
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            with self._woken:
                if self._count == count:
                    self._woken.wait(min(left, POLL_SECONDS))
        return False

    def close(self) -> None:
        """End every wait, and the thread."""
        with self._woken:
            self._is_closed.set()
        self._wake()
        if self._thread is not None and self._rope is not None:
            self._rope.close()
            self._thread.join()

    def _start(self) -> None:
        with self._woken:
            if self._thread is None and not self._is_closed.is_set():
                self._bell, self._rope = socket.socketpair()
                self._thread = threading.Thread(target=self._run, name="store-changes", daemon=True)
                self._thread.start()

    def _wake(self) -> None:
        with self._woken:
            self._count += 1
            self._woken.notify_all()

    def _run(self) -> None:
        while not self._is_closed.is_set():
            try:
                with self._connect() as connection:
                    self._listen(connection)
            except (psycopg.Error, StoreUnavailable, OSError, ValueError):  # until then, those who wait poll
                self._is_closed.wait(RETRY_SECONDS)
        if self._bell is not None:
            self._bell.close()

    def _listen(self, connection: Connection[Any]) -> None:
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        self._wake()  # what was written before was not noticed
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            assert self._bell is not None
            selector.register(self._bell, selectors.EVENT_READ)
            while not self._is_closed.is_set():
                if not selector.select(CHECK_SECONDS):
                    connection.execute("SELECT 1")
                if list(connection.notifies(timeout=0)):
                    self._wake()
