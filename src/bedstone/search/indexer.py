"""Chunks to vectors: passages, embedded in batches, put into the store."""

from collections.abc import Callable

import numpy as np

from bedstone.documents import Passage, StoredChunk
from bedstone.search.embedder import Embedder
from bedstone.store.engine import StoreEngine

BATCH_CHUNKS = 64


def embed_missing(store: StoreEngine, embedder: Embedder, progress: Callable[[int], None] | None = None) -> None:
    """Give vectors to every chunk without; each batch is kept as soon as it is done."""
    after = 0
    while chunks := store.unembedded(after=after, limit=BATCH_CHUNKS):
        passages = [(passage, text) for stored in chunks for passage, text in passages_of(stored, embedder)]
        vectors = embedder.embed([text for _, text in passages]).astype(np.float16)
        store.put_passages(
            [(passage, vector.tobytes()) for (passage, _), vector in zip(passages, vectors, strict=True)]
        )
        after = chunks[-1].rowid
        if progress:
            progress(len(chunks))


def passages_of(stored: StoredChunk, embedder: Embedder) -> list[tuple[Passage, str]]:
    """A chunk's passages with the text that is embedded: a context line, a blank line, the passage."""
    chunk = stored.chunk
    context = " > ".join(chunk.breadcrumb) or stored.document
    return [
        (Passage(stored.rowid, start, end), f"{context}\n\n{chunk.plain[start:end]}")
        for start, end in embedder.passages(context, chunk.plain)
    ]
