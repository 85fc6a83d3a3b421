"""Open the index of a store: the one place that chooses its kind."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.errors import MissingExtra
from bedstone.search.index import Access, IndexDamaged, IndexFactory, IndexVersionMismatch, SearchIndex
from bedstone.search.indexes import EMBEDDED, INDEXES
from bedstone.search.indexes.damage import set_aside
from bedstone.store.engine import Store

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder
    from bedstone.settings import Settings

IndexKind = str | IndexFactory  # a name, or a factory that has its settings
KEYWORDS = "words"  # a folder
VERSION = "version.json"  # the last file that is written: without it, the index does not exist yet
VECTORS = "vectors"  # a folder


def choose_index(settings: "Settings") -> IndexKind:
    """Return the index that the settings name: a factory if it has settings of its own, otherwise the name."""
    name = settings.search.index
    INDEXES.check(name)
    if name == EMBEDDED:
        return name
    try:
        configure = getattr(INDEXES.load(name), "from_settings", None)
    except MissingExtra:  # opening it says what to install
        return name
    return configure(settings) if configure is not None else name


def is_shared(kind: IndexKind) -> bool:
    """Return whether machines use one index together; otherwise each has its own."""
    return bool(getattr(kind, "is_shared", False))


def open_index(
    store: Store,
    folder: Path | None,
    embedder: "Embedder | None",
    access: Access = "write",
    *,
    kind: IndexKind = EMBEDDED,
) -> SearchIndex:
    """Return the index that is kept in a folder, or in memory without one."""
    factory = INDEXES.load(kind) if isinstance(kind, str) else kind
    return factory.open(store, folder, embedder, access)


def open_shared_index(
    store: Store, folder: Path, embedder: "Embedder | None", *, is_writer: bool, kind: IndexKind = EMBEDDED
) -> SearchIndex:
    """Return an index that one process writes and others read; before the first is built, a reader builds its own."""
    if is_writer:
        return open_index(store, folder, embedder, kind=kind)
    if (folder / KEYWORDS / VERSION).exists() or kind != EMBEDDED:
        with suppress(IndexVersionMismatch):
            return open_index(store, folder, embedder, "read", kind=kind)
    return open_index(store, folder, embedder, "memory", kind=kind)


def open_fresh_index(
    store: Store, folder: Path, embedder: "Embedder | None", *, is_writer: bool, kind: IndexKind = EMBEDDED
) -> tuple[SearchIndex, str | None]:
    """Return an empty index in place of a damaged one, and why it is in memory if its folder cannot be written.

    The writer sets the damaged files aside; a reader leaves them to the writer.
    """
    if not is_writer:
        return open_index(store, folder, embedder, "memory", kind=kind), None
    try:
        if kind == EMBEDDED:
            set_aside(folder / KEYWORDS)
        return open_index(store, folder, embedder, kind=kind), None
    except (OSError, IndexDamaged) as error:
        shutil.rmtree(folder / KEYWORDS, ignore_errors=True)  # what was made of the new one
        reason = error.__cause__ or error  # that the disk is full, not which file is missing then
        return open_index(store, folder, embedder, "memory", kind=kind), str(reason)
