"""One embedder per model for the whole process, and the embedding of queries with a fallback."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bedstone.errors import MissingExtra, Unavailable
from bedstone.search.embedders import EMBEDDERS

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder, Vectors
    from bedstone.settings import EmbeddingSettings

logger = logging.getLogger(__name__)

NONE = "none"
RETRY_SECONDS = 30.0


class EmbedderPool:
    """Hands out embedders with their cache; the same model is loaded once."""

    def __init__(self, settings: "EmbeddingSettings", cache_file: Path) -> None:
        self._settings = settings
        self._cache_file = cache_file
        self._lock = threading.Lock()
        self._embedders: dict[tuple[Any, ...], Embedder] = {}
        self._is_missing_reported = False
        if self._provider(None) != NONE:
            EMBEDDERS.check(self._provider(None))

    def get(self, origin: Mapping[str, Any] | None = None) -> "Embedder | None":
        """Return the configured embedder, or the one that made an index's vectors; None for keyword search alone.

        `origin` is what an index remembers of its embedder: its provider and model win over the settings.
        """
        provider = self._provider(origin)
        if provider == NONE:
            return None
        with self._lock:
            try:
                embedder = EMBEDDERS.load(provider).from_settings(self._settings, origin)
            except MissingExtra as error:
                if not self._is_missing_reported:
                    logger.warning("Using keyword search only: %s", error.message, extra={"action": "no_embedder"})
                self._is_missing_reported = True
                return None
            identity = (embedder.provider, embedder.name, *sorted(embedder.origin.items()))
            if identity not in self._embedders:
                from bedstone.search.embedding_cache import CachedEmbedder  # noqa: PLC0415 - loads numpy

                cached = CachedEmbedder(embedder, self._cache_file)
                self._embedders[identity] = cast("Embedder", cached)  # it delegates what it does not cache
            return self._embedders[identity]

    def _provider(self, origin: Mapping[str, Any] | None) -> str:
        configured = NONE if self._settings.model_name == NONE else self._settings.provider
        return str((origin or {}).get("provider", configured))


class QueryEmbedder:
    """Embeds queries, or returns None where keyword search has to do.

    The embedder is built on first use. After a failure it is left alone for a while, then tried again. With
    `fingerprint`, only the embedder that made an index's vectors is used.
    """

    def __init__(
        self,
        get_embedder: "Callable[[], Embedder | None]",
        *,
        fingerprint: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._get_embedder = get_embedder
        self._fingerprint = fingerprint
        self._clock = clock
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._is_built = False
        self._problem: str | None = None
        self._retry_at = float("-inf")

    @property
    def embedder(self) -> "Embedder | None":
        """The embedder, if there is one and it could be built."""
        if not self._is_built:
            with self._lock:
                if not self._is_built and self._clock() >= self._retry_at:
                    self._build()
        return self._embedder

    @property
    def languages(self) -> frozenset[str]:
        """The languages that the embedder was trained on."""
        return self._embedder.languages if self._embedder is not None else frozenset()

    @property
    def min_similarity(self) -> float:
        """The cosine below which nothing is related."""
        return self._embedder.min_similarity if self._embedder is not None else 0.0

    def embed(self, text: str) -> "Vectors | None":
        """Return the vector of a query; None without an embedder, or while it fails."""
        embedder = self.embedder
        if embedder is None or not embedder.is_semantic or self._clock() < self._retry_at:
            return None
        return self._try(embedder.embed_query, text)

    def check(self) -> str | None:
        """Return why semantic search does not work right now; asks the embedder, if there is one."""
        if embedder := self.embedder:
            self._try(getattr(embedder, "embed_uncached", embedder.embed_query), "probe")
        return self._problem

    def _build(self) -> None:
        try:
            embedder = self._get_embedder()
            # A service may have to be asked for these, and every use needs them.
            found = (embedder.fingerprint, embedder.dimensions) if embedder is not None else None
        except Exception as error:  # noqa: BLE001 - the same for a model that cannot be loaded
            self._fail(error)
            return
        if found and self._fingerprint not in (None, found[0]):
            self._fail(Unavailable("the index was built with another model. Rebuild the index"))
            embedder = None
        self._embedder, self._is_built = embedder, True
        if embedder is not None:
            self._recover()

    def _try(self, embed: "Callable[[str], Vectors]", text: str) -> "Vectors | None":
        try:
            vector = embed(text)
        except Exception as error:  # noqa: BLE001 - with any error of a model, keyword search still works
            self._fail(error)
            return None
        self._recover()
        return vector

    def _fail(self, error: Exception) -> None:
        if self._problem is None:
            logger.warning(
                "Semantic search failed, using keyword search: %s", error, extra={"action": "semantic_search_failed"}
            )
        self._problem = str(error) or type(error).__name__
        self._retry_at = self._clock() + RETRY_SECONDS

    def _recover(self) -> None:
        if self._problem is not None:
            logger.info("Semantic search works again", extra={"action": "semantic_search_restored"})
        self._problem, self._retry_at = None, float("-inf")
