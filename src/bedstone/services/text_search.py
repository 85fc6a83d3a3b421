"""Search one text: its sections in an index in memory, built again when the text changes."""

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from bedstone.records import Chunk, Document
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.hits import Hit, Mode, SearchRequest
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes.opening import open_index
from bedstone.search.retriever import Profile, Retriever
from bedstone.services.text_sections import split_sections
from bedstone.store.opening import open_store

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder

logger = logging.getLogger(__name__)

MAX_WAIT_CHARACTERS = 30_000  # of a text whose first search waits for its vectors; a longer one gets them meanwhile


class TextSearch:
    """The index of one version of a text. Keyword search works at once, semantic search when the vectors are there."""

    def __init__(self, name: str, text: str, get_embedder: "Callable[[], Embedder | None]") -> None:
        self._store = open_store("memory:")
        self._embedding = QueryEmbedder(get_embedder)
        self._is_stopped = threading.Event()
        chunks = [
            Chunk(
                section.anchor,
                text[section.start : section.end],
                text[section.start : section.end],
                section.title,
                section.level,
                (section.title,),
                span=(section.start, section.end),
            )
            for section in split_sections(text)
        ]
        self._store.put([(Document(name, name, ""), chunks)])
        self._index = open_index(self._store, None, self._embedding.embedder, "memory")
        self._index.catch_up()
        self._retriever = Retriever(self._store, self._index, self._embedding, Profile())
        worker = threading.Thread(target=self._embed, name="kb-vectors", daemon=True)
        worker.start()
        if len(text) <= MAX_WAIT_CHARACTERS:
            worker.join()

    def search(self, query: str, mode: Mode, limit: int) -> tuple[Hit, ...]:
        """Return the best sections."""
        return self._retriever.search(SearchRequest(query, mode=mode, limit=limit)).hits

    def close(self) -> None:
        """Stop making vectors."""
        self._is_stopped.set()

    def _embed(self) -> None:
        embedder = self._embedding.embedder
        if embedder is None or not embedder.is_semantic:
            return
        try:
            embed_missing(self._store, embedder, should_stop=self._is_stopped.is_set)
            self._index.catch_up()
        except Exception:  # keyword search still works
            logger.exception("The knowledge file cannot be embedded", extra={"action": "kb_not_embedded"})
