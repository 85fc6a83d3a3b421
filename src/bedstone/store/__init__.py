"""Where documents, chunks, vectors and tasks are kept: the truth, from which every index is derived; and files."""

from typing import TYPE_CHECKING

from bedstone.extensions import Kind

if TYPE_CHECKING:
    from bedstone.store.blobs import BlobsFactory
    from bedstone.store.engine import StoreFactory

__all__ = ["BLOBS", "STORES"]

STORES: "Kind[StoreFactory]" = Kind(
    "stores",
    {
        "sqlite": "bedstone.store.engines.sqlite:SqliteStore",
        "memory": "bedstone.store.engines.memory:MemoryStore",
        "postgresql": "bedstone.store.engines.postgres:PostgresStore",
    },
    extras={"postgresql": "postgres"},
)
BLOBS: "Kind[BlobsFactory]" = Kind(
    "blobs",
    {
        "folder": "bedstone.store.blob_stores.folder:FolderBlobs",
        "s3": "bedstone.store.blob_stores.s3:S3Blobs",
    },
    extras={"s3": "s3"},
)
