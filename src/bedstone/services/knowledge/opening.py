"""Open the knowledge base from the settings."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.errors import InvalidSetting
from bedstone.permissions import make_private_folder
from bedstone.services.service import ServiceContext
from bedstone.settings import Settings, layout

if TYPE_CHECKING:
    from bedstone.services.knowledge.service import KnowledgeBase


def open_knowledge(context: ServiceContext) -> "KnowledgeBase":
    """Return the knowledge base of the data folder, resuming interrupted work."""
    from bedstone.ingest.chunking.by_size import SplitOptions  # noqa: PLC0415 - the engine
    from bedstone.ingest.extraction import ReadOptions  # noqa: PLC0415
    from bedstone.search.indexes import INDEXES  # noqa: PLC0415
    from bedstone.services.knowledge.add_file import ReadingOptions  # noqa: PLC0415
    from bedstone.services.knowledge.service import KnowledgeBase, KnowledgeOptions  # noqa: PLC0415
    from bedstone.store.opening import open_store  # noqa: PLC0415

    settings = context.settings
    INDEXES.check(settings.search.index)
    storage, chunking, ocr = settings.storage, settings.chunking, settings.ocr
    options = KnowledgeOptions(
        documents_path=layout.knowledge_documents(settings),
        index_path=layout.knowledge_index(settings),
        index=settings.search.index,
        # Files uploaded through the page pass through a folder of the server.
        allowed_roots=[*storage.allowed_roots, layout.uploads(settings)] if storage.allowed_roots else [],
        watched_folders=watched_folders(settings),
        max_file_size_mb=settings.processing.max_file_size_mb,
        max_concurrent_tasks=settings.processing.max_concurrent_tasks,
        read_only=settings.read_only,
        reading=ReadingOptions(
            split=SplitOptions(chunking.chunk_size, chunking.chunk_overlap, chunking.strategy),
            read=ReadOptions(
                force_ocr=ocr.force_ocr,
                ocr=ocr.enabled,
                ocr_language=ocr.language,
                ocr_data_path=str(ocr.data_path) if ocr.data_path else None,
                ocr_images=ocr.images,
                ocr_confidence=ocr.confidence_threshold,
            ),
        ),
    )
    file = options.index_path / "knowledge.sqlite"
    is_frozen = options.read_only and file.exists() and not os.access(file, os.W_OK)
    if not is_frozen:
        make_private_folder(options.index_path)  # the store may be elsewhere, the indexes are here
    store = open_store(storage.database or file, read_only=is_frozen, durable=not is_frozen)
    base = KnowledgeBase(store, options, context.embedders.get)
    base.open()
    return base


def watched_folders(settings: Settings) -> list[Path]:
    """Return the folders to keep in sync; each must be one that files may be added from."""
    roots = [root.resolve() for root in settings.storage.allowed_roots]
    for folder in settings.storage.watch:
        if not folder.is_dir():
            raise InvalidSetting(f"storage.watch: {folder} is not a folder.")
        if roots and not any(folder.resolve().is_relative_to(root) for root in roots):
            raise InvalidSetting(f"storage.watch: {folder} is not inside any of storage.allowed_roots.")
    return settings.storage.watch
