"""Chunks to vectors: passages, embedded in batches, put into the store."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bedstone.records import Passage, StoredChunk
from bedstone.search.embedder import Embedder
from bedstone.store.engine import StoreEngine


def embed_missing(
    store: StoreEngine,
    embedder: Embedder,
    progress: Callable[[int], None] | None = None,
    *,
    workers: int | None = None,
) -> None:
    """Give vectors to every chunk without; each batch is kept as soon as it is done."""
    after, workers, size = 0, workers or embedder.workers, embedder.batch
    with ThreadPoolExecutor(workers) as pool:  # the model lets go of the interpreter while it computes
        while chunks := store.unembedded(after=after, limit=size * workers):
            parts = [chunks[start : start + size] for start in range(0, len(chunks), size)]
            for part, vectors in zip(parts, pool.map(lambda part: embed_chunks(part, embedder), parts), strict=True):
                store.put_passages(vectors)
                if progress:
                    progress(len(part))
            after = chunks[-1].rowid


def passages_of(stored: StoredChunk, embedder: Embedder, title: str | None = None) -> list[tuple[Passage, str]]:
    """A chunk's passages with the text that is embedded: a context line, a blank line, the passage."""
    chunk = stored.chunk
    context = " > ".join(chunk.breadcrumb) or title or stored.document
    return [
        (Passage(stored.rowid, start, end), f"{context}\n\n{chunk.plain[start:end]}")
        for start, end in embedder.passages(context, chunk.plain)
    ]


def embed_chunks(
    chunks: Sequence[StoredChunk], embedder: Embedder, title: str | None = None
) -> list[tuple[Passage, bytes]]:
    """Passages with their vectors, ready for the store; chunks under no heading stand under a title, or their id."""
    passages = [pair for stored in chunks for pair in passages_of(stored, embedder, title)]
    vectors = embedder.embed([text for _, text in passages]).astype(np.float16)
    return [(passage, vector.tobytes()) for (passage, _), vector in zip(passages, vectors, strict=True)]
