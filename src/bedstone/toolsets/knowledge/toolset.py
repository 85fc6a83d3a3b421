"""The knowledge toolset: add files, find passages in them, manage what is there."""

import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from anyio import to_thread

from bedstone.errors import BedstoneError, NotFound, UnknownTask
from bedstone.toolkit import NoArguments, Progress, Reply, Toolset, tool
from bedstone.toolsets.knowledge.contract import (
    Add,
    Added,
    BaseFacts,
    Clear,
    Cleared,
    ConfigurationFacts,
    ConfirmClearing,
    ConfirmRemoval,
    Documents,
    DocumentToRemove,
    FoundPassage,
    FoundPassages,
    Health,
    ListedDocument,
    Queued,
    Remove,
    Removed,
    Search,
    Show,
    Status,
    TaskResult,
    TaskState,
    TaskStatusArguments,
)

if TYPE_CHECKING:  # the engine is imported when it is first asked, not when the server starts
    from bedstone.documents import Document
    from bedstone.library.knowledge.base import KnowledgeBase, KnowledgeHit
    from bedstone.store.engine import TaskRecord

Answer = TypeVar("Answer")

PHRASE = "DELETE ALL"
POLL_SECONDS = 0.1
MEGABYTE = 2**20
ERROR_NAMES = {
    "missing_argument": "missing_required_parameter",
    "invalid_input": "invalid_parameter",
    "unknown_argument": "invalid_parameter",
}


class TaskNotFound(NotFound):
    """No task has that id."""

    code = "task_not_found"


