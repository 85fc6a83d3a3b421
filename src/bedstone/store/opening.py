"""Open a store, or a place for files, by its address."""

import json
from pathlib import Path

from bedstone.store import BLOBS, STORES
from bedstone.store.blobs import Blobs
from bedstone.store.engine import Store, StoreUnavailable

UNFINISHED_MOVE = "unfinished_move"  # the value of a store that `bedstone migrate-data` is filling


def open_store(address: str | Path, *, read_only: bool = False, durable: bool = False) -> Store:
    """Open the store at an address such as `sqlite:/data/knowledge.sqlite` or `postgresql://host/database`.

    A path is a SQLite file. A durable store survives a power failure.
    """
    if isinstance(address, Path):
        address = f"sqlite:{address}"
    name = address.partition(":")[0]
    store = STORES.load(name).open(address, read_only=read_only, durable=durable)
    try:
        _check_complete(store)
    except BaseException:
        store.close()
        raise
    return store


def open_blobs(address: str | Path, cache: Path) -> Blobs:
    """Open the place for files at an address such as `s3://bucket/prefix`; a path is a folder of this machine alone.

    Nothing is asked there yet. `cache` gets the copies that readers on this machine need.
    """
    if isinstance(address, Path):
        from bedstone.store.blob_stores.folder import FolderBlobs  # noqa: PLC0415 - like the others, when it is used

        return FolderBlobs(address)
    return BLOBS.load(address.partition(":")[0]).open(address, cache)


def _check_complete(store: Store) -> None:
    """Raise `StoreUnavailable` for a store that has only a part of what is being moved to it."""
    if (value := store.get_value(UNFINISHED_MOVE)) is not None:
        raise StoreUnavailable(incomplete_message(json.loads(value)["to"]))


def incomplete_message(place: str) -> str:
    """Return what is wrong with the target of a move that has not ended."""
    return (
        f"The store {place} is incomplete: moving a base to it has not ended. Repeat `bedstone migrate-data` until it "
        "says that all counts and digests agree."
    )
