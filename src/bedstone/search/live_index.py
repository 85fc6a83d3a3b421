"""The indexes of a store that changes: written by the process that owns them, read by the others."""

import logging
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.errors import BedstoneError
from bedstone.search.indexes.hybrid import HybridIndex
from bedstone.search.indexes.keyword import OutdatedIndex, WordIndex
from bedstone.search.retriever import SearchEngine
from bedstone.store.engine import Store

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder
    from bedstone.search.indexes.vector import VectorIndex

logger = logging.getLogger(__name__)

MODEL = "embedding_fingerprint"
RETRY_SECONDS = 30.0


class LiveIndex:
    """Opened when it is first asked, and again when this process becomes the owner."""

    def __init__(self, store: Store, folder: Path, make_embedder: "Callable[[], Embedder | None]") -> None:
        self._store = store
        self._folder = folder
        self._make_embedder = make_embedder
        self._lock = threading.RLock()
        self._embedder: Embedder | None = None
        self._has_embedder = False
        self._words: WordIndex | None = None
        self._vectors: VectorIndex | None = None
        self._engine: SearchEngine | None = None
        self._is_owner = False
        self._problem: str | None = None
        self._tried = -RETRY_SECONDS
        self.forgot_vectors = False

    @property
    def embedder(self) -> "Embedder | None":
        """The model, loaded when it is first needed; one that cannot be had is asked for again after a while."""
        if self._has_embedder:  # nobody waits for an index that is catching up
            return self._embedder
        with self._lock:
            if not self._has_embedder and time.monotonic() - self._tried > RETRY_SECONDS:
                self._tried = time.monotonic()
                try:
                    made = self._make_embedder()
                    if made is not None:
                        assert made.fingerprint
                        assert made.dimensions
                except BedstoneError as error:
                    if self._problem is None:
                        logger.warning("Search goes by words: %s", error.message, extra={"action": "degraded"})
                    self._problem = error.message
                else:
                    self._embedder, self._has_embedder, self._problem = made, True, None
                    self._engine = None  # it may have been opened without
            return self._embedder

    def model_problem(self) -> str | None:
        """Why the model does not answer right now, if it does not."""
        embedder = self.embedder
        if embedder is None:
            return self._problem
        try:
            embedder.embed_query("probe")
        except BedstoneError as error:
            return error.message
        return None

    def own(self) -> None:
        """This process writes from now on."""
        with self._lock:
            self._close()
            self._is_owner = True

    def opened(self) -> SearchEngine:
        """What to search with, up to date as far as this process can bring it."""
        with self._lock:
            self.embedder  # noqa: B018 - one that failed may be there now
            if self._engine is None:
                self._close()
                self._engine = self._open()
            try:
                self._engine.index.catch_up()
            except ValueError as error:  # of tantivy: files that do not fit each other; all of it can be made again
                logger.warning("Making the word index again: %s", error, extra={"action": "index_rebuilt"})
                self._close()
                if self._is_owner:
                    shutil.rmtree(self._folder / "words", ignore_errors=True)
                self._engine = self._open(in_memory=not self._is_owner)
                self._engine.index.catch_up()
            return self._engine

    def frequency(self, term: str) -> int:
        """How many chunks have a term."""
        return self._words.frequency(term) if self._words is not None else 0

    def follow(self) -> None:
        """Apply what other processes did, if this one writes and anything is open or lacking."""
        last = self._store.last_change()
        with self._lock:
            is_behind = self._words is None or self._words.applied[0] != last.seq if last else False
            if self._is_owner and is_behind:
                self.opened()

    def close(self) -> None:
        """Let go of files, with everything kept."""
        with self._lock:
            self._close()

    def check_model(self) -> None:
        """Vectors of another model are of no use: the owner forgets them."""
        embedder = self.embedder
        if embedder is not None and self._store.get_value(MODEL) != embedder.fingerprint:
            self._store.delete_passages()
            self._store.set_value(MODEL, embedder.fingerprint)
            self.forgot_vectors = True

    def _open(self, *, in_memory: bool = False) -> SearchEngine:
        embedder = self.embedder
        if embedder is not None and self._is_owner:
            self.check_model()
        elif embedder is not None and self._store.get_value(MODEL) not in (None, embedder.fingerprint):
            logger.warning("The vectors are of another model; search goes by words", extra={"action": "other_model"})
            embedder = None
        self._words = WordIndex() if in_memory else self._open_words()
        if embedder is not None:
            from bedstone.search.indexes.vector import VectorIndex  # noqa: PLC0415 - loads numpy

            file = self._folder / "vectors.usearch"
            self._vectors = VectorIndex(
                self._store, embedder.dimensions, embedder.reach, file, read_only=not self._is_owner
            )
        return SearchEngine(HybridIndex(self._store, self._words, self._vectors), embedder)

    def _open_words(self) -> WordIndex:
        folder = self._folder / "words"
        if self._is_owner:
            return WordIndex(folder)
        with suppress(OSError, ValueError, OutdatedIndex):
            return WordIndex(folder, read_only=True)
        # The owner has not made one that fits yet: an index in memory does meanwhile.
        return WordIndex()

    def _close(self) -> None:
        if self._vectors is not None and self._is_owner:
            self._vectors.save()
        if self._words is not None:
            self._words.finish()
            self._words.close()
        self._words = self._vectors = self._engine = None
