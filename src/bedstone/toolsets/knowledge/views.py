"""The answers of the knowledge tools, made from the records of a knowledge base."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bedstone.errors import BedstoneError, InvalidInput, MissingArgument, UnknownArgument, UnknownTask
from bedstone.ingest.page_marks import mark_chunks, mark_pages, pages_between
from bedstone.services.knowledge.errors import (
    CollectionNotFound,
    DocumentNotFound,
    DocumentNotReady,
    EmptyKnowledgeBase,
    ExtractionFailed,
    FileNotFound,
    FileTooLarge,
    OcrFailed,
    PathNotAllowed,
    UnreadDocument,
    UnsupportedFormat,
)
from bedstone.services.knowledge.records import FileDocument, iso_time
from bedstone.toolkit import Citation, Links, Reply, TaskView
from bedstone.toolsets.knowledge.contract import (
    Added,
    BaseFacts,
    ConfigurationFacts,
    ContextFacts,
    DocumentText,
    FoundPassage,
    Get,
    Health,
    ListedDocument,
    PassageText,
    Status,
    TaskResult,
    TaskState,
)

if TYPE_CHECKING:  # the engine is imported when it is first needed, not when the server starts
    from bedstone.ingest.extraction import Page
    from bedstone.records import Task
    from bedstone.services.knowledge.collections import Collection
    from bedstone.services.knowledge.health import KnowledgeStatus
    from bedstone.services.knowledge.searching import KnowledgeHit
    from bedstone.services.knowledge.service import KnowledgeBase

MEGABYTE = 2**20
TOTAL_STEPS = 20
MIN_REMAINING = 0.05  # of the elapsed time
# Fields of `metadata` that Bedstone computes, in every document or in some.
COMPUTED_FIELDS = frozenset(
    {
        "format",
        "date_added",
        "context",
        "page_num",
        "page_end",
        "heading",
        "ocr_used",
        "ocr_pages",
        "ocr_confidence",
        "warnings",
        "left_out",
        "source",
        "other_sources",
        "citation",
        "user",
    }
)
# The contract's name for each error of the services; an error without one goes by the name of its class.
ERROR_CODES: dict[type[BedstoneError], str] = {
    MissingArgument: "missing_required_parameter",
    UnknownArgument: "invalid_parameter",
    InvalidInput: "invalid_parameter",
    UnsupportedFormat: "unsupported_format",
    FileTooLarge: "file_too_large",
    FileNotFound: "file_not_found",
    PathNotAllowed: "path_not_allowed",
    DocumentNotFound: "document_not_found",
    DocumentNotReady: "document_not_ready",
    CollectionNotFound: "context_not_found",
    UnknownTask: "task_not_found",
    EmptyKnowledgeBase: "empty_knowledge_base",
    ExtractionFailed: "extraction_failed",
    OcrFailed: "ocr_failed",
}
# The contract has no names for these outcomes of a task.
TASK_CODES = {"interrupted": "extraction_failed", "internal_error": "extraction_failed"}


class TaskFailed(BedstoneError):
    """A task failed; the reply has the name and the message of its error."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.code = code


def error_code(error: BedstoneError) -> str:
    """Return the contract's name for an error."""
    if isinstance(error, UnreadDocument):
        return TASK_CODES.get(error.reason, error.reason)
    return ERROR_CODES.get(type(error), error.code)


def passage(base: "KnowledgeBase", hit: "KnowledgeHit", query: str, links: Links) -> FoundPassage:
    """Return a chunk that was found."""
    from bedstone.services.knowledge.finding import page_address, readable_id  # noqa: PLC0415 - loads the engine

    head = hit.chunk.head
    computed = _computed_fields(base, hit.document)
    place, last = hit.place, head.last_page
    if place.page is not None:
        computed["page_num"] = place.page
        if last is not None and last > place.page:
            computed["page_end"] = last
    if place.breadcrumb:
        computed["heading"] = " > ".join(place.breadcrumb)
    citation = Citation.of(
        links,
        readable_id(hit.document, page=place.page, passage=head.position + 1),
        page_address(hit.document.id, page=place.page, chunk_id=head.id, query=query),
        head.span,
    )
    computed["citation"] = citation.model_dump()
    metadata = _with_user_metadata(computed, hit.document.metadata)
    return FoundPassage(
        document_id=hit.document.id,
        chunk_id=head.id,
        filename=hit.document.filename,
        chunk_text=hit.chunk.text,
        relevance_score=hit.score,
        metadata=metadata,
    )


