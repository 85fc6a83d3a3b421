"""Keeps a docs index in step with its documents, in a thread of its own."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bedstone.errors import BedstoneError, Unavailable
from bedstone.services.docs.builder import BuildReport
from bedstone.services.docs.index_folder import IndexFolder

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.05
FIRST_LOOK_MILLISECONDS = 500
DEBOUNCE_MILLISECONDS = 400  # an editor writes a file in several steps


class DocsKeeper:
    """Builds once, and with `watch` again whenever a document changes."""

    def __init__(self, docs: Path, index: Path, build: Callable[[], BuildReport], *, watch: bool) -> None:
        self._docs = docs
        self._index = index
        self._build = build
        self._watch = watch
        self._stop = threading.Event()
        self._failure: BedstoneError | None = None
        self._thread = threading.Thread(target=self.run, name=f"docs-{index.name}", daemon=True)

    def start(self) -> None:
        """Begin; comes back as soon as there is an index to serve, be it the one of the last time."""
        self._thread.start()
        while IndexFolder(self._index).metadata is None:
            if not self._thread.is_alive():
                raise self._failure or BedstoneError(f"The documents in {self._docs} could not be indexed.")
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """End soon; what was begun is picked up the next time."""
        self._stop.set()

    def run(self) -> None:
        """Build, and with `watch` go on until stopped."""
        if not self._watch:
            self._failure = self._update()
            return
        from watchfiles import DefaultFilter, watch  # noqa: PLC0415 - only who watches needs it

        # The watcher comes first and reports at once, so that nothing that happens during the first build is missed.
        changes = watch(
            self._docs,
            watch_filter=DefaultFilter(ignore_paths=[self._index.resolve()]),
            stop_event=self._stop,
            debounce=DEBOUNCE_MILLISECONDS,
            rust_timeout=FIRST_LOOK_MILLISECONDS,
            yield_on_timeout=True,
            raise_interrupt=False,
        )
        self._failure = None
        for number, found in enumerate(changes):
            # Also when another build was in the way.
            if number == 0 or found or isinstance(self._failure, Unavailable):
                self._failure = self._update()

    def _update(self) -> BedstoneError | None:
        try:
            report = self._build()
        except BedstoneError as error:
            logger.warning("Cannot index %s: %s", self._docs, error.message, extra={"action": "docs_failed"})
            return error
        except Exception:
            # Watching goes on: the next change may mend it.
            logger.exception("Cannot index %s", self._docs, extra={"action": "docs_failed"})
            return BedstoneError(f"The documents in {self._docs} could not be indexed; the log says why.")
        for warning in report.warnings:
            logger.warning("%s", warning, extra={"action": "docs_warning"})
        logger.info(
            "Indexed %s: %d files, %d read anew, %d removed",
            self._docs,
            report.files,
            report.changed,
            report.removed,
            extra={"action": "docs_indexed"},
        )
        return None
