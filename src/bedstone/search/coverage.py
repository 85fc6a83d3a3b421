"""Embed a corpus in part: the model gets the first passages of each document, the others get estimated vectors."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from bedstone.records import Passage, StoredChunk
from bedstone.search.embedder import Embedder, Sketch, Sketcher, Vectors
from bedstone.search.embedders import ESTIMATOR
from bedstone.search.estimates import Estimator
from bedstone.search.indexer import context_of, embed_missing, heading_passage, heading_share, is_heading
from bedstone.store.engine import Store

FIRST_PASSAGES = 4  # of each document; with 3, questions lose up to 0.003 nDCG@10
# Tables and code repeat each other: the model gets the first listing of one document in four, and learns from it how to
# estimate the others.
LISTING_DOCUMENTS = 4
TITLE_TOKENS = 20  # of a listing that is only a title; it does not count as one
MIN_LEARNED = 256  # passages; a corpus with fewer first passages is embedded in whole
MAX_WAITING = 50_000  # passages that wait for the regression, 2 KB each
READ_CHUNKS = 500


@dataclass(slots=True)
class _Piece:
    """A passage, the text that the model would get, its vector as soon as it has one, and how much that counts."""

    passage: Passage
    text: str
    sketch: Sketch
    is_exact: bool
    vector: Vectors | None = None
    share: float = 1.0

    @property
    def teaches(self) -> bool:
        """Whether estimates are learned from it."""
        return self.is_exact and not is_heading(self.passage)


@dataclass(slots=True)
class _Planned:
    """A document: its chunks that have no vectors yet, and those passages of other chunks that the model embedded."""

    chunks: list[list[_Piece]]
    known: list[tuple[Sketch, Vectors]]

    @property
    def pieces(self) -> Iterator[_Piece]:
        return (piece for chunk in self.chunks for piece in chunk)


@dataclass(slots=True)
class _Waiting:
    """Chunks with passages to be estimated, each with the mean vector of its document."""

    chunks: list[tuple[list[_Piece], Vectors]] = field(default_factory=list)
    passages: int = 0

    def add(self, chunk: list[_Piece], mean: Vectors) -> None:
        self.chunks.append((chunk, mean))
        self.passages += len(chunk)


def embed_first_passages(
    store: Store,
    embedder: Embedder,
    *,
    on_progress: Callable[[int], None] = lambda _: None,
    workers: int | None = None,
) -> None:
    """Embed every chunk without vectors, most of them by estimates; in whole if the embedder offers no sketches.

    `on_progress` gets numbers of chunks. What was embedded is in the store, or in the embedder's cache, if this is
    interrupted.
    """
    sketch: Sketcher | None = getattr(embedder, "sketch", None)
    if sketch is None:
        embed_missing(store, embedder, on_progress=on_progress, workers=workers)
        return
    _Run(store, embedder, sketch, on_progress, workers or embedder.workers).run()


class _Run:
    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        sketch: Sketcher,
        on_progress: Callable[[int], None],
        workers: int,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._sketch = sketch
        self._on_progress = on_progress
        self._workers = workers
        self._kept = Estimator.from_text(store.get_value(ESTIMATOR) or "", embedder.dimensions)
        self._fresh = Estimator(embedder.dimensions)
        self._waiting = _Waiting()

    def run(self) -> None:
        """Embed first passages document by document, and estimate the others at the end."""
        pool = ThreadPoolExecutor(self._workers)  # the model releases the interpreter lock while it computes
        try:
            group: list[_Planned] = []
            for document in self._documents():
                group.append(document)
                if sum(piece.is_exact for item in group for piece in item.pieces) >= self._size:
                    self._embed(group, pool)
                    group = []
                if self._waiting.passages > MAX_WAITING:
                    self._estimate(pool)
            self._embed(group, pool)
            self._estimate(pool)
        finally:
            pool.shutdown(cancel_futures=True)

    @property
    def _size(self) -> int:
        return self._embedder.batch_size * self._workers

    def _documents(self) -> Iterator[_Planned]:
        """Yield the documents that have chunks without vectors."""
        after = 0
        while missing := self._store.chunks_without_vectors(after=after, limit=READ_CHUNKS):
            for name in dict.fromkeys(stored.head.document_id for stored in missing):
                chunks = self._store.chunks_of(name)
                yield self._plan(chunks)
                after = max(after, chunks[-1].head.rowid)

    def _plan(self, chunks: Sequence[StoredChunk]) -> _Planned:
        """Decide which passages of a document the model gets."""
        count = listings = 0
        takes_listing = crc32(chunks[0].head.document_id.encode()) % LISTING_DOCUMENTS == 0
        planned: list[list[_Piece]] = []
        for stored in chunks:
            context, pieces = context_of(stored), []
            for item in self._sketch(context, stored.plain):
                is_title = item.is_listing and item.tokens <= TITLE_TOKENS
                if item.is_listing:
                    is_exact = takes_listing and count < FIRST_PASSAGES and (is_title or not listings)
                    listings += not is_title
                else:
                    is_exact = count < FIRST_PASSAGES
                count += is_exact and not is_title
                passage = Passage(stored.head.rowid, item.start, item.end)
                text = f"{context}\n\n{stored.plain[item.start : item.end]}"
                pieces.append(_Piece(passage, text, item, is_exact))
            if share := heading_share(stored, self._embedder):
                place = heading_passage(stored.head.rowid)
                pieces.append(_Piece(place, stored.head.heading, pieces[0].sketch, is_exact=True, share=share))
            planned.append(pieces)
        known = self._read_known(planned)
        return _Planned(
            [pieces for pieces in planned if pieces[0].passage.chunk_rowid not in known],
            [
                (piece.sketch, known[piece.passage.chunk_rowid][piece.passage.start])
                for pieces in planned
                for piece in pieces
                if piece.teaches and piece.passage.start in known.get(piece.passage.chunk_rowid, {})
            ],
        )

    def _read_known(self, planned: Sequence[list[_Piece]]) -> dict[int, dict[int, Vectors]]:
        """Return the vectors that chunks of a document have, from a build that was interrupted."""
        first, last = planned[0][0].passage.chunk_rowid, planned[-1][0].passage.chunk_rowid
        stored = list(self._store.passages_between(first, last))
        vectors = self._store.vectors([item.id for item in stored]) if stored else {}
        known: dict[int, dict[int, Vectors]] = {}
        for item in stored:
            of_chunk = known.setdefault(item.passage.chunk_rowid, {})
            if not is_heading(item.passage):
                of_chunk[item.passage.start] = np.frombuffer(vectors[item.id], np.float16).astype(np.float32)
        return known

    def _embed(self, group: Sequence[_Planned], pool: ThreadPoolExecutor) -> None:
        """Embed the first passages of documents, and store the chunks that are complete with them."""
        self._ask([piece for item in group for piece in item.pieces if piece.is_exact], pool)
        complete: list[list[_Piece]] = []
        for item in group:
            exact = item.known + [
                (piece.sketch, piece.vector) for piece in item.pieces if piece.teaches and piece.vector is not None
            ]
            mean = np.zeros(self._embedder.dimensions, np.float32)
            if exact:
                vectors = [vector for _, vector in exact]
                self._fresh.learn([sketch.words for sketch, _ in exact], vectors)
                mean = np.mean(vectors, 0)
            for chunk in item.chunks:
                if all(piece.is_exact for piece in chunk):
                    complete.append(chunk)
                else:
                    self._waiting.add(chunk, mean)
        self._put(complete)
        self._on_progress(sum(len(item.chunks) for item in group))

    def _ask(self, pieces: Sequence[_Piece], pool: ThreadPoolExecutor) -> None:
        """Let the model embed passages."""
        size = self._embedder.batch_size
        batches = [pieces[start : start + size] for start in range(0, len(pieces), size)]
        answers = pool.map(self._embedder.embed, [[piece.text for piece in batch] for batch in batches])
        for batch, vectors in zip(batches, answers, strict=True):
            for piece, vector in zip(batch, vectors, strict=True):
                piece.vector = vector

    def _estimate(self, pool: ThreadPoolExecutor) -> None:
        """Give the waiting passages their vectors, and store them."""
        waiting, self._waiting = self._waiting, _Waiting()
        estimator = self._estimator()
        for start in range(0, len(waiting.chunks), READ_CHUNKS):
            part = waiting.chunks[start : start + READ_CHUNKS]
            rest = [(piece, mean) for chunk, mean in part for piece in chunk if piece.vector is None]
            if estimator is None:
                self._ask([piece for piece, _ in rest], pool)
            elif rest:
                words, means = (
                    np.stack(column) for column in zip(*((p.sketch.words, m) for p, m in rest), strict=True)
                )
                for (piece, _), vector in zip(rest, estimator.estimate(words, means), strict=True):
                    piece.vector = vector
            self._put([chunk for chunk, _ in part])

    def _estimator(self) -> Estimator | None:
        """Return the kept estimator, or the new one if that learned more; None if neither has learned enough."""
        kept, fresh = self._kept, self._fresh
        if fresh.count < MIN_LEARNED or (kept is not None and kept.learned_before >= fresh.count):
            return kept
        fresh.fit()
        self._store.set_value(ESTIMATOR, fresh.to_text())
        return fresh

    def _put(self, chunks: Sequence[list[_Piece]]) -> None:
        rows = [
            (piece.passage, (piece.share * piece.vector).astype(np.float16).tobytes())
            for chunk in chunks
            for piece in chunk
            if piece.vector is not None
        ]
        if rows:
            self._store.put_passages(rows)
