"""Embed chunks in batches and put their passages into the store."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from bedstone.records import Passage, StoredChunk
from bedstone.search.embedder import Embedder
from bedstone.search.terms import WORD
from bedstone.store.engine import Store

Batch = Sequence[StoredChunk]
Vectors = list[tuple[Passage, bytes]]
STOP_SECONDS = 0.1  # between two looks at whether to stop
# Shorter headings ("Overview") are near to many questions that their sections do not answer.
MIN_HEADING_WORDS = 4


def embed_missing(
    store: Store,
    embedder: Embedder,
    *,
    document_id: str | None = None,
    title: str | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[int], None] = lambda _: None,
    workers: int | None = None,
    throttle: AbstractContextManager[object] | None = None,
) -> None:
    """Embed every chunk without vectors, of one document or of all; each batch is stored as soon as it is ready.

    `on_progress` gets the number of chunks in each batch; `throttle` is entered around the work of the model. When
    `should_stop` holds this returns at once, without the batches that are at work. Chunks without headings are embedded
    under the title, or their document's id.
    """
    after, workers, size = 0, workers or embedder.workers, embedder.batch_size
    guard = throttle or nullcontext()

    def embed(batch: Batch) -> Vectors:
        with guard:
            return [] if should_stop() else embed_chunks(batch, embedder, title)

    pool = ThreadPoolExecutor(workers)  # the model releases the interpreter lock while it computes
    try:
        while not should_stop() and (
            chunks := store.chunks_without_vectors(document_id=document_id, after=after, limit=size * workers)
        ):
            batches = [chunks[start : start + size] for start in range(0, len(chunks), size)]
            results = _results([pool.submit(embed, batch) for batch in batches], should_stop)
            for batch, vectors in zip(batches, results, strict=False):
                store.put_passages(vectors)
                on_progress(len(batch))
            after = chunks[-1].head.rowid
    finally:
        pool.shutdown(wait=not should_stop(), cancel_futures=True)


def _results(futures: "Sequence[Future[Vectors]]", should_stop: Callable[[], bool]) -> Iterator[Vectors]:
    """Yield results in order until it is time to stop."""
    for future in futures:
        while not wait([future], STOP_SECONDS).done:
            if should_stop():
                return
        yield future.result()


def context_of(stored: StoredChunk, title: str | None = None) -> str:
    """Return the line that a chunk's passages are embedded under."""
    return " > ".join(stored.head.breadcrumb) or title or stored.head.document_id


def passages_of(stored: StoredChunk, embedder: Embedder, title: str | None = None) -> list[tuple[Passage, str]]:
    """Return a chunk's passages with the text to embed: a context line, a blank line, the passage."""
    head, plain = stored.head, stored.plain
    context = context_of(stored, title)
    return [
        (Passage(head.rowid, start, end), f"{context}\n\n{plain[start:end]}")
        for start, end in embedder.split(context, plain)
    ]


def heading_share(stored: StoredChunk, embedder: Embedder) -> float:
    """Return how much the vector of a chunk's heading alone counts; 0 if it gets none.

    The vectors of its passages know the heading too, but a long passage drowns what it says.
    """
    share: float = getattr(embedder, "heading_share", 0.0)
    return share if len(WORD.findall(stored.head.heading)) >= MIN_HEADING_WORDS else 0.0


def heading_passage(rowid: int) -> Passage:
    """Return the passage that a heading's vector is stored under: an empty one at the beginning."""
    return Passage(rowid, 0, 0)


def is_heading(passage: Passage) -> bool:
    """Return whether a passage stands for the heading of its chunk, or for a chunk without text."""
    return passage.start == passage.end


def embed_chunks(chunks: Batch, embedder: Embedder, title: str | None = None) -> Vectors:
    """Return passages with their vectors, ready for the store."""
    passages = [(*pair, 1.0) for stored in chunks for pair in passages_of(stored, embedder, title)]
    passages += [
        (heading_passage(stored.head.rowid), stored.head.heading, share)
        for stored in chunks
        if (share := heading_share(stored, embedder))
    ]
    vectors = embedder.embed([text for _, text, _ in passages])
    return [
        (passage, (share * vector).astype(np.float16).tobytes())
        for (passage, _, share), vector in zip(passages, vectors, strict=True)
    ]
