"""One embedder per model for the whole process."""

import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedstone.errors import MissingExtra
from bedstone.search.embedders import EMBEDDERS

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder
    from bedstone.settings import EmbeddingSettings

logger = logging.getLogger(__name__)

NONE = "none"


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

                self._embedders[identity] = CachedEmbedder(embedder, self._cache_file)
            return self._embedders[identity]

    def _provider(self, origin: Mapping[str, Any] | None) -> str:
        configured = NONE if self._settings.model_name == NONE else self._settings.provider
        return str((origin or {}).get("provider", configured))
