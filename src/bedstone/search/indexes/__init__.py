"""Search indexes, one per file, and the table of their names."""

from typing import TYPE_CHECKING

from bedstone.extensions import Kind

if TYPE_CHECKING:
    from bedstone.search.index import IndexFactory

__all__ = ["EMBEDDED", "INDEXES"]

EMBEDDED = "embedded"
INDEXES: "Kind[IndexFactory]" = Kind(
    "indexes",
    {
        EMBEDDED: "bedstone.search.indexes.hybrid:HybridIndex",
        "memory": "bedstone.search.indexes.memory:MemoryIndex",
        "opensearch": "bedstone.search.indexes.opensearch.index:OpenSearchIndex",
    },
    extras={"opensearch": "opensearch"},
)
