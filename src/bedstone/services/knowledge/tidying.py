"""Tidy up a place for files that several machines use: once a day one of them looks for what nothing needs."""

import logging
import threading
import time
from collections.abc import Callable

from bedstone.errors import BedstoneError, explain
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.rebuilding import known_folders, write_missing_sidecars
from bedstone.store.engine import Store

logger = logging.getLogger(__name__)

TIDIED = "blobs_tidied"  # the store's value for the time of the last complete look
INTERVAL_SECONDS = 24 * 3600.0
RETRY_SECONDS = 600.0


class Tidying:
    """A thread that deletes orphans of a shared place by their age, and reports how many."""

    def __init__(
        self,
        store: Store,
        storage: FileStorage,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._storage = storage
        self._clock = clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="knowledge-tidying", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current look."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10)

    def _run(self) -> None:
        while True:
            try:
                self.tidy_if_due()
            except (BedstoneError, OSError) as error:
                logger.warning(
                    "Cannot tidy up %s: %s", self._storage.place, explain(error), extra={"action": "not_tidied"}
                )
            if self._stop.wait(RETRY_SECONDS):
                return

    def tidy_if_due(self) -> int | None:
        """Look through the place unless that was done within a day, or is being done; return what was moved aside."""
        last = self._store.get_value(TIDIED)
        if last is not None and self._clock() - float(last) < INTERVAL_SECONDS:
            return None
        lock = self._store.lock("tidying")
        if not lock.acquire():
            return None
        try:
            write_missing_sidecars(self._store, self._storage)
            moved = self._storage.quarantine_orphans(lambda: known_folders(self._store))
            self._store.set_value(TIDIED, str(self._clock()))
        finally:
            lock.release()
        return moved
