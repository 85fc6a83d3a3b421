"""Open the knowledge base from the settings."""

import logging
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.errors import BedstoneError, InvalidSetting, Unavailable
from bedstone.permissions import make_private_folder
from bedstone.services.knowledge.records import DOCUMENT_ID
from bedstone.services.service import ServiceContext
from bedstone.settings import Settings, layout
from bedstone.settings.own_files import OwnFiles

if TYPE_CHECKING:
    from bedstone.services.knowledge.health import KnowledgeStatus
    from bedstone.services.knowledge.options import KnowledgeOptions
    from bedstone.services.knowledge.service import KnowledgeBase

logger = logging.getLogger(__name__)

STORE = "knowledge.sqlite"
DAMAGED = (
    "See what is wrong with `bedstone knowledge verify`. Restore the store from a backup, or read all documents again "
    "with `bedstone knowledge rebuild`."
)


def open_knowledge(context: ServiceContext) -> "KnowledgeBase":
    """Return the knowledge base of the data folder, resuming interrupted work."""
    from bedstone.store.engine import StoreDamaged  # noqa: PLC0415 - the engine

    settings = context.settings
    file = store_file(settings)
    is_frozen = settings.read_only and file is not None and file.exists() and not os.access(file, os.W_OK)
    _check_not_lost(settings)
    try:
        return _open(context, is_frozen=is_frozen)
    except StoreDamaged as error:
        raise StoreDamaged(f"{error.message} {DAMAGED}", **error.details) from error


def open_for_rebuild(context: ServiceContext) -> "KnowledgeBase":
    """Return the knowledge base to restore what its store lost; a damaged store is set aside first."""
    settings = context.settings
    if settings.read_only:
        raise InvalidSetting("A read-only knowledge base cannot be rebuilt.")
    file = store_file(settings)
    if file is not None and file.exists():
        _set_aside_if_damaged(file)
    return _open(context, restores=True)


def store_file(settings: Settings) -> Path | None:
    """Return the file of the store; None if the store is elsewhere."""
    return None if settings.storage.database else layout.knowledge_index(settings) / STORE


def count_documents(settings: Settings) -> int:
    """Return how many documents have a folder, without opening the store."""
    if settings.storage.blobs:
        from bedstone.services.knowledge.file_storage import open_storage  # noqa: PLC0415 - the engine

        return len(open_storage(knowledge_options(settings)).document_ids())
    folder = layout.knowledge_documents(settings)
    return sum(1 for path in folder.iterdir() if DOCUMENT_ID.fullmatch(path.name)) if folder.is_dir() else 0


def _check_not_lost(settings: Settings) -> None:
    """Raise `StoreMismatch` rather than create a store beside documents that it does not know."""
    file = store_file(settings)
    if file is None or (file.exists() and file.stat().st_size) or file.with_name(f"{STORE}-wal").exists():
        return
    if count := count_documents(settings):
        from bedstone.services.knowledge.ownership import lost_store  # noqa: PLC0415 - the engine

        raise lost_store(str(file), knowledge_options(settings).storage_place, count)


def _open(context: ServiceContext, *, is_frozen: bool = False, restores: bool = False) -> "KnowledgeBase":
    from bedstone.services.knowledge.service import KnowledgeBase  # noqa: PLC0415 - the engine
    from bedstone.store.opening import open_store  # noqa: PLC0415

    settings = context.settings
    options = knowledge_options(settings)
    if options.blobs:
        _check_not_left_behind(options)
    if not is_frozen:
        make_private_folder(options.index_path)  # the store may be elsewhere, the indexes are here
    address = settings.storage.database or options.index_path / STORE
    store = open_store(address, read_only=is_frozen, durable=not is_frozen)
    base = KnowledgeBase(store, options, context.embedders.get)
    try:
        base.open(restores=restores)
    except BaseException:
        base.close()
        raise
    return base


def _set_aside_if_damaged(file: Path) -> None:
    """Rename a damaged store, with the files beside it, so that a new one can be made."""
    from bedstone.store.engine import StoreDamaged  # noqa: PLC0415 - the engine
    from bedstone.store.locks import FileLock  # noqa: PLC0415
    from bedstone.store.opening import open_store  # noqa: PLC0415

    lock = FileLock(file.parent / ".owner")
    try:
        store = open_store(file)
        problems = store.check_integrity()
        store.close()
    except StoreDamaged as error:  # one that is busy, or on a full disk, is left alone
        problems = [error.message]
    if not problems:
        return
    if not lock.acquire():
        raise Unavailable("The store is damaged, and a server is using it. Stop the server first.")
    try:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        for path in sorted(file.parent.glob(f"{file.name}*")):
            if path.name in (file.name, f"{file.name}-wal", f"{file.name}-shm"):
                path.rename(path.with_name(f"{path.name}.damaged-{stamp}"))
        logger.warning("Set the damaged store aside: %s", problems[0], extra={"action": "store_set_aside"})
    finally:
        lock.release()


