"""Where documents, chunks, vectors and tasks are kept: the truth, from which every index is derived."""

__all__ = ["BUILTIN_ENGINES"]

BUILTIN_ENGINES = {
    "memory": "bedstone.store.engines.memory:MemoryStore",
    "sqlite": "bedstone.store.engines.sqlite:SqliteStore",
}
