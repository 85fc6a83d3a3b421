"""What a knowledge base holds, as the contract's answers show it."""

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bedstone.errors import BedstoneError, InvalidInput, NotFound
from bedstone.records import Document, StoredChunk
from bedstone.services.knowledge.collections import Context, contexts_of
from bedstone.services.knowledge.listing import iso, ordered, user_metadata
from bedstone.toolkit import Reply, TaskView
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
    Show,
    Status,
    TaskResult,
    TaskState,
)

if TYPE_CHECKING:  # the engine is imported when it is first asked, not when the server starts
    from bedstone.services.knowledge.service import KnowledgeBase, KnowledgeHit
    from bedstone.store.engine import TaskRecord

MEGABYTE = 2**20
STEPS = 20
TELLING = 0.1  # from this share on the time a task took so far says more than the speed of others
# Whatever else ends a task is told under a name that the contract has.
TASK_ERRORS = {"interrupted": "extraction_failed", "internal_error": "extraction_failed"}


class TaskNotFound(NotFound):
    """No task has that id."""

    code = "task_not_found"


class TaskFailed(BedstoneError):
    """A task ended with an error; its own name and sentence are told."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.code = code


def passage(hit: "KnowledgeHit") -> FoundPassage:
    """A passage that was found."""
    chunk = hit.stored.chunk
    metadata = _metadata(hit.document)
    if chunk.page is not None:
        metadata["page_num"] = chunk.page
    if chunk.breadcrumb:
        metadata["heading"] = " > ".join(chunk.breadcrumb)
    return FoundPassage(
        document_id=hit.document.id,
        chunk_id=chunk.id,
        filename=hit.document.metadata["filename"],
        chunk_text=chunk.text,
        relevance_score=hit.score,
        metadata=metadata,
    )


def listed(base: "KnowledgeBase", arguments: Show) -> tuple[list[ListedDocument], int]:
    """A page of everything, in order; and how much there is in all."""
    if arguments.context is not None:
        base.contexts.check([arguments.context])
    every = everything(base, arguments.context)
    shown = list(ordered(every, arguments.sort_by, descending=arguments.sort_order == "desc"))
    return rows(base, shown[arguments.offset : arguments.offset + arguments.limit]), len(shown)


def everything(base: "KnowledgeBase", context: str | None = None) -> list[Document]:
    """What is there, what is on its way and what failed."""
    documents = {item.id: item for item in base.documents()}
    tasks = [*base.store.tasks({"queued", "running"}, limit=10**6), *base.failures()]
    unfinished = [_unfinished(task) for task in tasks]
    digests = {item.digest for item in documents.values()}
    lacking = {item.digest: item for item in unfinished if item.id not in documents and item.digest not in digests}
    every = (*documents.values(), *lacking.values())
    return [item for item in every if context is None or context in contexts_of(item)]


def rows(base: "KnowledgeBase", documents: Sequence[Document]) -> list[ListedDocument]:
    """Lines of a list."""
    return [_row(item, base.chunk_count(item.id)) for item in documents]


def _row(document: Document, chunks: int) -> ListedDocument:
    facts = document.metadata
    return ListedDocument.model_validate(
        {
            "id": document.id,
            "filename": facts["filename"],
            "format": facts["format"],
            "size_bytes": int(facts["size"]),
            "date_added": iso(float(facts["added"])),
            "chunk_count": chunks,
            "processing_status": facts["status"],
            "processing_method": facts.get("method"),
        }
    )


def document_text(base: "KnowledgeBase", arguments: Get, document_id: str) -> DocumentText:
    """A stretch of a document's text."""
    document = base.document(document_id)
    pages = base.pages(document_id)
    numbers = [page.number for page in pages if page.number is not None]
    if numbers:
        last = min(arguments.end_page or numbers[-1], numbers[-1])
        if arguments.start_page > last:
            raise InvalidInput(f"The document has pages 1 to {numbers[-1]}", parameter="start_page")
        pages = [page for page in pages if arguments.start_page <= (page.number or 0) <= last]
    text = "\n\n".join(page.markdown for page in pages)
    part = text[arguments.offset : arguments.offset + arguments.max_characters]
    following = arguments.offset + len(part)
    return DocumentText(
        document_id=document_id,
        filename=document.metadata["filename"],
        format=document.metadata["format"],
        page_count=numbers[-1] if numbers else None,
        start_page=pages[0].number if pages else None,
        end_page=pages[-1].number if pages else None,
        text=part,
        offset=arguments.offset,
        total_characters=len(text),
        next_offset=following if following < len(text) else None,
        metadata=_facts(document) | _metadata(document),
    )


def passage_text(base: "KnowledgeBase", chunk_id: str, neighbours: int) -> PassageText:
    """A passage among its neighbours."""
    stored = base.chunk(chunk_id)
    document = base.document(stored.document)
    chunks = base.store.chunks_of(document.id)
    first = max(0, stored.position - neighbours)
    return PassageText(
        document_id=document.id,
        filename=document.metadata["filename"],
        chunk_id=chunk_id,
        position=stored.position + 1,
        chunk_count=len(chunks),
        page_num=stored.chunk.page,
        text=_joined(chunks[first : stored.position + neighbours + 1]),
        metadata=_facts(document) | _metadata(document),
    )


def context_facts(context: Context) -> ContextFacts:
    """A context."""
    return ContextFacts(
        name=context.name,
        description=context.description,
        document_count=context.documents,
        date_created=iso(context.created) if context.created else None,
    )


