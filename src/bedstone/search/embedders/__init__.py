"""Embedders, one per file; table of names."""

__all__ = ["BUILTIN_EMBEDDERS"]

BUILTIN_EMBEDDERS = {
    "minilm": "bedstone.search.embedders.minilm:MiniLm",
    "openai": "bedstone.search.embedders.openai:OpenAiEmbedder",
    "hash": "bedstone.search.embedders.hashing:HashingEmbedder",
}
