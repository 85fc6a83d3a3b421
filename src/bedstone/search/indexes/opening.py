"""Open the index of a store: the one place that chooses its kind."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.search.index import Access, IndexVersionMismatch, SearchIndex
from bedstone.search.indexes import EMBEDDED, INDEXES
from bedstone.store.engine import Store

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder

KEYWORDS = "words"  # a folder
VECTORS = "vectors.usearch"


def open_index(
    store: Store, folder: Path | None, embedder: "Embedder | None", access: Access = "write", *, kind: str = EMBEDDED
) -> SearchIndex:
    """Return the index that is kept in a folder, or in memory without one."""
    return INDEXES.load(kind).open(store, folder, embedder, access)


def open_shared_index(
    store: Store,
    folder: Path,
    embedder: "Embedder | None",
    *,
    is_writer: bool,
    is_corrupt: bool = False,
    kind: str = EMBEDDED,
) -> SearchIndex:
    """Return an index that one process writes and others read; a reader without a usable one builds its own in memory.

    With `is_corrupt`, the files in the folder do not fit together: the writer replaces them.
    """
    if is_writer and is_corrupt:
        shutil.rmtree(folder / KEYWORDS, ignore_errors=True)
    if is_writer:
        return open_index(store, folder, embedder, kind=kind)
    with suppress(OSError, ValueError, IndexVersionMismatch):
        if not is_corrupt:
            return open_index(store, folder, embedder, "read", kind=kind)
    return open_index(store, folder, embedder, "memory", kind=kind)
