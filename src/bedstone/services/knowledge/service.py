"""The knowledge base: files that users add, searched chunk by chunk. Indexes are derived from one store."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from bedstone.errors import InvalidInput, UnknownTask
from bedstone.ingest.extraction import Page
from bedstone.ingest.reader import sweep_scratch
from bedstone.records import Counts, StoredChunk, Task
from bedstone.search.filters import Filter, OneOf
from bedstone.search.hits import Mode, SearchRequest
from bedstone.search.indexes import EMBEDDED
from bedstone.search.live_index import LiveIndex
from bedstone.search.matching import Matcher
from bedstone.search.retriever import Profile
from bedstone.search.snippets import snippet
from bedstone.services.catalog import FindRequest, Found, FoundItem
from bedstone.services.knowledge import listing
from bedstone.services.knowledge.add_file import AddFileHandler, ReadingOptions
from bedstone.services.knowledge.archive import Archive, OnDocument
from bedstone.services.knowledge.collections import Collections
from bedstone.services.knowledge.errors import DocumentNotFound
from bedstone.services.knowledge.estimates import queue_seconds
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.folder_sync import FolderSync, FolderSyncs
from bedstone.services.knowledge.intake import Intake
from bedstone.services.knowledge.listing import DocumentPage, ListQuery
from bedstone.services.knowledge.records import AddFile, FileDocument
from bedstone.services.knowledge.removing import CHANGED, MAX_CANCEL_SECONDS, ClearReport, Removal
from bedstone.services.knowledge.unfinished import empty_knowledge_base, find_pending_task, unread_document
from bedstone.services.service import Service
from bedstone.store.engine import ALL, Store, StoreUnavailable
from bedstone.store.filters import Order
from bedstone.tasks import TaskRunner

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder

ADD = "add"  # the kind of a task
MAX_TASKS_ESTIMATED = 200  # ahead of a new one; the others count as their average
PROFILE = Profile(has_snippets=False, has_documents=True)


@dataclass(frozen=True)
class KnowledgeOptions:
    """Where things are stored, and how files are read."""

    documents_path: Path
    index_path: Path
    index: str = EMBEDDED
    allowed_roots: Sequence[Path] = ()
    watched_folders: Sequence[Path] = ()
    max_file_size_mb: int = 100
    max_concurrent_tasks: int = 3
    read_only: bool = False
    reading: ReadingOptions = field(default_factory=ReadingOptions)


@dataclass(frozen=True)
class KnowledgeQuery:
    """What to search for. Filters are a format or several, a `date_range`, and values of the user's metadata."""

    text: str
    limit: int = 10
    min_score: float = 0.0
    filters: Mapping[str, Any] = field(default_factory=dict)
    collection: str | None = None
    mode: Mode = "hybrid"


@dataclass(frozen=True)
class KnowledgeHit:
    """A chunk that a search found."""

    document: FileDocument
    chunk: StoredChunk
    score: float
    matched_by: str = "words"


@dataclass(frozen=True)
class ChunkWindow:
    """A chunk with its neighbours, and how many chunks its document has."""

    document: FileDocument
    chunk: StoredChunk
    chunks: list[StoredChunk]
    total: int


@dataclass(frozen=True)
class KnowledgeStatus:
    """Figures and health; `problems` has a sentence for each part that does not work."""

    counts: Counts
    documents: listing.DocumentCounts
    size_bytes: int
    problems: Mapping[str, str]
    embedding_model: str | None
    updated_at: float | None
    options: KnowledgeOptions