def rows(base: "KnowledgeBase", documents: Sequence[FileDocument]) -> list[ListedDocument]:
    """Return the lines of a list."""
    return [
        ListedDocument(
            id=item.id,
            filename=item.filename,
            format=item.format,
            size_bytes=item.size_bytes,
            date_added=iso_time(item.added_at),
            chunk_count=base.chunk_count(item.id),
            processing_status=item.status,
            processing_method=item.method,
            source=next(iter(base.places.shown_paths(item)), None),
            error=TASK_CODES.get(item.error.code, item.error.code) if item.error is not None else None,
            message=item.error.message if item.error is not None else None,
        )
        for item in documents
    ]


def document_text(base: "KnowledgeBase", arguments: Get, document_id: str) -> DocumentText:
    """Return a part of a document's text, in which each page begins with its number."""
    document = base.get_document(document_id)
    pages = base.read_pages(document_id)
    count = max((page.number for page in pages if page.number is not None), default=None)
    text, starts = mark_pages(_chosen_pages(pages, arguments, count))
    part = text[arguments.offset : arguments.offset + arguments.max_characters]
    following = arguments.offset + len(part)
    returned = pages_between(starts, arguments.offset, following)
    return DocumentText(
        document_id=document_id,
        filename=document.filename,
        format=document.format,
        page_count=count,
        start_page=returned[0] if returned else None,
        end_page=returned[-1] if returned else None,
        text=part,
        offset=arguments.offset,
        total_characters=len(text),
        next_offset=following if following < len(text) else None,
        metadata=_metadata(base, document),
    )


def _chosen_pages(pages: "Sequence[Page]", arguments: Get, count: int | None) -> "list[Page]":
    """Return the pages to read; a document without pages is read whole."""
    if count is None:
        return list(pages)
    first, last = arguments.start_page, min(arguments.end_page or count, count)
    if first > count:
        raise InvalidInput(f"The document has pages 1 to {count}", parameter="start_page")
    if first > last:
        raise InvalidInput(f"end_page ({last}) is before start_page ({first})", parameter="end_page")
    return [page for page in pages if first <= (page.number or 0) <= last]


def passage_text(base: "KnowledgeBase", chunk_id: str, neighbours: int) -> PassageText:
    """Return a chunk with its neighbours, in which each page begins with its number."""
    window = base.read_chunk(chunk_id, neighbours)
    heads = [stored.head for stored in window.chunks]
    return PassageText(
        document_id=window.document.id,
        filename=window.document.filename,
        chunk_id=chunk_id,
        position=window.chunk.head.position + 1,
        chunk_count=window.total,
        page_num=window.chunk.head.page,
        page_end=window.chunk.head.last_page,
        start_page=heads[0].page,
        end_page=heads[-1].last_page,
        text=mark_chunks(window.chunks),
        metadata=_metadata(base, window.document),
    )


def context_facts(collection: "Collection") -> ContextFacts:
    """Return a collection."""
    return ContextFacts(
        name=collection.name,
        description=collection.description,
        document_count=collection.documents,
        date_created=iso_time(collection.created_at) if collection.created_at else None,
    )


def status(found: "KnowledgeStatus") -> Status:
    """Return figures and health."""
    counts, problems, options = found.counts, found.problems, found.options
    return Status(
        knowledge_base=BaseFacts(
            name="default",
            document_count=found.documents.total,
            total_chunks=counts.chunks,
            total_size_bytes=found.size_bytes,
            total_size_mb=round(found.size_bytes / MEGABYTE, 2),
            average_chunks_per_document=round(counts.chunks / counts.documents, 2) if counts.documents else 0.0,
            storage_path=options.storage_place,
            vector_db_path=str(options.index_path),
            pending_count=found.documents.pending or None,
            failed_count=found.documents.failed or None,
            orphaned_count=found.orphans or None,
        ),
        health=Health(
            status="degraded" if problems else "healthy",
            vector_db_connected=found.is_store_usable,
            storage_accessible=found.is_storage_usable,
            embedding_model_loaded=found.is_model_usable,
            issues=list(problems.values()) or None,
        ),
        configuration=ConfigurationFacts(
            embedding_model=found.embedding_model or "none",
            chunk_size=options.reading.split.size,
            max_file_size_mb=options.max_file_size_mb,
        ),
        last_updated=iso_time(found.updated_at) if found.updated_at else None,
    )


def task_state(base: "KnowledgeBase", task_id: str) -> TaskState:
    """Return the state of a task; raise if it failed."""
    task = base.task(task_id)
    match task.status:
        case "failed":
            raise failure(task, task_id=task_id, status="failed")
        case "queued":
            return TaskState(
                task_id=task_id, status="queued", progress=0.0, position=base.position(task), message=_waiting(task)
            )
        case "running":
            return _running(base, task)
        case "cancelled":
            share = round(task.progress.share, 4) if task.progress else 0.0
            return TaskState(
                task_id=task_id, status="cancelled", progress=share, elapsed_time_seconds=_elapsed_seconds(task)
            )
        case _:
            result = {key: (task.result or {}).get(key) for key in TaskResult.model_fields}
            return TaskState(
                task_id=task_id,
                status="completed",
                progress=1.0,
                result=TaskResult(**result),
                total_time_seconds=_elapsed_seconds(task),
            )


