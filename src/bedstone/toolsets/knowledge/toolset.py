"""The knowledge toolset: add files, find passages in them, manage what is there."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from pydantic import Field, create_model

from bedstone.errors import BedstoneError, InvalidInput, MissingArgument, ReadOnly, UnknownTask
from bedstone.services.knowledge.collections import DEFAULT, contexts_of
from bedstone.services.knowledge.opening import watched_folders
from bedstone.toolkit import Arguments, NoArguments, Progress, Reply, TaskView, Tool, Toolset, ToolsetContext, tool
from bedstone.toolsets.knowledge import views
from bedstone.toolsets.knowledge.contract import (
    Add,
    Added,
    Clear,
    Cleared,
    ConfirmClearing,
    ConfirmContextDeletion,
    ConfirmRemoval,
    ContextCreate,
    ContextCreated,
    ContextDelete,
    ContextDeleted,
    ContextList,
    ContextShow,
    ContextShown,
    Documents,
    DocumentText,
    DocumentToRemove,
    FoundPassages,
    Get,
    PassageText,
    Queued,
    Remove,
    Removed,
    Search,
    Show,
    Status,
    TaskState,
    TaskStatusArguments,
)

if TYPE_CHECKING:  # the engine is imported when it is first asked, not when the server starts
    from bedstone.services.knowledge.service import KnowledgeBase
    from bedstone.services.service import Handle
    from bedstone.store.engine import TaskRecord

logger = logging.getLogger(__name__)

PHRASE = "DELETE ALL"
POLL_SECONDS = 0.1
ERROR_NAMES = {
    "missing_argument": "missing_required_parameter",
    "invalid_input": "invalid_parameter",
    "unknown_argument": "invalid_parameter",
}


class KnowledgeToolset(Toolset):
    """Serves one knowledge base, opened when it is first needed."""

    label = "knowledge"
    title = "Knowledge base"
    server_name = "knowledge-server"
    instructions = (
        "Files the team has added: knowledge-search finds passages with their file and page; knowledge-add takes PDF, "
        "Office, HTML and pictures in the background, knowledge-task-status tells how far it is."
    )

    def __init__(
        self, base: "Handle[KnowledgeBase]", *, top_k: tuple[int, int] = (10, 50), read_only: bool = False
    ) -> None:
        super().__init__(base, read_only=read_only)
        self._base = base
        self._top_k = top_k
        self._reports: set[asyncio.Task[None]] = set()  # the event loop keeps no reference of its own

    @classmethod
    def build(cls, context: ToolsetContext) -> "KnowledgeToolset":
        """Serve the knowledge base of the data folder."""
        assert context.service is not None
        watched_folders(context.settings)  # a folder that cannot be watched stops the start
        search = context.settings.search
        return cls(context.service, top_k=(search.default_top_k, search.max_top_k), read_only=context.read_only)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[object]:
        """Stop reporting progress when the product closes."""
        async with super().opened():
            try:
                yield self
            finally:
                for report in self._reports:
                    report.cancel()

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """As declared, with the operator's number of results."""
        default, most = self._top_k
        top_k = (int, Field(default, ge=1, le=most, description=Search.model_fields["top_k"].description))
        search = create_model("Search", __base__=Search, top_k=top_k)
        declared = super().tools
        return {**declared, "knowledge-search": replace(declared["knowledge-search"], arguments=search)}

    @tool(
        "knowledge-add",
        "Add a document or image to the knowledge base for semantic search",
        title="Add a file",
        background=True,
        read_only=False,
        open_world=True,
    )
    async def add(self, arguments: Add, progress: Progress) -> Queued | Added:
        """Check and copy the file, then read it now or in the background."""
        if arguments.in_background:
            task = await self._added(arguments)
            await progress(0.0, 1.0, "Queued")
            later = progress.later(task.id)
            if later is not None:
                report = asyncio.create_task(self._report(task.id, later))
                self._reports.add(report)
                report.add_done_callback(self._reports.discard)
            seconds = await self._base.run(lambda base: base.estimate(int(task.details["size"])))
            return Queued(task_id=task.id, message="Document queued for processing", estimated_time_seconds=seconds)
        task = await self._added(arguments)
        try:
            ended = await self._wait(task.id, progress)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._base.run(lambda base: base.tasks.cancel(task.id))
            raise
        if ended.status != "completed":
            raise views.failure(ended)
        await progress(1.0, 1.0, "Completed")
        return views.added(ended)

    @tool("knowledge-search", "Search the knowledge base using natural language query", title="Search knowledge")
    async def search(self, arguments: Search) -> FoundPassages:
        """Passages with their file and page, the best first."""
        started = time.perf_counter()
        hits = await self._base.run(
            lambda base: base.search(
                arguments.query,
                top_k=arguments.top_k,
                min_relevance=arguments.min_relevance,
                filters=arguments.filters,
                context=arguments.context,
            )
        )
        return FoundPassages(
            query=arguments.query,
            results=[views.passage(hit) for hit in hits],
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
        filename = await self._base.run(lambda base: base.removable(document_id))
        if not arguments.confirm:
            count = await self._base.run(lambda base: base.chunk_count(document_id))
            return ConfirmRemoval(
                message="Set confirm=true to remove this document",
                document=DocumentToRemove(id=document_id, filename=filename, chunks=count),
            )
        count = await self._base.run(lambda base: base.remove(document_id))
        return Removed(
            document_id=document_id, filename=filename, chunks_removed=count, message="Document removed successfully"
        )

    @tool("knowledge-show", "List all documents in the knowledge base with metadata", title="List documents")
    async def show(self, arguments: Show) -> Documents:
        """What is there and what is on its way, a page at a time."""
        page, total = await self._base.run(lambda base: views.listed(base, arguments))
        if not total:
            said = f"Context '{arguments.context}' is empty" if arguments.context else "Knowledge base is empty"
            return Documents(documents=[], total_count=0, message=said)
        return Documents(documents=page, total_count=total, limit=arguments.limit, offset=arguments.offset)

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
            count = await self._base.run(lambda base: base.store.counts().documents)
            return ConfirmClearing(
                message="This action will delete ALL documents. "
                "Set confirm=true and confirmation_phrase='DELETE ALL' to proceed",
                current_document_count=count,
            )
        documents, vectors, megabytes = await self._base.run(lambda base: base.clear())
        return Cleared(
            documents_removed=documents,
            embeddings_removed=vectors,
            storage_freed_mb=round(megabytes, 2),
            message="Knowledge base cleared successfully",
        )

    @tool("knowledge-status", "Get knowledge base statistics and health status", title="Knowledge base status")
    async def status(self, _: NoArguments) -> Status:
        """Figures, and health as probed just now."""
        return await self._base.run(views.status)

    @tool("knowledge-task-status", "Get status of an async processing task", title="Task status")
    async def task_status(self, arguments: TaskStatusArguments) -> TaskState:
        """Where a task is."""
        return await self._base.run(lambda base: views.task_state(base, arguments.task_id))

    @tool(
        "knowledge-get",
        "Read a document's text by pages, or a passage with its neighbours",
        title="Read a document",
    )
    async def get(self, arguments: Get) -> DocumentText | PassageText:
        """The text as it was read from the file."""
        chunk_id, document_id = arguments.chunk_id, arguments.document_id
        if chunk_id is not None and document_id is not None:
            raise InvalidInput("Give document_id or chunk_id, not both", parameter="chunk_id")
        if chunk_id is not None:
            return await self._base.run(lambda base: views.passage_text(base, chunk_id, arguments.neighbours))
        if document_id is None:
            raise MissingArgument("Missing required parameter: document_id", parameter="document_id")
        return await self._base.run(lambda base: views.document_text(base, arguments, document_id))

    @tool(
        "knowledge-context-create",
        "Create a context: a named collection of documents",
        title="Create a context",
        read_only=False,
    )
    async def context_create(self, arguments: ContextCreate) -> ContextCreated:
        """A collection without documents."""
        made = await self._base.run(lambda base: base.contexts.create(arguments.name, arguments.description))
        return ContextCreated(context=views.context_facts(made), message=f"Context '{made.name}' created")

    @tool("knowledge-context-list", "List the contexts of the knowledge base", title="List contexts")
    async def context_list(self, _: NoArguments) -> ContextList:
        """All of them, `default` first."""
        found = await self._base.run(lambda base: base.contexts.all())
        return ContextList(contexts=[views.context_facts(item) for item in found], total_count=len(found))

    @tool("knowledge-context-show", "Show a context and its documents", title="Show a context")
    async def context_show(self, arguments: ContextShow) -> ContextShown:
        """A context, its documents a page at a time."""
        context = await self._base.run(lambda base: base.contexts.get(arguments.name))
        asked = Show(limit=arguments.limit, offset=arguments.offset, context=arguments.name)
        page, total = await self._base.run(lambda base: views.listed(base, asked))
        return ContextShown(
            context=views.context_facts(context),
            documents=page,
            total_count=total,
            limit=arguments.limit,
            offset=arguments.offset,
        )

    @tool(
        "knowledge-context-delete",
        "Delete a context; its documents stay in their other contexts or move to the default one",
        title="Delete a context",
        read_only=False,
        destructive=True,
    )
    async def context_delete(self, arguments: ContextDelete) -> ContextDeleted | ConfirmContextDeletion:
        """Ask first where documents would belong nowhere."""
        name = arguments.name
        held = await self._base.run(lambda base: base.contexts.documents(name))
        alone = sum(contexts_of(document) == (name,) for document in held)
        if alone and not arguments.confirm and name != DEFAULT:
            return ConfirmContextDeletion(
                message=f"Documents that are in no other context will move to '{DEFAULT}'. Set confirm=true to proceed",
                name=name,
                documents_only_here=alone,
            )
        count = await self._base.run(lambda base: base.contexts.delete(name))
        return ContextDeleted(
            name=name,
            documents_unlinked=count,
            documents_moved_to_default=alone,
            message=f"Context '{name}' deleted",
        )

    def render_error(self, error: BedstoneError) -> Reply:
        """The contract's names and shape."""
        name = ERROR_NAMES.get(error.code, error.code)
        return Reply({"success": False, "error": name, "message": error.message, **error.details}, is_error=True)

    async def start_task(self, name: str, arguments: Arguments) -> TaskView:
        """Begin to read a file."""
        assert name == "knowledge-add"
        assert isinstance(arguments, Add)
        task = await self._added(arguments)
        return await self._base.run(lambda base: views.task_view(base, task))

    async def task(self, task_id: str) -> TaskView:
        """How far a file's processing has come."""
        task = await self._record(task_id)
        return await self._base.run(lambda base: views.task_view(base, task))

    async def cancel_task(self, task_id: str) -> bool:
        """Cancel a file's processing."""
        await self._record(task_id)
        if self._read_only:
            raise ReadOnly("This server is read-only; cancelling would change something.")
        return await self._base.run(lambda base: base.tasks.cancel(task_id))

    async def _added(self, arguments: Add) -> "TaskRecord":
        return await self._base.run(
            lambda base: base.add(
                Path(arguments.file_path),
                arguments.metadata or {},
                force_ocr=arguments.force_ocr,
                contexts=arguments.contexts or (),
            )
        )

    async def _record(self, task_id: str) -> "TaskRecord":
        task = await self._base.run(lambda base: base.store.task(task_id))
        if task is None:
            raise UnknownTask(f"Unknown task: {task_id}", task_id=task_id)
        return task

    async def _wait(self, task_id: str, progress: Progress) -> "TaskRecord":
        """Until a task has ended, telling how far it is."""
        base = await self._base.open()
        said = -1.0
        while (task := await to_thread.run_sync(base.store.task, task_id)) is not None and not task.finished:
            current = base.tasks.progress(task_id)
            if current is not None and current.share > said:
                said = current.share
                await progress(round(said, 4), 1.0, current.step or "Starting")
            await anyio.sleep(POLL_SECONDS)
        assert task is not None
        return task

    async def _report(self, task_id: str, progress: Progress) -> None:
        """Tell about a task whose call was answered long ago; a client that is gone by now is no problem."""
        try:
            ended = await self._wait(task_id, progress)
            await progress(1.0, 1.0, ended.status.capitalize())
        except Exception:
            logger.debug("Nobody hears how far %s is", task_id, exc_info=True, extra={"action": "unheard"})
