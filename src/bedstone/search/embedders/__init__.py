"""Embedders, one per file; table of names."""

__all__ = ["BUILTIN_EMBEDDERS"]

BUILTIN_EMBEDDERS = {
    "minilm": "bedstone.search.embedders.minilm:MiniLm",
    "hash": "bedstone.search.embedders.hashing:HashingEmbedder",
}
