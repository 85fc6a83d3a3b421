"""Where documents, chunks, vectors and tasks are kept: the truth, from which every index is derived."""

from typing import TYPE_CHECKING

from bedstone.extensions import Kind

if TYPE_CHECKING:
    from bedstone.store.engine import StoreFactory

__all__ = ["STORES"]

STORES: "Kind[StoreFactory]" = Kind(
    "stores",
    {
        "sqlite": "bedstone.store.engines.sqlite:SqliteStore",
        "memory": "bedstone.store.engines.memory:MemoryStore",
        "postgresql": "bedstone.store.engines.postgres:PostgresStore",
    },
    extras={"postgresql": "postgres"},
)
