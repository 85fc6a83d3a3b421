"""The index of a store that changes: one process writes it, the others read it."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.search.embedding import QueryEmbedder
from bedstone.search.indexes import EMBEDDED
from bedstone.search.indexes.opening import open_shared_index
from bedstone.search.retriever import Profile, Retriever
from bedstone.store.engine import Store

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder

logger = logging.getLogger(__name__)

MODEL = "embedding_fingerprint"


class LiveIndex:
    """Opens on first use, and again when this process becomes the writer or the embedder becomes available.

    `vectors_discarded` is set when the vectors of another model were deleted, so that new ones must be made.
    """

    def __init__(
        self,
        store: Store,
        folder: Path,
        get_embedder: "Callable[[], Embedder | None]",
        profile: Profile | None = None,
        kind: str = EMBEDDED,
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
        self.vectors_discarded = False

    @property
    def embedder(self) -> "Embedder | None":
        """The embedder, built on first use."""
        return self._embedding.embedder

    def model_problem(self) -> str | None:
        """Return why the embedder fails right now, if it does."""
        return self._embedding.check()

    def become_writer(self) -> None:
        """Write the index from now on."""
        with self._lock:
            self._close()
            self._is_writer = True

    def current(self) -> Retriever:
        """Return a retriever over every change that this process can see."""
        with self._lock:
            if self._retriever is not None and self._opened_with is not self.embedder:
                self._close()
            retriever = self._retriever or self._open()
            try:
                retriever.index.catch_up()
            except ValueError as error:  # of tantivy: the files do not fit together
                logger.warning("Rebuilding the keyword index: %s", error, extra={"action": "index_rebuilt"})
                self._close()
                retriever = self._open(is_corrupt=True)
                retriever.index.catch_up()
            return retriever

    def refresh(self) -> int:
        """Apply all changes, if this process is the writer; return the sequence number of the last searchable one."""
        last = self._store.last_change()
        with self._lock:
            applied = self._retriever.index.applied_seq if self._retriever is not None else 0
            if self._is_writer and last is not None and applied != last.seq:
                applied = self.current().index.applied_seq
            return applied

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

    def _open(self, *, is_corrupt: bool = False) -> Retriever:
        embedder = self._opened_with = self.embedder
        if embedder is not None and self._is_writer:
            self.ensure_model()
        elif embedder is not None and self._store.get_value(MODEL) not in (None, embedder.fingerprint):
            logger.warning("Using keyword search: the vectors are another model's", extra={"action": "other_model"})
            embedder = None
        index = open_shared_index(
            self._store, self._folder, embedder, is_writer=self._is_writer, is_corrupt=is_corrupt, kind=self._kind
        )
        self._retriever = Retriever(self._store, index, self._embedding, self._profile)
        return self._retriever

    def _close(self) -> None:
        if self._retriever is not None:
            self._retriever.index.close()
        self._retriever = None
