"""Open a store by its address."""

from pathlib import Path

from bedstone.store import STORES
from bedstone.store.engine import Store


def open_store(address: str | Path, *, read_only: bool = False, durable: bool = False) -> Store:
    """Open the store at an address such as `sqlite:/data/knowledge.sqlite` or `postgresql://host/database`.

    A path is a SQLite file. A durable store survives a power failure.
    """
    if isinstance(address, Path):
        address = f"sqlite:{address}"
    name = address.partition(":")[0]
    return STORES.load(name).open(address, read_only=read_only, durable=durable)
