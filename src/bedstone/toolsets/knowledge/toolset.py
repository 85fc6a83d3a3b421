"""The knowledge toolset: add files, search them, manage documents."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from pydantic import Field, create_model

from bedstone.errors import BedstoneError, InvalidInput, InvalidSetting, MissingArgument, ReadOnly
from bedstone.services.knowledge.opening import unopened_status, watched_folders
from bedstone.services.knowledge.records import DEFAULT_COLLECTION
from bedstone.toolkit import (
    Arguments,
    Links,
    NoArguments,
    Progress,
    Reply,
    TaskView,
    Tool,
    Toolset,
    ToolsetContext,
    tool,
)
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
    ListedDocument,
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
from bedstone.user_paths import parse_path

if TYPE_CHECKING:  # the engine is imported when it is first needed, not when the server starts
    from bedstone.records import Task
    from bedstone.services.knowledge.service import KnowledgeBase
    from bedstone.services.service import Handle

logger = logging.getLogger(__name__)

PHRASE = "DELETE ALL"
REPORT_SECONDS = 0.05  # at least, between two reports of progress
MAX_WATCHERS = 1_000  # threads that wait for tasks; they leave those of other calls free


class KnowledgeToolset(Toolset):
    """Serves one knowledge base, which is opened when it is first needed."""

    label = "knowledge"
    title = "Documents"
    server_name = "knowledge-server"
    instructions = (
        "Files the team has added: knowledge-search finds passages with their file and page; knowledge-add takes PDF, "
        "Office, HTML and pictures in the background, knowledge-task-status tells how far it is."
    )

    def __init__(
        self,
        base: "Handle[KnowledgeBase]",
        *,
        top_k: tuple[int, int] = (10, 50),
        links: Links | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(base, read_only=read_only)
        self._base = base
        self._links = links or Links()
        self._top_k = top_k
        self._reports: set[asyncio.Task[None]] = set()  # the event loop keeps weak references only

    @classmethod
    def build(cls, context: ToolsetContext) -> "KnowledgeToolset":
        """Serve the knowledge base of the data folder."""
        assert context.service is not None
        watched_folders(context.settings)  # a folder that cannot be watched stops the start
        settings = context.settings
        top_k = (settings.search.default_top_k, settings.search.max_top_k)
        return cls(context.service, top_k=top_k, links=context.links, read_only=context.read_only)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[object]:  # prose: ok - public API
        """Stop reporting progress when the product closes."""
        async with super().opened():
            try:
                yield self
            finally:
                for report in self._reports:
                    report.cancel()

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """Return the declared tools, with the operator's number of results."""
        default, maximum = self._top_k
        top_k = (int, Field(default, ge=1, le=maximum, description=Search.model_fields["top_k"].description))
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
        task = await self._submit(arguments)
        if arguments.in_background:
            await progress(0.0, 1.0, "Queued")
            later = progress.later(task.id)
            if later is not None:
                report = asyncio.create_task(self._report(task.id, later))
                self._reports.add(report)
                report.add_done_callback(self._reports.discard)
            seconds = await self._base.run(lambda base: base.estimate_wait(task))
            return Queued(task_id=task.id, message="Document queued for processing", estimated_time_seconds=seconds)
        try:
            ended = await self._wait(task.id, progress, until_delayed=True)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._base.run(lambda base: base.cancel(task.id, seconds=0))
            raise
        if ended.status == "queued":  # the machine cannot do it now: a caller is not kept waiting for that
            seconds = await self._base.run(lambda base: base.estimate_wait(ended))
            return Queued(task_id=task.id, message=views.waiting_message(ended), estimated_time_seconds=seconds)
        if ended.status != "completed":
            raise views.failure(ended)
        await progress(1.0, 1.0, "Completed")
        return views.added_document(ended)

    @tool(
        "knowledge-search",
        "Search the knowledge base using natural language query. Filter by format (one or a list), date_range "
        "(start, end) or keys of the documents' metadata",
        title="Search knowledge",
    )
    async def search(self, arguments: Search) -> FoundPassages:
        """Return chunks with their file and page, the best first."""
        from bedstone.services.knowledge.searching import KnowledgeQuery  # noqa: PLC0415 - loads the engine

        started = time.perf_counter()
        limits = (arguments.top_k, arguments.min_relevance)
        query = KnowledgeQuery(arguments.query, *limits, arguments.filters or {}, arguments.context)
        hits, notice = await self._base.run(lambda base: (base.search(query), base.search_notice(query.text)))
        return FoundPassages(
            query=arguments.query,
            results=await self._base.run(
                lambda base: [views.passage(base, hit, arguments.query, self._links) for hit in hits]
            ),
            total_results=len(hits),
            message=None if hits else "No documents found matching your query",
            notice=notice,
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
        """Ask for confirmation first."""
        document_id = arguments.document_id
        filename = await self._base.run(lambda base: base.filename_to_remove(document_id))
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
        """List documents and the files in process, a page at a time."""
        documents, total = await self._list(arguments)
        if not total:
            message = f"Context '{arguments.context}' is empty" if arguments.context else "Knowledge base is empty"
            return Documents(documents=[], total_count=0, message=message)
        return Documents(documents=documents, total_count=total, limit=arguments.limit, offset=arguments.offset)

    @tool(
        "knowledge-clear",
        "Remove all documents from the knowledge base",
        title="Remove everything",
        read_only=False,
        destructive=True,
    )
    async def clear(self, arguments: Clear) -> Cleared | ConfirmClearing:
        """Remove everything, if the phrase is given."""
        if arguments.confirm is not True or arguments.confirmation_phrase != PHRASE:
            count = await self._base.run(lambda base: base.count_documents())
            return ConfirmClearing(
                message="This action will delete ALL documents. "
                "Set confirm=true and confirmation_phrase='DELETE ALL' to proceed",
                current_document_count=count.total,
            )
        report = await self._base.run(lambda base: base.clear())
        return Cleared(
            documents_removed=report.documents,
            embeddings_removed=report.vectors,
            storage_freed_mb=round(report.freed_bytes / views.MEGABYTE, 2),
            message="Knowledge base cleared successfully",
        )

    @tool("knowledge-status", "Get knowledge base statistics and health status", title="Knowledge base status")
    async def status(self, _: NoArguments) -> Status:
        """Return figures, and health as checked now."""
        try:
            found = await self._base.run(lambda base: base.status())
        except Exception as error:
            context = self._base.context
            if context is None or isinstance(error, InvalidSetting):
                raise
            logger.warning("The knowledge base cannot be opened: %s", error, extra={"action": "service_not_opened"})
            found = await to_thread.run_sync(unopened_status, context, error)
        return views.status(found)

    @tool("knowledge-task-status", "Get status of an async processing task", title="Task status")
    async def task_status(self, arguments: TaskStatusArguments) -> TaskState:
        """Return the state of a task."""
        return await self._base.run(lambda base: views.task_state(base, arguments.task_id))

    @tool(
        "knowledge-get",
        "Read a document's text by pages, or a passage with its neighbours",
        title="Read a document",
        long=True,
    )
    async def get(self, arguments: Get) -> DocumentText | PassageText:
        """Return text as it was read from the file."""
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
        """Create a collection without documents."""
        made = await self._base.run(lambda base: base.collections.create(arguments.name, arguments.description))
        return ContextCreated(context=views.context_facts(made), message=f"Context '{made.name}' created")

    @tool("knowledge-context-list", "List the contexts of the knowledge base", title="List contexts")
    async def context_list(self, _: NoArguments) -> ContextList:
        """List all collections, `default` first."""
        found = await self._base.run(lambda base: base.collections.all())
        return ContextList(contexts=[views.context_facts(item) for item in found], total_count=len(found))

    @tool("knowledge-context-show", "Show a context and its documents", title="Show a context")
    async def context_show(self, arguments: ContextShow) -> ContextShown:
        """Return a collection, its documents a page at a time."""
        context = await self._base.run(lambda base: base.collections.get(arguments.name))
        page = Show(limit=arguments.limit, offset=arguments.offset, context=arguments.name)
        documents, total = await self._list(page)
        return ContextShown(
            context=views.context_facts(context),
            documents=documents,
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
        """Ask for confirmation first if documents are in no other collection."""
        name = arguments.name
        documents = await self._base.run(lambda base: base.collections.documents(name))
        alone = sum(document.collections == (name,) for document in documents)
        if alone and not arguments.confirm and name != DEFAULT_COLLECTION:
            return ConfirmContextDeletion(
                message="Documents that are in no other context will move to 'default'. Set confirm=true to proceed",
                name=name,
                documents_only_here=alone,
            )
        count = await self._base.run(lambda base: base.collections.delete(name))
        return ContextDeleted(
            name=name,
            documents_unlinked=count,
            documents_moved_to_default=alone,
            message=f"Context '{name}' deleted",
        )

    def render_error(self, error: BedstoneError) -> Reply:
        """Return the error with the contract's names and shape."""
        return views.error_reply(error)

    async def start_task(self, name: str, arguments: Arguments) -> TaskView:
        """Add a file in the background."""
        assert name == "knowledge-add"
        assert isinstance(arguments, Add)
        return views.task_view(await self._submit(arguments))

    async def task(self, task_id: str) -> TaskView:
        """Return the state of a task."""
        return views.task_view(await self._base.run(lambda base: base.task(task_id)))

    async def cancel_task(self, task_id: str) -> bool:
        """Cancel a task; return whether it is cancelled and its work has stopped."""
        await self.task(task_id)
        if self._read_only:
            raise ReadOnly("This server is read-only; cancelling would change something.")
        return await self._base.run(lambda base: base.cancel(task_id))

    async def _submit(self, arguments: Add) -> "Task":
        path = parse_path(arguments.file_path)
        return await self._base.run(
            lambda base: base.add(
                path,
                arguments.metadata,
                force_ocr=arguments.force_ocr,
                collections=arguments.contexts or (),
            )
        )

    async def _list(self, arguments: Show) -> tuple[list[ListedDocument], int]:
        from bedstone.services.knowledge.listing import ListQuery  # noqa: PLC0415 - loads the engine

        order = (arguments.sort_by, arguments.sort_order == "desc")
        query = ListQuery(*order, arguments.offset, arguments.limit, arguments.context)

        def list_documents(base: "KnowledgeBase") -> tuple[list[ListedDocument], int]:
            page = base.list_documents(query)
            return views.rows(base, page.documents), page.total

        return await self._base.run(list_documents)

    async def _wait(self, task_id: str, progress: Progress, *, until_delayed: bool = False) -> "Task":
        """Wait until a task has finished, or also until it is delayed by the machine, and report its progress."""
        base = await self._base.open()
        revision, reported = None, -1.0

        def next_state(after: int | None) -> "tuple[int, Task]":
            return base.next_revision(after), base.task(task_id)

        def is_delayed(task: "Task") -> bool:
            return until_delayed and task.status == "queued" and base.are_tasks_waiting()

        while True:
            revision, task = await to_thread.run_sync(
                next_state, revision, abandon_on_cancel=True, limiter=self._watchers
            )
            if task.finished_at is not None or await to_thread.run_sync(is_delayed, task):
                return task
            share = round(task.progress.share, 4) if task.status == "running" and task.progress is not None else -1.0
            if reported < share < 1.0:  # the end is reported once, with the outcome
                reported = share
                await progress(share, 1.0, (task.progress.step if task.progress else "") or "Starting")
            await anyio.sleep(REPORT_SECONDS)

    async def _report(self, task_id: str, progress: Progress) -> None:
        """Report the progress of a task whose call was answered; the client may have disconnected."""
        try:
            ended = await self._wait(task_id, progress)
            await progress(1.0, 1.0, ended.status.capitalize())
        except Exception:
            logger.debug("Cannot report the progress of %s", task_id, exc_info=True, extra={"action": "unreported"})

    @cached_property
    def _watchers(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(MAX_WATCHERS)