def task_view(task: "Task") -> TaskView:
    """Return a task as the protocol's extension sees it."""
    updated = task.finished_at or task.started_at or task.created_at
    match task.status:
        case "queued" | "running":
            step = (task.progress.step if task.progress and task.status == "running" else _waiting(task)) or "Queued"
            return TaskView(task.id, "working", task.created_at, updated, step)
        case "cancelled":
            return TaskView(task.id, "cancelled", task.created_at, updated, "The task was cancelled.")
        case "failed":
            error = failure(task)
            return TaskView(task.id, "completed", task.created_at, updated, error.message, error_reply(error))
        case _:
            return TaskView(task.id, "completed", task.created_at, updated, "Completed", Reply.of(added_document(task)))


def error_reply(error: BedstoneError) -> Reply:
    """Return an error in the contract's shape."""
    payload = {"success": False, "error": error_code(error), "message": error.message, **error.details}
    return Reply(payload, is_error=True)


def added_document(task: "Task") -> Added:
    """Return what a completed task has added."""
    seconds = round((task.finished_at or 0) - (task.started_at or 0), 3)
    return Added(**(task.result or {}), processing_time_seconds=seconds)


def failure(task: "Task", **details: Any) -> TaskFailed:
    """Return why a task has added nothing."""
    if task.error is None:
        return TaskFailed("extraction_failed", "The task was cancelled.", **details)
    code = TASK_CODES.get(task.error.code, task.error.code)
    return TaskFailed(code, task.error.message, **details, elapsed_time_seconds=_elapsed_seconds(task))


def _metadata(base: "KnowledgeBase", document: FileDocument) -> dict[str, Any]:
    """Return the properties of the file, how well it could be read, and the user's metadata."""
    computed = _computed_fields(base, document)
    if document.ocr is not None:
        computed |= {"ocr_used": True, "ocr_pages": document.ocr.pages, "ocr_confidence": document.ocr.confidence}
    if document.warnings:
        computed["warnings"] = list(document.warnings)
    if document.left_out.total:
        computed["left_out"] = document.left_out.counts
    return {"title": document.title, **document.properties} | _with_user_metadata(computed, document.metadata)


def _computed_fields(base: "KnowledgeBase", document: FileDocument) -> dict[str, Any]:
    sources = base.places.shown_paths(document)
    return {
        "format": document.format,
        "date_added": iso_time(document.added_at),
        "context": ", ".join(document.collections),
        **({"source": sources[0]} if sources else {}),
        **({"other_sources": sources[1:]} if len(sources) > 1 else {}),
    }


def _with_user_metadata(computed: dict[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """Return computed fields beside the user's; what has the name of a computed field goes into `user`."""
    reserved = COMPUTED_FIELDS | computed.keys()
    plain = {key: value for key, value in user.items() if key not in reserved}
    clashing = {key: value for key, value in user.items() if key in reserved}
    return {**plain, **computed, **({"user": clashing} if clashing else {})}


def _running(base: "KnowledgeBase", task: "Task") -> TaskState:
    progress = task.progress
    share = progress.share if progress else 0.0
    elapsed = _elapsed_seconds(task)
    ends_at = progress.ends_at if progress else None
    expected = ends_at - time.time() if ends_at is not None else base.estimate_seconds(task) - elapsed
    remaining = max(expected, MIN_REMAINING * elapsed)  # what is overdue will not end right now
    return TaskState(
        task_id=task.id,
        status="running",
        progress=round(share, 4),
        current_step=(progress.step if progress else "") or "Extracting text",
        completed_steps=int(progress.done if progress and progress.total > 1 else 0),
        total_steps=int(progress.total if progress and progress.total > 1 else TOTAL_STEPS),
        elapsed_time_seconds=elapsed,
        estimated_remaining_seconds=round(remaining, 1),
    )


def _waiting(task: "Task") -> str | None:
    """Return why a queued task waits for another attempt, and when that follows."""
    if task.retry is None:
        return None
    return f"Waiting for another attempt at {iso_time(task.retry.at)}: {task.retry.reason}"


def waiting_message(task: "Task") -> str:
    """Return why a document is not read yet, for a caller who wanted to wait for it."""
    return _waiting(task) or "Document queued; the files before it wait for another attempt (see knowledge-status)"


def _elapsed_seconds(task: "Task") -> float:
    return round((task.finished_at or time.time()) - (task.started_at or task.created_at), 1)
