"""Where documents, chunks and vectors live: the truth, from which every index is derived."""

__all__ = ["BUILTIN_ENGINES"]

BUILTIN_ENGINES = {
    "memory": "bedstone.store.engines.memory:MemoryStore",
    "sqlite": "bedstone.store.engines.sqlite:SqliteStore",
}