class TaskFailed(BedstoneError):
    """A task ended with an error; its own name and sentence are told."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.code = code


class KnowledgeToolset(Toolset):
    """Serves one knowledge base, opened when it is first needed."""

    label = "knowledge"
    title = "Knowledge base"
    server_name = "knowledge-server"
    instructions = (
        "Files the team has added: knowledge-search finds passages with their file and page; knowledge-add takes PDF, "
        "Office, HTML and pictures in the background, knowledge-task-status tells how far it is."
    )

    def __init__(self, open_base: "Callable[[], KnowledgeBase]", *, resume: Path, read_only: bool = False) -> None:
        super().__init__(read_only=read_only)
        self._open_base = open_base
        self._resume = resume
        self._lock = threading.Lock()
        self._opened: KnowledgeBase | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[object]:
        """Go on with interrupted work, without keeping the start waiting; let go of everything at the end."""
        if self._resume.exists():
            threading.Thread(target=self._base, name="knowledge-open", daemon=True).start()
        try:
            yield self
        finally:
            with self._lock:
                if self._opened is not None:
                    self._opened.close()
                    self._opened = None

    @tool(
        "knowledge-add",
        "Add a document or image to the knowledge base for semantic search",
        title="Add a file",
        read_only=False,
        open_world=True,
    )
    async def add(self, arguments: Add, progress: Progress) -> Queued | Added:
        """Check and copy the file, then read it now or in the background."""
        admitted = await self._ask(
            lambda base: base.admit(
                Path(arguments.file_path).expanduser(), arguments.metadata or {}, force_ocr=arguments.force_ocr
            )
        )
        task = await self._ask(lambda base: base.add(admitted))
        if arguments.in_background:
            seconds = await self._ask(lambda base: base.estimate(int(admitted.details["size"])))
            return Queued(task_id=task.id, message="Document queued for processing", estimated_time_seconds=seconds)
        ended = await self._wait(task.id, progress)
        if ended.status != "completed":
            raise _failure(ended)
        result = ended.details["result"]
        taken = round((ended.finished or 0) - (ended.started or 0), 3)
        return Added(**result, processing_time_seconds=taken)

    @tool("knowledge-search", "Search the knowledge base using natural language query", title="Search knowledge")
    async def search(self, arguments: Search) -> FoundPassages:
        """Passages with their file and page, the best first."""
        started = time.perf_counter()
        hits = await self._ask(
            lambda base: base.search(
                arguments.query,
                top_k=arguments.top_k,
                min_relevance=arguments.min_relevance,
                filters=arguments.filters,
            )
        )
        return FoundPassages(
            query=arguments.query,
            results=[_passage(hit) for hit in hits],
            total_results=len(hits),
            message=None if hits else "No documents found matching your query",
            search_time_ms=round((time.perf_counter() - started) * 1000),
        )

    @tool(
        "knowledge-remove",
        "Remove a specific document from the knowledge base",
        title="Remove a document",
        read_only=False,
        destructive=True,
    )
    async def remove(self, arguments: Remove) -> Removed | ConfirmRemoval:
        """Ask first."""
        document_id = arguments.document_id
        document = await self._ask(lambda base: base.document(document_id))
        filename = document.metadata["filename"]
        if not arguments.confirm:
            count = await self._ask(lambda base: base.chunk_count(document_id))
            return ConfirmRemoval(
                message="Set confirm=true to remove this document",
                document=DocumentToRemove(id=document_id, filename=filename, chunks=count),
            )
        count = await self._ask(lambda base: base.remove(document_id))
        return Removed(
            document_id=document_id, filename=filename, chunks_removed=count, message="Document removed successfully"
        )

    @tool("knowledge-show", "List all documents in the knowledge base with metadata", title="List documents")
    async def show(self, arguments: Show) -> Documents:
        """What is there and what is on its way, a page at a time."""
        documents = await self._ask(lambda base: _listed(base, arguments))
        if not documents:
            return Documents(documents=[], total_count=0, message="Knowledge base is empty")
        page = documents[arguments.offset : arguments.offset + arguments.limit]
        return Documents(documents=page, total_count=len(documents), limit=arguments.limit, offset=arguments.offset)

    @tool(
        "knowledge-clear",
        "Remove all documents from the knowledge base",
        title="Remove everything",
        read_only=False,
        destructive=True,
    )
    async def clear(self, arguments: Clear) -> Cleared | ConfirmClearing:
        """Only with the phrase."""
        if arguments.confirm is not True or arguments.confirmation_phrase != PHRASE:
            count = await self._ask(lambda base: base.store.counts().documents)
            return ConfirmClearing(
                message="This action will delete ALL documents. "
                "Set confirm=true and confirmation_phrase='DELETE ALL' to proceed",
                current_document_count=count,
            )
        documents, vectors, megabytes = await self._ask(lambda base: base.clear())
        return Cleared(
            documents_removed=documents,
            embeddings_removed=vectors,
            storage_freed_mb=round(megabytes, 2),
            message="Knowledge base cleared successfully",
        )

    @tool("knowledge-status", "Get knowledge base statistics and health status", title="Knowledge base status")
    async def status(self, _: NoArguments) -> Status:
        """Figures, and health as probed just now."""
        return await self._ask(_status)

    @tool("knowledge-task-status", "Get status of an async processing task", title="Task status")
    async def task_status(self, arguments: TaskStatusArguments) -> TaskState:
        """Where a task is."""
        return await self._ask(lambda base: _task_state(base, arguments.task_id))

    def render_error(self, error: BedstoneError) -> Reply:
        """The contract's names and shape."""
        name = ERROR_NAMES.get(error.code, error.code)
        return Reply({"success": False, "error": name, "message": error.message, **error.details}, is_error=True)

    async def cancel_task(self, task_id: str) -> bool:
        """Cancel a file's processing."""
        if await self._ask(lambda base: base.store.task(task_id)) is None:
            raise UnknownTask(f"Unknown task: {task_id}", task_id=task_id)
        return await self._ask(lambda base: base.tasks.cancel(task_id))

    async def _wait(self, task_id: str, progress: Progress) -> "TaskRecord":
        """Wait for a task and report how far it is; whoever gives up waiting gives up the task."""
        base = self._base()
        try:
            said = -1.0
            while (task := await to_thread.run_sync(base.store.task, task_id)) is not None and not task.finished:
                current = base.tasks.progress(task_id)
                if current is not None and current.share > said:
                    said = current.share
                    await progress(round(said, 4), 1.0, current.step or "Starting")
                await anyio.sleep(POLL_SECONDS)
        except anyio.get_cancelled_exc_class():
            base.tasks.cancel(task_id)
            raise
        assert task is not None
        if task.status == "completed":
            await progress(1.0, 1.0, "Completed")
        return task

    async def _ask(self, question: "Callable[[KnowledgeBase], Answer]") -> Answer:
        return await to_thread.run_sync(lambda: question(self._base()))

    def _base(self) -> "KnowledgeBase":
        with self._lock:
            if self._opened is None:
                self._opened = self._open_base()
            return self._opened