def unopened_status(context: ServiceContext, error: Exception) -> "KnowledgeStatus":
    """Return the status of a knowledge base that cannot be opened: which part is the reason, and how the others are."""
    from bedstone.search.embedding import QueryEmbedder  # noqa: PLC0415 - the engine
    from bedstone.services.knowledge.health import UNKNOWN_FIGURES, KnowledgeStatus, explain  # noqa: PLC0415
    from bedstone.services.knowledge.listing import DocumentCounts  # noqa: PLC0415

    options, problems = knowledge_options(context.settings), {}
    if not options.read_only and (reason := _find_storage_problem(options)):
        problems["storage"] = reason
    if not problems or not isinstance(error, OSError):
        reason = explain(error)
        problems["vector_db"] = reason if isinstance(error, BedstoneError) else f"The store cannot be opened: {reason}"
    model = QueryEmbedder(context.embedders.get)
    if reason := model.check():
        problems["embedding_model"] = f"The embedding model does not answer: {reason}"
    problems["figures"] = "Only the folders of documents are counted; the other figures cannot be read, so they are 0."
    count = 0 if options.blobs and problems else count_documents(context.settings)
    figures = replace(UNKNOWN_FIGURES, documents=DocumentCounts(count, 0, 0))
    return KnowledgeStatus.of(figures, problems, model.embedder.name if model.embedder else None, options)


def _find_storage_problem(options: "KnowledgeOptions") -> str | None:
    """Return why no files can be stored, or None."""
    from bedstone.services.knowledge.file_storage import find_write_error, open_storage  # noqa: PLC0415

    if options.blobs:
        return open_storage(options).write_error()
    folder = next(path for path in (options.documents_path, *options.documents_path.parents) if path.exists())
    reason = find_write_error(folder)
    return f"Storage directory not accessible: {reason}" if reason else None


def _check_not_left_behind(options: "KnowledgeOptions") -> None:
    """Raise `StoreMismatch` if the documents are in the folder that was used before the bucket, and only there."""
    from bedstone.services.knowledge.errors import StoreMismatch  # noqa: PLC0415
    from bedstone.services.knowledge.file_storage import open_storage  # noqa: PLC0415 - the engine

    folder = options.documents_path
    count = sum(1 for path in folder.iterdir() if DOCUMENT_ID.fullmatch(path.name)) if folder.is_dir() else 0
    if count and open_storage(options).owner_id is None:
        raise StoreMismatch(
            f"{folder} holds {count:,} document{'' if count == 1 else 's'}, and {options.storage_place} none. Unset "
            "storage.blobs, and move them with `bedstone migrate-data --blobs-to`."
        )


def knowledge_options(settings: Settings) -> "KnowledgeOptions":
    """Return where the knowledge base is stored, and how files are read."""
    from bedstone.ingest.chunking.pieces import SplitOptions  # noqa: PLC0415 - the engine
    from bedstone.ingest.extraction import ReadOptions  # noqa: PLC0415
    from bedstone.search.indexes.opening import choose_index  # noqa: PLC0415
    from bedstone.services.knowledge.add_file import ReadingOptions  # noqa: PLC0415
    from bedstone.services.knowledge.options import KnowledgeOptions  # noqa: PLC0415

    if settings.storage.blobs and settings.storage.documents_path:
        raise InvalidSetting("storage.blobs and storage.documents_path are both set. Choose where copies are kept.")
    storage, chunking, ocr = settings.storage, settings.chunking, settings.ocr
    return KnowledgeOptions(
        documents_path=layout.knowledge_documents(settings),
        index_path=layout.knowledge_index(settings),
        blobs=settings.storage.blobs,
        store_place=layout.knowledge_store(settings),
        index=choose_index(settings),
        tuning=settings.search.tuning_of("documents"),
        allowed_roots=storage.allowed_roots,
        uploads_path=layout.uploads(settings),
        own_files=OwnFiles.of(settings),
        watched_folders=watched_folders(settings),
        max_file_size_mb=settings.processing.max_file_size_mb,
        max_concurrent_tasks=settings.processing.max_concurrent_tasks,
        read_only=settings.read_only,
        role=settings.role,
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


def watched_folders(settings: Settings) -> list[Path]:
    """Return the folders to keep in sync; each must be one that files may be added from."""
    roots = [root.resolve() for root in settings.storage.allowed_roots]
    for folder in settings.storage.watch:
        if not folder.is_dir():
            raise InvalidSetting(f"storage.watch: {folder} is not a folder.")
        if roots and not any(folder.resolve().is_relative_to(root) for root in roots):
            raise InvalidSetting(f"storage.watch: {folder} is not inside any of storage.allowed_roots.")
    return settings.storage.watch