class KnowledgeBase(Service):
    """Documents, found by keyword search once they are chunked and by semantic search once they are embedded.

    Several processes can open the same folders: one of them reads files and writes indexes, the others pass tasks to
    it through the store.
    """

    def __init__(self, store: Store, options: KnowledgeOptions, embedder: "Callable[[], Embedder | None]") -> None:
        self._store = store
        self._options = options
        self.collections = Collections(store)
        self._storage = FileStorage(options.documents_path, options.index_path / ".adding")
        self._intake = Intake(
            store,
            self._storage,
            self.collections,
            allowed_roots=options.allowed_roots,
            max_file_size_mb=options.max_file_size_mb,
        )
        self._index = LiveIndex(store, options.index_path, embedder, PROFILE, options.index)
        self._handler = AddFileHandler(store, self._storage, self._index, self.collections, options.reading)
        self._tasks = TaskRunner(store, self._handler, workers=options.max_concurrent_tasks, lock=store.lock("owner"))
        self._removal = Removal(store, self._storage, self._tasks)
        self._archive = Archive(store, self._storage, self.collections)
        self._folder_syncs: FolderSyncs | None = None

    def open(self) -> None:
        """Start to work; interrupted tasks continue."""
        if self._options.read_only:
            return
        self._tasks.start()
        if self._tasks.is_owner:
            self._storage.delete_orphans(self._known_folders)
            sweep_scratch()

    async def start(self) -> None:
        """Keep the watched folders in sync."""
        if self._options.watched_folders and not self._options.read_only:
            self._folder_syncs = FolderSyncs(self, self._options.watched_folders)
            self._folder_syncs.start()

    async def aclose(self) -> None:
        """Stop, and close all files."""
        await to_thread.run_sync(self.close)

    async def figures(self) -> Sequence[tuple[str, str]]:
        """Return how much there is, whether all parts work, and when the base last changed."""
        status = await to_thread.run_sync(self.status)
        changed = status.updated_at
        when = [("changed", datetime.fromtimestamp(changed, UTC).date().isoformat())] if changed else []
        return [
            ("documents", f"{status.documents.total:,}"),
            *([("being read", f"{status.documents.pending:,}")] if status.documents.pending else []),
            *([("failed", f"{status.documents.failed:,}")] if status.documents.failed else []),
            ("chunks", f"{status.counts.chunks:,}"),
            ("health", "degraded" if status.problems else "healthy"),
            *when,
        ]

    def close(self) -> None:
        """Stop, and close all files; blocks."""
        if self._folder_syncs is not None:
            self._folder_syncs.stop()
        self._tasks.stop()
        self._handler.backfill.stop()
        self._index.close()
        self._store.close()

    @property
    def is_owner(self) -> bool:
        """Return whether this process does the work."""
        return self._tasks.is_owner

    @property
    def max_file_size_mb(self) -> int:
        """Return the size of the largest file that can be added."""
        return self._options.max_file_size_mb

    # Adding

    def add(
        self,
        path: Path,
        metadata: Mapping[str, Any] | None = None,
        *,
        force_ocr: bool = False,
        collections: Sequence[str] = (),
    ) -> Task:
        """Check and copy a file, and queue its task; the task of known content is completed at once."""
        with self._storage.adding():
            accepted = self._intake.accept(path, metadata or {}, force_ocr=force_ocr, collections=collections)
            payload = accepted.file.to_payload()
            if accepted.duplicate is None:
                return self._tasks.submit(ADD, payload)
            result = self._handler.link_duplicate(accepted.duplicate, accepted.file.collections)
            return self._tasks.record_completed(ADD, payload, result.to_result())

    def retry(self, document_id: str, *, force_ocr: bool = False) -> Task:
        """Add a file again that could not be read, from where it was."""
        failed = find_pending_task(self._store, document_id)
        if failed is None or failed.status != "failed":
            raise _not_found(document_id)
        file = AddFile.from_payload(failed.payload)
        task = self.add(Path(file.source), file.metadata, force_ocr=force_ocr, collections=file.collections)
        self._removal.dismiss([failed])
        return task

    def estimate_seconds(self, task: Task) -> float:
        """Return how long the work of a task will take, without waiting for others."""
        return self._handler.estimate_seconds([AddFile.from_payload(task.payload)])[0]

    def estimate_wait(self, task: Task) -> int:
        """Return in how many seconds a new task will have finished, after those ahead of it."""
        others = [item for item in self.active_tasks(MAX_TASKS_ESTIMATED + 1) if item.id != task.id]
        files = [AddFile.from_payload(item.payload) for item in (task, *others)]
        own, *ahead = self._handler.estimate_seconds(files)
        waiting = max(len(ahead), self._tasks.position(task) - 1)
        seconds = queue_seconds(own, ahead, waiting, self._options.max_concurrent_tasks)
        return max(1, round(seconds)) if task.finished_at is None else 1

    # Tasks

    def task(self, task_id: str) -> Task:
        """Return a task with its current progress."""
        task = self._tasks.task(task_id)
        if task is None:
            raise UnknownTask(f"Task with ID '{task_id}' not found", task_id=task_id)
        return task

    def active_tasks(self, limit: int = ALL) -> list[Task]:
        """Return the tasks that are queued or running, the oldest first."""
        return self._store.tasks({"queued", "running"}, limit=limit)

    def position(self, task: Task) -> int:
        """Return a queued task's place in the queue, from 1."""
        return self._tasks.position(task)

    def cancel(self, task_id: str, seconds: float = MAX_CANCEL_SECONDS) -> bool:
        """Cancel a queued or running task; return whether it is cancelled and its work has stopped."""
        return self._tasks.cancel_and_wait(task_id, seconds)

    def wait(self, task_id: str) -> Task:
        """Wait until a task has finished, and return it."""
        return self._tasks.wait(task_id)

    def watch(self, task_id: str) -> Iterator[Task]:
        """Yield a task whenever it is updated, until it has finished."""
        return self._tasks.watch(task_id)

    def next_revision(self, after: int | None = None) -> int:
        """Wait until any task is updated after a revision, or for a second; return the current revision."""
        return self._tasks.next_revision(after)

    # Searching

    def search(self, query: KnowledgeQuery) -> list[KnowledgeHit]:
        """Return the best chunks."""
        if query.collection is not None:
            self.collections.check([query.collection])
        if not self._store.documents(limit=1):
            counts = self.count_documents()
            raise empty_knowledge_base(counts.pending, counts.failed)
        request = SearchRequest(
            query.text, self._index_filter(query), mode=query.mode, limit=query.limit, min_score=query.min_score
        )
        return [
            KnowledgeHit(FileDocument.from_stored(hit.document), hit.chunk, hit.score, hit.matched_by)
            for hit in self._index.current().search(request).hits
            if hit.document is not None and hit.chunk is not None
        ]

    def _index_filter(self, query: KnowledgeQuery) -> Filter | None:
        """Return a filter for the index: by format where that is enough, otherwise by documents the store finds."""
        filters = query.filters
        if not filters and query.collection is None:
            return None
        if set(filters) == {"format"} and query.collection is None:
            return OneOf("format", tuple(name.lower() for name in listing.as_list(filters["format"])))
        return OneOf("document", tuple(self._store.document_ids(listing.filter_conditions(filters, query.collection))))

    async def find(self, request: FindRequest) -> Found:
        """Return the best chunks for the search over everything."""
        return await to_thread.run_sync(self._find, request)

    def _find(self, request: FindRequest) -> Found:
        filters = {"format": request.filters["format"]} if "format" in request.filters else {}
        facets = {"format": self.count_formats(request.query)} if request.with_facets else {}
        matcher = Matcher(request.query)
        hits = self.search(KnowledgeQuery(request.query, request.limit, filters=filters, mode=request.mode))
        items = [
            FoundItem(
                id=hit.chunk.head.id,
                title=hit.document.filename,
                location=f"page {hit.chunk.head.page}" if hit.chunk.head.page else "",
                address=f"/documents/{hit.document.id}?chunk={hit.chunk.head.id}#chunk-{hit.chunk.head.id}",
                snippet=snippet(hit.chunk.text, matcher),
                matched_by=hit.matched_by,
                score=hit.score,
            )
            for hit in hits
        ]
        return Found(items, facets)

    def count_formats(self, query: str) -> Mapping[str, int]:
        """Return how many chunks with a term of a query have each format."""
        return self._index.current().count_facets(query, None).get("format", {})

    # Reading

    def documents(self) -> list[FileDocument]:
        """Return every document that can be searched."""
        return [FileDocument.from_stored(item) for item in self._store.documents(limit=ALL)]

    def count_documents(self) -> listing.DocumentCounts:
        """Return how many documents there are, with the files that are in process or failed."""
        return listing.count_documents(self._store)

    def list_documents(self, query: ListQuery) -> DocumentPage:
        """Return a page of documents, with the files that are in process or failed."""
        if query.collection is not None:
            self.collections.check([query.collection])
        return listing.list_documents(self._store, query)

    def count_values(self) -> Mapping[listing.FilterKey, Mapping[str, int]]:
        """Return how many documents of the list have each format, status and method."""
        return listing.count_values(self._store)

    def get_document(self, document_id: str) -> FileDocument:
        """Return one document."""
        document = self._store.document(document_id)
        if document is None:
            task = find_pending_task(self._store, document_id)
            raise unread_document(document_id, task) if task is not None else _not_found(document_id)
        return FileDocument.from_stored(document)

    def read_pages(self, document_id: str) -> list[Page]:
        """Return the text of a document, page by page."""
        self.get_document(document_id)
        return self._storage.load_pages(document_id)

    def chunks(self, document_id: str) -> list[StoredChunk]:
        """Return a document's chunks in order."""
        self.get_document(document_id)
        return self._store.chunks_of(document_id)

    def read_chunk(self, chunk_id: str, neighbours: int = 0) -> ChunkWindow:
        """Return a chunk with its neighbours."""
        chunk = self._store.chunk(chunk_id)
        if chunk is None:
            raise InvalidInput(f"Chunk '{chunk_id}' not found", parameter="chunk_id")
        head = chunk.head
        chunks = self._store.chunks_of(head.document_id)
        window = chunks[max(0, head.position - neighbours) : head.position + neighbours + 1]
        return ChunkWindow(self.get_document(head.document_id), chunk, window, len(chunks))

    def chunk_count(self, document_id: str) -> int:
        """Return how many chunks a document has."""
        return self._store.chunk_counts(document_id).get(document_id, 0)

    def find_pending_task(self, document_id: str) -> Task | None:
        """Return the task of a file that is in process, or that could not be read."""
        return find_pending_task(self._store, document_id)

    # Managing

    def set_metadata(self, document_id: str, metadata: Mapping[str, Any]) -> None:
        """Replace the user's metadata of a document."""
        document = self.get_document(document_id)
        self._store.update_documents([replace(document, metadata=metadata).to_stored()])

    def rename(self, document_id: str, path: Path) -> None:
        """Record that the file of a document was moved."""
        document = self.get_document(document_id)
        title = path.name if document.title == document.filename else document.title
        moved = replace(document, title=title, filename=path.name, source=str(path))
        self._store.update_documents([moved.to_stored()])

    def filename_to_remove(self, document_id: str) -> str:
        """Return the file name of a document, or of a file that is being read or could not be read."""
        task = None if self._store.document(document_id) is not None else self.find_pending_task(document_id)
        if task is not None:
            return AddFile.from_payload(task.payload).filename
        return self.get_document(document_id).filename

    def remove(self, document_id: str) -> int:
        """Remove a document, or a file that is being read or could not be read; return how many chunks it had."""
        self.filename_to_remove(document_id)
        return self._removal.remove(document_id)

    def clear(self) -> ClearReport:
        """Remove everything."""
        return self._removal.clear()

    def folder_sync(self, folder: Path, collections: Sequence[str] = ()) -> FolderSync:
        """Return what keeps a folder in sync with this knowledge base."""
        return FolderSync(self, self._store, folder, collections)

    def export_to(self, target: Path, on_document: OnDocument = lambda _: None) -> int:
        """Write every completed document to one file; return how many."""
        return self._archive.export_to(target, on_document)

    def import_from(self, source: Path, on_document: OnDocument = lambda _: None) -> Iterator[Task]:
        """Add the new documents of an export; semantic search finds them when their tasks complete."""

        def restore(document: FileDocument) -> Task:
            return self._tasks.submit(ADD, self._handler.restore(document).to_payload())

        return self._archive.import_from(source, restore, on_document)

    # Status

    def status(self) -> KnowledgeStatus:
        """Return figures, and health as checked now."""
        problems = self.check_health()
        embedder = self._index.embedder
        return KnowledgeStatus(
            counts=self._store.counts(),
            documents=self.count_documents(),
            size_bytes=self._store.sum_attribute("size"),
            problems=problems,
            embedding_model=embedder.name if embedder is not None else None,
            updated_at=self._updated_at(),
            options=self._options,
        )

    def check_health(self) -> dict[str, str]:
        """Check each part now, and return a sentence for each one that does not work."""
        problems = self._check_storage()
        if reason := self._index.model_problem():
            problems["embedding_model"] = f"The embedding model does not answer: {reason}"
        return problems

    def problems(self) -> Sequence[str]:
        """Return what keeps documents from being stored or read; without the model, keyword search still works."""
        return list(self._check_storage().values())

    def _check_storage(self) -> dict[str, str]:
        problems: dict[str, str] = {}
        is_writable = not self._options.read_only
        try:
            if is_writable:
                self._store.check_writable()
            self._store.check_readable()
        except StoreUnavailable as error:
            problems["vector_db"] = f"The store does not answer: {error.message}"
        if is_writable and (reason := self._storage.write_error()):
            problems["storage"] = f"Storage directory not accessible: {reason}"
        return problems

    def _updated_at(self) -> float | None:
        removed = self._store.get_value(CHANGED)
        newest = self._store.documents(order=Order("added", is_number=True, descending=True), limit=1)
        added = [FileDocument.from_stored(item).added_at for item in newest]
        return max([*([float(removed)] if removed else []), *added], default=None)

    def _known_folders(self) -> set[str]:
        tasks = self.active_tasks()  # first: a task that finishes now has its document
        known = {AddFile.from_payload(task.payload).document_id for task in tasks}
        return known | set(self._store.digests())


def _not_found(document_id: str) -> DocumentNotFound:
    return DocumentNotFound(f"Document with ID '{document_id}' not found", document_id=document_id)
