"""Which chunks a document has: remembered for the documents looked at last, so that each page reads only its own."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

from bedstone.records import ChunkHead, StoredChunk
from bedstone.store.engine import Store

MAX_KEPT_HEADS = 20_000  # half a kilobyte each


class Contents:
    """The chunks of the documents of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[ChunkHead, ...]] = OrderedDict()

    def heads(self, document_id: str) -> Sequence[ChunkHead]:
        """Return the heads of a document's chunks in order."""
        kept = self._kept.get(document_id)
        if kept is not None and self._is_current(document_id, kept):
            return kept
        heads = tuple(stored.head for stored in self._store.chunks_of(document_id))
        with self._lock:
            self._kept[document_id] = heads
            self._kept.move_to_end(document_id)
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) > MAX_KEPT_HEADS:
                self._kept.popitem(last=False)
        return heads

    def read(self, heads: Sequence[ChunkHead]) -> list[StoredChunk]:
        """Return chunks with their texts; those deleted in the meantime are left out."""
        found = self._store.chunks([head.rowid for head in heads])
        return [found[head.rowid] for head in heads if head.rowid in found]

    def _is_current(self, document_id: str, heads: Sequence[ChunkHead]) -> bool:
        """Return whether a document still has these chunks: one that is read again gets others."""
        count = self._store.chunk_counts(document_id).get(document_id, 0)
        ends = {heads[0].rowid, heads[-1].rowid} if heads else set()
        return count == len(heads) and len(self._store.chunk_heads(list(ends))) == len(ends)
