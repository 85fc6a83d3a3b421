"""Vectors for completed documents that have none: added without a model, or embedded with another one."""

import logging
import threading
from collections.abc import Iterator

from bedstone.records import Document
from bedstone.search.live_index import LiveIndex
from bedstone.services.knowledge.records import FileDocument
from bedstone.services.knowledge.sharing import holding
from bedstone.store.engine import Store, StoreUnavailable

logger = logging.getLogger(__name__)

CHECK_SECONDS = 2.0
CHUNKS_AT_ONCE = 1_000


class Backfill:
    """A thread that embeds what has no vectors."""

    def __init__(self, store: Store, index: LiveIndex, throttle: threading.Semaphore) -> None:
        self._store = store
        self._lock = store.lock("vectors") if store.notes is not None else None  # one process embeds what is left over
        self._index = index
        self._throttle = throttle
        self._requested = threading.Event()
        self._requested.set()  # check once at the start
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._reported: str | None = None  # why the store did not answer, as it was logged

    @property
    def is_working(self) -> bool:
        """Whether this process does it for all."""
        return self._lock is not None and self._lock.is_held

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="knowledge-vectors", daemon=True)
        self._thread.start()

    def request(self) -> None:
        """Check again: a document may have no vectors."""
        self._requested.set()

    def stop(self) -> None:
        """Stop after the current batch."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.wait(CHECK_SECONDS):
            if not self._requested.is_set() and not self._index.vectors_discarded:
                continue
            self._requested.clear()
            try:
                with holding(self._lock) as is_mine:
                    if is_mine:
                        self._embed_all()
                    else:
                        self._requested.set()  # look again when the other process is done
                self._reported = None
            except StoreUnavailable as error:
                self._report(error.message)
                self._requested.set()
            except Exception:  # the model may answer at the next check
                logger.exception("Cannot embed documents", extra={"action": "vectors_failed"})
                self._requested.set()

    def _report(self, message: str) -> None:
        """Log once that the store does not answer, not at each check."""
        if message != self._reported:
            logger.warning("Missing vectors wait: %s", message, extra={"action": "vectors_wait"})
        self._reported = message

    def _embed_all(self) -> None:
        self._index.vectors_discarded = False
        if not self._store.chunks_without_vectors(limit=1):  # then the model need not be loaded
            return
        embedder = self._index.embedder
        if embedder is None:
            if self._index.model_problem() is not None:  # otherwise none is configured
                self._requested.set()
            return
        from bedstone.search.indexer import embed_missing  # noqa: PLC0415 - loads numpy

        self._index.ensure_model()
        self._index.vectors_discarded = False
        for document in self._documents_without_vectors():
            embed_missing(
                self._store,
                embedder,
                document_id=document.id,
                title=document.title,
                should_stop=self._stop.is_set,
                workers=1,
                throttle=self._throttle,
            )

    def _documents_without_vectors(self) -> Iterator[Document]:
        """Iterate over completed documents; the others get their vectors from their tasks."""
        after = 0
        while not self._stop.is_set() and (
            chunks := self._store.chunks_without_vectors(after=after, limit=CHUNKS_AT_ONCE)
        ):
            after = chunks[-1].head.rowid
            for document_id in dict.fromkeys(stored.head.document_id for stored in chunks):
                document = self._store.document(document_id)
                if document is not None and FileDocument.from_stored(document).status == "completed":
                    yield document
