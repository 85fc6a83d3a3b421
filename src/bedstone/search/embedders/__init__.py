"""Embedders, one per file, and the table of their names."""

from typing import TYPE_CHECKING

from bedstone.extensions import Kind

if TYPE_CHECKING:  # the protocol's module loads numpy
    from bedstone.search.embedder import EmbedderFactory

__all__ = ["EMBEDDERS", "ESTIMATOR"]

ESTIMATOR = "passage_estimator"  # key in a store some of whose vectors are estimated: how they are

EMBEDDERS: "Kind[EmbedderFactory]" = Kind(
    "embedders",
    {
        "minilm": "bedstone.search.embedders.minilm:MiniLm",
        "use-multilingual": "bedstone.search.embedders.use_multilingual:UseMultilingual",
        "openai": "bedstone.search.embedders.openai:OpenAiEmbedder",
        "hash": "bedstone.search.embedders.hashing:HashingEmbedder",
    },
    extras={"minilm": "minilm", "use-multilingual": "multilingual"},
)
