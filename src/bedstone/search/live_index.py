"""The index of a store that changes: one process writes it, the others read it, and a damaged one is rebuilt."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bedstone.search.embedding import QueryEmbedder
from bedstone.search.filters import Filter
from bedstone.search.hits import SearchRequest, SearchResponse
from bedstone.search.index import IndexDamaged, IndexUnwritable, SearchIndex
from bedstone.search.indexes import EMBEDDED
from bedstone.search.indexes.damage import LIBRARY_ERRORS
from bedstone.search.indexes.opening import IndexKind, open_fresh_index, open_shared_index
from bedstone.search.retriever import Profile, Retriever
from bedstone.store.engine import Store

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
MODEL = "embedding_fingerprint"
PATIENCE_SECONDS = 1.0  # that a search waits for a rebuild or a large change; then it answers from what is there
RETRY_SECONDS = 30.0  # before an index that another process rebuilds, or that is damaged repeatedly, is opened again
WRITE_SECONDS = 2.0  # before what could not be written is tried again
MAX_REBUILDS = 5  # in the folder, by one process: what is damaged repeatedly is not repaired by another one


class LiveIndex:
    """Opens on first use, and again when this process becomes the writer or the embedder becomes available.

    `vectors_discarded` is set when the vectors of another model were deleted, so that new ones must be made. An index
    whose files are damaged is set aside by the writer and rebuilt in the background; searches use what is there.
    """

    def __init__(
        self,
        store: Store,
        folder: Path,
        get_embedder: "Callable[[], Embedder | None]",
        profile: Profile | None = None,
        kind: IndexKind = EMBEDDED,
    ) -> None:
        self._store = store
        self._folder = folder
        self._kind = kind
        self._embedding = QueryEmbedder(get_embedder)
        self._profile = profile
        self._lock = threading.RLock()
        self._retriever: Retriever | None = None
        self._opened_with: Embedder | None = None
        self._is_writer = False
        self._owns_vectors = False
        self._caught_up_to: int | None = None  # the last change when all were applied, since the index was opened
        self._catching: threading.Thread | None = None
        self._starting = threading.Lock()
        self._rebuild: threading.Thread | None = None
        self._rebuilds = 0
        self._reason: str | None = None  # why the index in the folder is not used
        self._retry_at = 0.0
        self._unwritten: str | None = None  # why changes are not in the index yet
        self._write_at = 0.0
        self.vectors_discarded = False

    @property
    def embedder(self) -> "Embedder | None":
        """The embedder, built on first use."""
        return self._embedding.embedder

    def model_problem(self) -> str | None:
        """Return why the embedder fails right now, if it does."""
        return self._embedding.check()

    def problem(self) -> str | None:
        """Return what is wrong with the index right now: it is being rebuilt, or its folder cannot be used."""
        # Without the lock: every search asks, also while a large document is indexed.
        retriever, is_rebuilding, reason = self._retriever, self._rebuild is not None, self._reason
        if is_rebuilding and retriever is not None:
            done, total = retriever.index.chunk_count, self._store.counts().chunks
            return f"The keyword index was damaged and is being rebuilt: {min(done, total):,} of {total:,} chunks"
        if self._unwritten is not None:
            return f"The latest changes cannot be written to the index and are tried again: {self._unwritten}"
        if reason is not None:
            return f"The keyword index in {self._folder} cannot be used, searches use a copy in memory: {reason}"
        return retriever.index.problem() if retriever is not None else None

    def language_notice(self, query: str) -> str | None:
        """Return why semantic search does not take part in a query; asked without the lock, like `problem`."""
        retriever = self._retriever
        return retriever.language_notice(query) if retriever is not None else None

    @property
    def is_writer(self) -> bool:
        """Whether this process writes the index."""
        return self._is_writer

    def become_writer(self, *, owns_vectors: bool = True) -> None:
        """Write the index from now on; the vectors of another model are deleted by a process that makes new ones."""
        with self._lock:
            self._close()
            self._is_writer, self._owns_vectors = True, owns_vectors

    def become_reader(self) -> None:
        """Leave writing to another process from now on."""
        with self._lock:
            if self._is_writer:
                self._close()
                self._is_writer = self._owns_vectors = False
                self._unwritten, self._write_at = None, 0.0

    def search(self, request: SearchRequest) -> SearchResponse:
        """Search every change that this process can see; from what is there while the index is rebuilt."""
        return self._answer(lambda retriever: retriever.search(request))

    def count_facets(self, query: str | None, filter: Filter | None) -> Mapping[str, Mapping[str, int]]:
        """Count the chunks with each value of each facet, among those with a term of the query."""
        return self._answer(lambda retriever: retriever.count_facets(query, filter))

    def _answer(self, ask: Callable[[Retriever], Answer]) -> Answer:
        retriever = self.current()
        try:
            return ask(retriever)
        except IndexDamaged as error:
            self._replace(retriever, error)
        except LIBRARY_ERRORS:
            if self._retriever is retriever:
                raise  # otherwise its damaged files were replaced meanwhile, and are whole again
        return ask(self.current())

    def current(self) -> Retriever:
        """Return a retriever over every change that this process can see, or over a part while it is rebuilt."""
        if self._is_behind():
            self._catch_up_soon()
        if not self._lock.acquire(timeout=PATIENCE_SECONDS):
            if self._caught_up_to is not None and (retriever := self._retriever) is not None:
                return retriever  # a large document is being indexed, which is not acknowledged before the end
            self._lock.acquire()
        try:
            if self._rebuild is None:
                self._catch_up()
            rebuild, retriever = self._rebuild, self._retriever
        finally:
            self._lock.release()
        if rebuild is not None:
            rebuild.join(PATIENCE_SECONDS)
        assert retriever is not None
        return retriever

    def _is_behind(self) -> bool:
        """Return whether there are changes since this process last applied all of them."""
        if not self._is_writer or self._caught_up_to is None:
            return False
        last = self._store.last_change()
        return last is not None and last.seq != self._caught_up_to

    def _catch_up_soon(self) -> None:
        """Apply the changes in a thread, and wait a moment for it: a large document takes longer than a search may."""
        with self._starting:
            if self._catching is None or not self._catching.is_alive():
                self._catching = threading.Thread(target=self._catch_up_open, name="index-changes", daemon=True)
                self._catching.start()
            catching = self._catching
        catching.join(PATIENCE_SECONDS)

    def _catch_up_open(self) -> None:
        try:
            with self._lock:
                if self._rebuild is None and self._retriever is not None:
                    self._catch_up()
        except Exception as error:  # noqa: BLE001 - the search that waits for it gets the same error
            logger.debug("Cannot apply changes to the index: %s", error)

    def refresh(self) -> int:
        """Apply all changes, if this process is the writer; return the sequence number of the last searchable one."""
        last = self._store.last_change()
        with self._lock:
            if self._rebuild is None and self._is_writer and last is not None and self.applied_seq != last.seq:
                self._catch_up()
            return self.applied_seq

    def measure(self) -> int | None:
        """Return the number of the last searchable change; None if this process neither writes nor searches.

        A process that only reads learns at each search what the writer has done; the last search may be long ago.
        """
        if not self._is_writer:
            if self._retriever is None:
                return None
            if self._lock.acquire(blocking=False):
                try:
                    if self._rebuild is None:
                        self._catch_up()
                finally:
                    self._lock.release()
        return self.applied_seq

    @property
    def applied_seq(self) -> int:
        """The sequence number of the last change in the index; 0 for one that is not open or damaged."""
        try:
            return self._retriever.index.applied_seq if self._retriever is not None else 0
        except IndexDamaged:  # the next search, or the next change, replaces it
            return 0

    def finish(self) -> None:
        """Wait until a damaged index is rebuilt: this process ends, and no other one would."""
        if (rebuild := self._rebuild) is not None:
            rebuild.join()

    def close(self) -> None:
        """Save the index and release its files."""
        with self._lock:
            self._close()

    def ensure_model(self) -> None:
        """Delete the vectors of another model; for the writer only."""
        embedder = self.embedder
        if embedder is not None and self._store.get_value(MODEL) != embedder.fingerprint:
            self._store.delete_passages()
            self._store.set_value(MODEL, embedder.fingerprint)
            self.vectors_discarded = True

    def _catch_up(self) -> None:
        """Open the index if necessary and apply the changes; begin a rebuild if it is damaged."""
        if self._retriever is not None and self._opened_with is not self.embedder:
            self._close()
        try:
            if self._retriever is None:
                self._open()
            elif self._reason is not None and time.monotonic() > self._retry_at:
                self._open_again()
            assert self._retriever is not None
            if self._rebuild is None and time.monotonic() > self._write_at:
                self._retriever.index.catch_up()
                self._unwritten, self._caught_up_to = None, self._retriever.index.applied_seq
        except IndexDamaged as error:
            self._begin_rebuild(error)
        except IndexUnwritable as error:
            self._delay_writing(error)

    def _delay_writing(self, error: IndexUnwritable) -> None:
        """Answer from what is there, and try again after a while."""
        if self._unwritten is None:
            logger.error("Cannot write the index: %s", error.message, extra={"action": "index_unwritable"})
        self._unwritten, self._write_at = error.message, time.monotonic() + WRITE_SECONDS

    def _usable_embedder(self) -> "Embedder | None":
        embedder = self._opened_with = self.embedder
        if embedder is not None and self._owns_vectors:
            self.ensure_model()
        elif embedder is not None and self._store.get_value(MODEL) not in (None, embedder.fingerprint):
            logger.warning("Using keyword search: the vectors are another model's", extra={"action": "other_model"})
            return None
        return embedder

    def _open(self) -> None:
        embedder = self._usable_embedder()
        index = open_shared_index(self._store, self._folder, embedder, is_writer=self._is_writer, kind=self._kind)
        self._reason = None
        self._use(index)
        threading.Thread(target=self._verify, args=(self._retriever,), name="index-check", daemon=True).start()

    def _use(self, index: SearchIndex) -> None:
        self._caught_up_to = None
        self._retriever = Retriever(self._store, index, self._embedding, self._profile)

    def _verify(self, retriever: Retriever) -> None:
        """Read all files of an index that was just opened; some damage is not seen by any search."""
        try:
            retriever.index.verify()
        except IndexDamaged as error:
            self._replace(retriever, error)
        except Exception as error:  # noqa: BLE001 - the store was closed, or fails: the next search says so
            logger.debug("Cannot check the index: %s", error)

    def _replace(self, retriever: Retriever, error: IndexDamaged) -> None:
        with self._lock:
            if self._retriever is retriever and self._rebuild is None:
                self._begin_rebuild(error)

    def _begin_rebuild(self, error: IndexDamaged) -> None:
        """Put an empty index in the place of a damaged one, and fill it in the background."""
        logger.error("Rebuilding the keyword index: %s", error.message, extra={"action": "index_rebuilt"})
        self._rebuilds += self._is_writer
        self._release()
        index, reason = self._open_fresh()
        self._reason = reason or (None if self._is_writer else f"{error.message}; the writing process rebuilds it")
        self._fill_in_background(index)

    def _open_fresh(self) -> tuple[SearchIndex, str | None]:
        is_useless = self._rebuilds > MAX_REBUILDS
        self._retry_at = time.monotonic() + (WRITE_SECONDS if self._is_writer and not is_useless else RETRY_SECONDS)
        index, reason = open_fresh_index(
            self._store,
            self._folder,
            self._usable_embedder(),
            is_writer=self._is_writer and not is_useless,
            kind=self._kind,
        )
        return index, "its files were damaged again after each rebuild" if is_useless else reason

    def _open_again(self) -> None:
        """Use the index in the folder again, if that is possible now; otherwise keep the copy in memory."""
        if self._is_writer:
            index, reason = self._open_fresh()
            if reason is None:
                self._release()
                self._reason = None
                self._fill_in_background(index)
            return
        self._retry_at = time.monotonic() + RETRY_SECONDS
        copy = self._retriever
        try:
            self._open()
        except IndexDamaged:
            self._retriever = copy

    def _fill_in_background(self, index: SearchIndex) -> None:
        self._use(index)
        self._rebuild = threading.Thread(target=self._fill, args=(self._retriever,), name="index-rebuild", daemon=True)
        self._rebuild.start()

    def _fill(self, retriever: Retriever) -> None:
        try:
            retriever.index.catch_up(lambda _: self._check_used(retriever), in_batches=True)
            logger.info("Rebuilt the keyword index", extra={"action": "index_rebuilt"})
        except _Closed:
            return
        except Exception:
            logger.exception("Cannot rebuild the keyword index", extra={"action": "index_not_rebuilt"})
        with self._lock:
            if self._retriever is retriever:
                self._rebuild = None

    def _check_used(self, retriever: Retriever) -> None:
        if self._retriever is not retriever:
            raise _Closed

    def _close(self) -> None:
        self._release()
        self._rebuild = None

    def _release(self) -> None:
        retriever, self._retriever = self._retriever, None  # first: a rebuild ends then
        if retriever is not None:
            try:
                retriever.index.close()
            except (IndexDamaged, OSError, ValueError, RuntimeError) as error:  # what is not saved is made again
                logger.warning("Cannot save the index: %s", error, extra={"action": "index_not_saved"})


class _Closed(Exception):
    """The index is not used any more."""
