"""A knowledge base that several processes with folders of their own share: who works, who changes, who indexes."""

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from bedstone.errors import BedstoneError
from bedstone.search.live_index import LiveIndex
from bedstone.services.peers import has_workers, list_peers
from bedstone.store.engine import Store, StoreUnavailable
from bedstone.store.locks import FileLock, Lock

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.002
MAX_PAUSE_SECONDS = 0.05
PATIENCE_SECONDS = 60.0
FOLLOW_SECONDS = 0.5


class WorkerSeat:
    """The lock of a process that runs tasks beside others. A command takes it only while no server runs tasks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock: Lock = store.lock(f"worker-{uuid4().hex}")
        self.is_server = False

    @property
    def is_held(self) -> bool:
        """Return whether this process runs tasks."""
        return self._lock.is_held

    def acquire(self) -> bool:
        """Run tasks from now on, unless this is a command and others run them."""
        notes = self._store.notes
        if not self._lock.is_held and not self.is_server and notes is not None and has_workers(notes):
            return False
        return self._lock.acquire()

    def release(self) -> None:
        """Run no more tasks."""
        self._lock.release()


class ChangeLock:
    """Held by every part that reads a document to write it again; by one process at a time if several share the store.

    A thread that holds it may take it again.
    """

    def __init__(self, store: Store) -> None:
        self._threads = threading.RLock()
        self._depth = 0
        self._lock = store.lock("documents") if store.notes is not None else None

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            if self._depth == 0 and self._lock is not None:
                _wait_for(self._lock)
            self._depth += 1
        except BaseException:
            self._threads.release()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self._depth -= 1
            if self._depth == 0 and self._lock is not None:
                self._lock.release()
        finally:
            self._threads.release()


def _wait_for(lock: Lock) -> None:
    deadline, pause = time.monotonic() + PATIENCE_SECONDS, FIRST_PAUSE_SECONDS
    while not lock.acquire():
        if time.monotonic() >= deadline:
            raise StoreUnavailable("Another server has been changing documents for a minute. Try again.")
        time.sleep(pause)
        pause = min(2 * pause, MAX_PAUSE_SECONDS)


@contextmanager
def holding(lock: Lock | None) -> Iterator[bool]:
    """Hold a lock unless another process does; yield whether it is held. Without a lock it always is."""
    if lock is None:
        yield True
        return
    is_held = lock.acquire()
    try:
        yield is_held
    finally:
        if is_held:
            lock.release()


class IndexFollower:
    """Keeps the index that this process searches up to date with a store that others write.

    One process writes an index. Others with the same folder or cluster read it, and write it when the first has ended.
    """

    def __init__(
        self, store: Store, index: LiveIndex, folder: Path, *, owns_vectors: bool, is_shared: bool = False
    ) -> None:
        """Follow a store; an index that `is_shared` is in no folder, and machines take turns to write it."""
        self._store = store
        self._index = index
        self._lock: Lock = store.lock("index-writer") if is_shared else FileLock(folder / ".index-writer")
        self._owns_vectors = owns_vectors
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="index-follower", daemon=True)
        self._reported: str | None = None

    def start(self) -> None:
        """Follow every change, in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following, before the index is closed."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def release(self) -> None:
        """Let another process write the index, after it is closed."""
        self._lock.release()

    def take_index(self) -> None:
        """Write the index from now on, if no other process does; a folder that cannot be written is only read.

        The lock of a database ends with the connection to it. If another process has it then, this one only reads.
        """
        if self._lock.is_held:
            return
        try:
            is_mine = self._lock.acquire()
        except OSError:
            is_mine = False
        if is_mine:
            self._index.become_writer(owns_vectors=self._owns_vectors)
        else:
            self._index.become_reader()

    def _run(self) -> None:
        version: int | None = None
        while not self._stop.is_set():
            try:
                self.take_index()
                version = self._follow(version)
                self._reported = None
            except BedstoneError as error:  # searches say the same
                self._report(error.message)
                self._stop.wait(FOLLOW_SECONDS)
            except Exception:
                logger.exception("Cannot bring the index up to date", extra={"action": "index_not_updated"})
                self._stop.wait(FOLLOW_SECONDS)

    def _follow(self, known: int | None) -> int:
        """Apply what has changed since a version of the store; wait if nothing has."""
        if known is not None:
            self._store.wait_for_change(known, FOLLOW_SECONDS)
        version = self._store.version()
        if version != known and not self._stop.is_set():
            self._index.refresh()
        return version

    def _report(self, message: str) -> None:
        if message != self._reported:
            logger.warning("The index waits: %s", message, extra={"action": "index_waits"})
        self._reported = message


def is_alone(store: Store) -> bool:
    """Return whether no other server uses the store: what has no document may be what another one is adding."""
    own = (socket.gethostname(), os.getpid())
    return store.notes is None or all((peer.host, peer.process) == own for peer in list_peers(store.notes))