def _passage(hit: "KnowledgeHit") -> FoundPassage:
    from bedstone.library.knowledge.documents import iso, user_metadata  # noqa: PLC0415

    facts = hit.document.metadata
    chunk = hit.stored.chunk
    metadata = {**user_metadata(hit.document), "format": facts["format"], "date_added": iso(float(facts["added"]))}
    if chunk.page is not None:
        metadata["page_num"] = chunk.page
    if chunk.breadcrumb:
        metadata["heading"] = " > ".join(chunk.breadcrumb)
    return FoundPassage(
        document_id=hit.document.id,
        chunk_id=chunk.id,
        filename=facts["filename"],
        chunk_text=chunk.text,
        relevance_score=hit.score,
        metadata=metadata,
    )


def _listed(base: "KnowledgeBase", arguments: Show) -> list[ListedDocument]:
    from bedstone.library.knowledge.documents import ordered  # noqa: PLC0415

    documents = {item.id: item for item in base.documents()}
    waiting = [_waiting(task) for task in base.store.tasks({"queued", "running"})]
    every = [*documents.values(), *(item for item in waiting if item.id not in documents)]
    counts = base.store.chunk_counts()
    shown = ordered(every, arguments.sort_by, descending=arguments.sort_order == "desc")
    return [_row(item, counts.get(item.id, 0)) for item in shown]


def _waiting(task: "TaskRecord") -> "Document":
    """A document that is not there yet, as far as it is known."""
    from bedstone.documents import Document  # noqa: PLC0415

    details = task.details
    status = "processing" if task.status == "running" else "pending"
    facts = {
        "filename": str(details["filename"]),
        "format": str(details["format"]),
        "size": str(details["size"]),
        "added": str(task.created),
        "status": status,
    }
    return Document(str(details["document_id"]), "", str(details["digest"]), facts)


def _row(document: "Document", chunks: int) -> ListedDocument:
    from bedstone.library.knowledge.documents import iso  # noqa: PLC0415

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


def _status(base: "KnowledgeBase") -> Status:
    from bedstone.library.knowledge.documents import iso  # noqa: PLC0415

    counts = base.store.counts()
    size = int(base.size_on_disk())
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
            chunk_size=base.options.split.size,
            max_file_size_mb=base.options.max_file_size_mb,
        ),
        last_updated=iso(changed) if changed else None,
    )


def _task_state(base: "KnowledgeBase", task_id: str) -> TaskState:
    task = base.store.task(task_id)
    if task is None:
        raise TaskNotFound(f"Task with ID '{task_id}' not found", task_id=task_id)
    match task.status:
        case "failed":
            raise _failure(task, task_id=task_id, status="failed")
        case "queued":
            return TaskState(task_id=task_id, status="queued", progress=0.0, position=base.tasks.position(task_id))
        case "running":
            return _running(base, task)
        case "cancelled":
            share = float(task.details.get("progress", 0.0))
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


def _running(base: "KnowledgeBase", task: "TaskRecord") -> TaskState:
    progress = base.tasks.progress(task.id)
    share = progress.share if progress else 0.0
    elapsed = _elapsed(task)
    estimate = base.estimate(int(task.details["size"]))
    remaining = elapsed * (1 - share) / share if share > 0.1 else max(0.0, estimate - elapsed)  # noqa: PLR2004
    return TaskState(
        task_id=task.id,
        status="running",
        progress=round(share, 4),
        current_step=(progress.step if progress else "") or "Extracting text",
        completed_steps=int(progress.done if progress and progress.total > 1 else 0),
        total_steps=int(progress.total if progress and progress.total > 1 else 20),
        elapsed_time_seconds=elapsed,
        estimated_remaining_seconds=round(remaining, 1),
    )


def _elapsed(task: "TaskRecord") -> float:
    return round((task.finished or time.time()) - (task.started or task.created), 1)


def _failure(task: "TaskRecord", **more: Any) -> TaskFailed:
    if task.status == "cancelled":
        return TaskFailed("cancelled", "The task was cancelled.", **more)
    return TaskFailed(
        str(task.details.get("error")), str(task.details.get("message")), **more, elapsed_time_seconds=_elapsed(task)
    )