def status(base: "KnowledgeBase") -> Status:
    """Figures, and health as probed just now."""
    counts = base.store.counts()
    size = base.size_on_disk()
    issues = base.issues()
    embedder = base.embedder
    changed = base.last_updated()
    return Status(
        knowledge_base=BaseFacts(
            name="default",
            document_count=counts.documents,
            total_chunks=counts.chunks,
            total_size_bytes=size,
            total_size_mb=round(size / MEGABYTE, 2),
            average_chunks_per_document=round(counts.chunks / counts.documents, 2) if counts.documents else 0.0,
            storage_path=str(base.options.documents_path),
            vector_db_path=str(base.options.index_path),
        ),
        health=Health(
            status="degraded" if issues else "healthy",
            vector_db_connected="vector_db" not in issues,
            storage_accessible="storage" not in issues,
            embedding_model_loaded=embedder is not None and "embedding_model" not in issues,
            issues=list(issues.values()) or None,
        ),
        configuration=ConfigurationFacts(
            embedding_model=embedder.name if embedder is not None else "none",
            chunk_size=base.options.reading.split.size,
            max_file_size_mb=base.options.max_file_size_mb,
        ),
        last_updated=iso(changed) if changed else None,
    )


def task_state(base: "KnowledgeBase", task_id: str) -> TaskState:
    """Where a task is; one that failed is an error."""
    task = base.store.task(task_id)
    if task is None:
        raise TaskNotFound(f"Task with ID '{task_id}' not found", task_id=task_id)
    match task.status:
        case "failed":
            raise failure(task, task_id=task_id, status="failed")
        case "queued":
            return TaskState(task_id=task_id, status="queued", progress=0.0, position=base.tasks.position(task_id))
        case "running":
            return _running(base, task)
        case "cancelled":
            share = float(task.details.get("share", 0.0))
            return TaskState(
                task_id=task_id, status="cancelled", progress=round(share, 4), elapsed_time_seconds=_elapsed(task)
            )
        case _:
            result = {key: task.details["result"].get(key) for key in TaskResult.model_fields}
            return TaskState(
                task_id=task_id,
                status="completed",
                progress=1.0,
                result=TaskResult(**result),
                total_time_seconds=_elapsed(task),
            )


def task_view(base: "KnowledgeBase", task: "TaskRecord") -> TaskView:
    """A task as the protocol's extension sees it."""
    progress = base.tasks.progress(task.id)
    updated = task.finished or task.started or task.created
    match task.status:
        case "queued" | "running":
            step = (progress.step if progress else "") or "Queued"
            return TaskView(task.id, "working", task.created, updated, step)
        case "cancelled":
            return TaskView(task.id, "cancelled", task.created, updated, "The task was cancelled.")
        case "failed":
            error = failure(task)
            payload = {"success": False, "error": error.code, "message": error.message, **error.details}
            return TaskView(task.id, "completed", task.created, updated, error.message, Reply(payload, is_error=True))
        case _:
            return TaskView(task.id, "completed", task.created, updated, "Completed", Reply.of(added(task)))


def added(task: "TaskRecord") -> Added:
    """What a finished task has added."""
    taken = round((task.finished or 0) - (task.started or 0), 3)
    return Added(**task.details["result"], processing_time_seconds=taken)


def failure(task: "TaskRecord", **more: Any) -> TaskFailed:
    """Why a task has added nothing."""
    if task.status == "cancelled":
        return TaskFailed("extraction_failed", "The task was cancelled.", **more)
    name = str(task.details.get("error"))
    message = str(task.details.get("message"))
    return TaskFailed(TASK_ERRORS.get(name, name), message, **more, elapsed_time_seconds=_elapsed(task))


def _metadata(document: Document) -> dict[str, Any]:
    facts = document.metadata
    return {
        **user_metadata(document),
        "format": facts["format"],
        "date_added": iso(float(facts["added"])),
        "context": ", ".join(contexts_of(document)),
    }


def _facts(document: Document) -> dict[str, Any]:
    """What the file says of itself, and how well it could be read."""
    facts = document.metadata
    found: dict[str, Any] = {"title": document.title, **json.loads(facts.get("facts") or "{}")}
    if "ocr_pages" in facts:
        found |= {
            "ocr_used": True,
            "ocr_pages": int(facts["ocr_pages"]),
            "ocr_confidence": float(facts["ocr_confidence"]),
        }
    if warnings := json.loads(facts.get("warnings") or "[]"):
        found["warnings"] = warnings
    return found


def _joined(chunks: Sequence[StoredChunk]) -> str:
    return "\n\n".join(stored.chunk.text for stored in chunks)


def _unfinished(task: "TaskRecord") -> Document:
    """A document that is not there yet, or never will be, as far as it is known."""
    details = task.details
    status = {"queued": "pending", "running": "processing"}.get(task.status, "failed")
    facts = {
        "filename": str(details["filename"]),
        "format": str(details["format"]),
        "size": str(details["size"]),
        "added": str(task.created),
        "status": status,
        "contexts": json.dumps(details.get("contexts")),
    }
    return Document(str(details["document_id"]), "", str(details["digest"]), facts)


def _running(base: "KnowledgeBase", task: "TaskRecord") -> TaskState:
    progress = base.tasks.progress(task.id)
    share = progress.share if progress else 0.0
    elapsed = _elapsed(task)
    estimate = base.estimate(int(task.details["size"]))
    remaining = elapsed * (1 - share) / share if share > TELLING else max(0.0, estimate - elapsed)
    return TaskState(
        task_id=task.id,
        status="running",
        progress=round(share, 4),
        current_step=(progress.step if progress else "") or "Extracting text",
        completed_steps=int(progress.done if progress and progress.total > 1 else 0),
        total_steps=int(progress.total if progress and progress.total > 1 else STEPS),
        elapsed_time_seconds=elapsed,
        estimated_remaining_seconds=round(remaining, 1),
    )


def _elapsed(task: "TaskRecord") -> float:
    return round((task.finished or time.time()) - (task.started or task.created), 1)
