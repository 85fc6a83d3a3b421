"""The knowledge base: files that users add, searched chunk by chunk. Indexes are derived from one store."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from bedstone.errors import InvalidInput, UnknownTask
from bedstone.ingest.extraction import OCR_OFF, Page
from bedstone.ingest.process import sweep_scratch
from bedstone.records import StoredChunk, Task
from bedstone.search.hits import Mode
from bedstone.search.indexes.opening import is_shared
from bedstone.search.live_index import LiveIndex
from bedstone.search.retriever import Profile, Retriever, tune_profile
from bedstone.services.catalog import FetchedText, FindRequest, Found
from bedstone.services.knowledge import listing
from bedstone.services.knowledge.add_file import AddFileHandler
from bedstone.services.knowledge.archive import Archive, OnDocument, OnRefused
from bedstone.services.knowledge.archive_reader import RefusedEntry
from bedstone.services.knowledge.collections import Collections
from bedstone.services.knowledge.contents import Contents
from bedstone.services.knowledge.errors import DocumentNotFound, ExtractionFailed
from bedstone.services.knowledge.estimates import queue_seconds
from bedstone.services.knowledge.file_storage import open_storage
from bedstone.services.knowledge.filters import parse_format, stored_formats
from bedstone.services.knowledge.finding import SCHEME, fetch_text, find_files, find_passages
from bedstone.services.knowledge.folder_sync import FolderSync, FolderSyncs
from bedstone.services.knowledge.health import Health, KnowledgeStatus
from bedstone.services.knowledge.intake import Intake
from bedstone.services.knowledge.listing import DocumentPage, ListQuery
from bedstone.services.knowledge.ocr_record import PageQuality
from bedstone.services.knowledge.options import KnowledgeOptions
from bedstone.services.knowledge.overview import Overview, Overviews
from bedstone.services.knowledge.ownership import Ownership
from bedstone.services.knowledge.page_images import Originals
from bedstone.services.knowledge.picture_cache import PictureCache
from bedstone.services.knowledge.places import Places
from bedstone.services.knowledge.rebuilding import Rebuild, RebuildReport, known_folders, write_missing_sidecars
from bedstone.services.knowledge.records import AddFile, FileDocument
from bedstone.services.knowledge.removing import MAX_CANCEL_SECONDS, ClearReport, Removal
from bedstone.services.knowledge.searching import KnowledgeHit, KnowledgeQuery, Searching
from bedstone.services.knowledge.sharing import IndexFollower, WorkerSeat, is_alone
from bedstone.services.knowledge.task_history import TaskHistory
from bedstone.services.knowledge.tidying import Tidying
from bedstone.services.knowledge.unfinished import (
    UnfinishedDocuments,
    find_pending_task,
    unread_document,
)
from bedstone.services.knowledge.versions import Versions, needs_ocr
from bedstone.services.peers import Work
from bedstone.services.service import READY, NamedPage, Service, State, Summary, SyncFacts, format_count
from bedstone.store.engine import ALL, Store
from bedstone.tasks import INTERRUPTED, TaskRunner

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder

logger = logging.getLogger(__name__)

ADD = "add"  # the kind of a task
MAX_TASKS_ESTIMATED = 200  # ahead of a new one; the others count as their average
PROFILE = Profile(has_snippets=False, has_documents=True)


@dataclass(frozen=True)
class ChunkWindow:
    """A chunk with its neighbours, and how many chunks its document has."""

    document: FileDocument
    chunk: StoredChunk
    chunks: list[StoredChunk]
    total: int


class KnowledgeBase(Service):
    """Documents, found by keyword search once they are chunked and by semantic search once they are embedded.

    Several processes can open the same folders: one of them reads files and writes indexes, the others pass tasks to
    it through the store. Several with folders of their own can share a store with notes: each of them writes its own
    index, and each that is to work runs tasks.
    """

    schemes = (SCHEME,)

    def __init__(self, store: Store, options: KnowledgeOptions, embedder: "Callable[[], Embedder | None]") -> None:
        self._store = store
        self._options = options
        pictures = PictureCache(options.index_path / "pictures")
        self._storage = open_storage(options, pictures.folder)
        self.originals = Originals(self._storage, pictures)
        self.places = Places(options.allowed_roots, options.uploads_path, options.own_files)
        self.collections = Collections(store, self._storage.save_document)
        self.versions = Versions(store, self._storage, self.collections)
        self.contents = Contents(store)
        self._overviews = Overviews(store, self.collections)
        self._unfinished = UnfinishedDocuments(store)
        self._intake = Intake(
            store,
            self._storage,
            self.collections,
            self.places,
            self.versions,
            max_file_size_mb=options.max_file_size_mb,
        )
        self._index = LiveIndex(
            store, options.index_path, embedder, tune_profile(PROFILE, options.tuning), options.index
        )
        self._searching = Searching(store, self._index, self.collections, self._unfinished)
        self._handler = AddFileHandler(
            store, self._storage, self._index, self.collections, versions=self.versions, options=options.reading
        )
        self._seat = WorkerSeat(store) if store.notes is not None else None
        self._works = options.role != "answers"
        self._follower = (
            IndexFollower(
                store,
                self._index,
                options.index_path,
                owns_vectors=self._works and not options.read_only,
                is_shared=is_shared(options.index),
            )
            if self._seat
            else None
        )
        lock = self._seat or store.lock("owner")
        self._tasks = TaskRunner(store, self._handler, workers=options.max_concurrent_tasks, lock=lock)
        self._removal = Removal(store, self._storage, self._tasks)
        self._rebuild = Rebuild(store, self._storage, self.collections)
        self._health = Health(store, self._storage, self._index, options, self._tasks)
        self._archive = Archive(store, self._storage, self.collections, options.max_file_size_mb)
        self._tidying = Tidying(store, self._storage)
        self._folder_syncs: FolderSyncs | None = None
        self.history = TaskHistory(store, self._tasks.task)

    @property
    def retriever(self) -> Retriever:
        """The retriever, to measure other settings with."""
        return self._index.current()

    def open(self, *, restores: bool = False) -> None:
        """Start to work; interrupted tasks continue.

        Raise `StoreMismatch` if the store does not know the documents, unless this is to restore it.
        """
        options = self._options
        owner = Ownership(self._store, self._storage, options.store_place or str(options.index_path))
        if self._follower is not None:
            self._follower.take_index()
        if options.read_only:
            owner.check()
            return
        owner.claim(restores=restores)
        if self._works:
            self._tasks.start()
        if self._tasks.is_owner and not restores and is_alone(self._store):
            self._tidy_up()

    def _tidy_up(self) -> None:
        """Move aside what has no document; a disk that is full or read-only does not keep the base from opening."""
        try:
            if not self._storage.is_shared:
                self._storage.quarantine_orphans(lambda: known_folders(self._store))
                write_missing_sidecars(self._store, self._storage)
        except OSError as error:
            logger.warning("Cannot tidy up the documents folder: %s", error.strerror, extra={"action": "not_tidied"})
        sweep_scratch()

    async def start(self) -> None:
        """Keep the watched folders in sync, follow what other servers do, and tidy a place that they share."""
        if self._seat is not None and self._follower is not None:
            self._seat.is_server = True
            self._follower.start()
        if self._storage.is_shared and self._works and not self._options.read_only:
            self._tidying.start()
        if self._options.watched_folders and self._works and not self._options.read_only:
            self._folder_syncs = FolderSyncs(self, self._options.watched_folders)
            self._folder_syncs.start()

    async def aclose(self) -> None:
        """Stop, and close all files."""
        await to_thread.run_sync(self.close)

    async def summary(self) -> Summary:
        """Return how much there is, what is being read and what failed, and when the base last changed."""
        return await to_thread.run_sync(self._summarize)

    def _summarize(self) -> Summary:
        documents, chunks = self.count_documents(), self._store.counts().chunks
        changed = self._health.updated_at()
        running = len(self.active_tasks(MAX_TASKS_ESTIMATED))
        reading = State("busy", f"Reading {format_count(running, 'file')}", "/activity")
        failed = State("bad", f"{documents.failed:,} failed", "/documents?status=failed")
        return Summary(
            f"{format_count(documents.completed_count, 'file')}, {format_count(chunks, 'passage')}",
            documents.total,
            datetime.fromtimestamp(changed, UTC) if changed else None,
            tuple([reading] * bool(running) + [failed] * bool(documents.failed)) or (READY,),
            running,
            is_empty=not documents.total,
        )

    def syncs(self) -> Sequence[SyncFacts]:
        """Return the watched folders."""
        return self._folder_syncs.facts() if self._folder_syncs is not None else ()

    async def sync_now(self, name: str) -> None:
        """Look at a watched folder soon."""
        if self._folder_syncs is not None:
            await to_thread.run_sync(self._folder_syncs.look_now, name)

    def close(self) -> None:
        """Stop, and close all files; blocks."""
        if self._folder_syncs is not None:
            self._folder_syncs.stop()
        self._tasks.stop()
        self._handler.backfill.stop()
        self._tidying.stop()
        self.originals.close()
        if self._follower is not None:
            self._follower.stop()
        self._index.close()
        self._storage.close()
        if self._follower is not None:
            self._follower.release()
        self._store.close()

    @property
    def is_owner(self) -> bool:
        """Return whether this process does work."""
        return self._tasks.is_owner

    def work(self) -> Work:
        """Return what this process does now, and how far its index is; for the other servers."""
        last, applied = self._store.last_change(), self._index.measure()
        jobs = [*(["vectors"] if self._handler.backfill.is_working else [])]
        jobs += self._folder_syncs.held_folders() if self._folder_syncs is not None else []
        names = [AddFile.from_payload(task.payload).filename for task in self._tasks.running]
        behind = 0 if last is None or applied is None else max(0, last.seq - applied)
        return Work(applied or 0, behind, tuple(names), tuple(jobs))

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
        is_upload: bool = False,
    ) -> Task:
        """Check and copy a file, and queue its task; the task of known content is completed at once.

        A changed file replaces the document that its path had before, once it is read; an upload has no path.
        """
        if force_ocr and not self._options.reading.read.ocr:
            raise InvalidInput(f"{OCR_OFF}. Enable it, or add the file without force_ocr.", parameter="force_ocr")
        with self._storage.adding():
            accepted = self._intake.accept(
                path, metadata or {}, force_ocr=force_ocr, collections=collections, is_upload=is_upload
            )
            payload = accepted.file.to_payload()
            if accepted.duplicate is None:
                with self._storage.deleting_on_error(accepted.file.document_id):
                    return self._tasks.submit(ADD, payload)
            result = self._handler.link_duplicate(accepted.duplicate, accepted.file)
            return self._tasks.record_completed(ADD, payload, result.to_result())

    def retry(self, document_id: str, *, force_ocr: bool = False) -> Task:
        """Add a file again that could not be read, from where it was."""
        failed = find_pending_task(self._store, document_id)
        if failed is None or failed.status != "failed":
            raise _not_found(document_id)
        file = AddFile.from_payload(failed.payload)
        if failed.error == INTERRUPTED or file.is_rebuild:  # its copy was kept
            self._storage.aside.bring_back(document_id)
            task = self._tasks.submit(ADD, replace(file, force_ocr=force_ocr or file.force_ocr).to_payload())
            self._removal.dismiss([failed])
            return task
        if self.places.shown_path(file.source) is None:
            raise InvalidInput(f"{file.filename} was uploaded and not stored. To retry, add it again.")
        task = self.add(Path(file.source), file.metadata, force_ocr=force_ocr, collections=file.collections)
        self._removal.dismiss([failed])
        return task

    def read_again(self, document_id: str) -> Task:
        """Read a document again from its stored copy, every page with OCR; until then it stays as it is."""
        if not self._options.reading.read.ocr:
            raise InvalidInput(f"{OCR_OFF}. Enable it and try again.")
        document = self.get_document(document_id)
        if document.status != "completed" or not needs_ocr(document):
            raise InvalidInput(f"OCR would not read more of {document.filename} than is read already.")
        file = replace(AddFile.of_document(document), submitted_at=document.submitted_at, force_ocr=True)
        return self._tasks.submit(ADD, replace(file, is_rebuild=True).to_payload())

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
        task = self._tasks.task(task_id.lower())
        if task is None:
            raise UnknownTask(f"Task with ID '{task_id}' not found", task_id=task_id)
        return task

    def active_tasks(self, limit: int = ALL) -> list[Task]:
        """Return the tasks that are queued or running, the oldest first."""
        return self._store.tasks({"queued", "running"}, limit=limit)

    def are_tasks_waiting(self) -> bool:
        """Return whether tasks wait for another attempt because the machine failed."""
        return bool(self._tasks.waiting())

    def position(self, task: Task) -> int:
        """Return a queued task's place in the queue, from 1."""
        return self._tasks.position(task)

    def cancel(self, task_id: str, seconds: float = MAX_CANCEL_SECONDS) -> bool:
        """Cancel a queued or running task; return whether it is cancelled and its work has stopped."""
        return self._tasks.cancel_and_wait(task_id.lower(), seconds)

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
        return self._searching.search(query)

    def search_document(self, document_id: str, query: str, mode: Mode = "hybrid") -> list[KnowledgeHit]:
        """Return the best chunks of one document, scored as in a search over all of them."""
        return self._searching.search_document(document_id, query, mode)

    async def find(self, request: FindRequest) -> Found:
        """Return the best passages for the search over everything."""
        return await to_thread.run_sync(find_passages, self, request, abandon_on_cancel=True)

    async def find_names(self, text: str, limit: int) -> Sequence[NamedPage]:
        """Return the documents whose names have a text."""
        return await to_thread.run_sync(find_files, self, text, limit)

    async def fetch(self, scheme: str, name: str) -> FetchedText:
        """Return the text of a document, or of a page or passage of it."""
        return await to_thread.run_sync(fetch_text, self, self._store, name)

    def search_notice(self, query: str, mode: Mode = "hybrid") -> str | None:
        """Return why a search may not find everything: the state of the index, a language the model does not know."""
        return self._searching.notice(query, mode)

    def count_formats(self, query: str) -> Mapping[str, int]:
        """Return how many chunks with a term of a query have each format."""
        return self._searching.count_formats(query)

    # Reading

    def documents(self) -> list[FileDocument]:
        """Return every document that can be searched."""
        return [FileDocument.from_stored(item) for item in self._store.documents(limit=ALL)]

    def count_documents(self) -> listing.DocumentCounts:
        """Return how many documents there are, with the files that are in process or failed."""
        return listing.count_documents(self._store, self._unfinished.current())

    def list_documents(self, query: ListQuery) -> DocumentPage:
        """Return a page of documents, with the files that are in process or failed."""
        if query.collection is not None:
            self.collections.check([query.collection])
        if name := query.values.get("format"):
            known = parse_format(name, lambda: stored_formats(self._store))
            query = replace(query, values={**query.values, "format": known})
        return listing.list_documents(self._store, query, self._unfinished.current())

    def overview(self) -> Overview:
        """Return how many documents of the list are in which state, and what the list can be narrowed by."""
        return self._overviews.current()

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
        return self._storage.texts.load(document_id)

    def ocr_confidence(self, document_id: str) -> Mapping[int, float]:
        """Return how sure OCR was of each page that it recognized, from 0 to 1."""
        return self._storage.texts.confidence(document_id)

    def ocr_quality(self, document_id: str) -> Mapping[int, PageQuality]:
        """Return how well OCR read each page that it recognized."""
        return self._storage.texts.quality(document_id)

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
        with self.collections.changing:
            document = replace(self.get_document(document_id), metadata=metadata)
            self._store.update_documents([document.to_stored()])
        self._storage.save_document(document)

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

    def import_from(
        self, source: Path, on_document: OnDocument = lambda _: None, on_refused: OnRefused = lambda _: None
    ) -> Iterator[Task]:
        """Add the new documents of an export; semantic search finds them when their tasks complete.

        `on_refused` gets the reason for each document that is not valid.
        """

        def restore(document: FileDocument, pages: Sequence[Page]) -> Task:
            try:
                item = self._handler.chunk_restored(document, pages)
            except ExtractionFailed as error:
                raise RefusedEntry(f"document {document.id}: {error.message}") from error
            if not item[1]:
                raise RefusedEntry(f"document {document.id}: its text is empty")
            payload = AddFile.of_document(document).to_payload()
            return self._tasks.submit(ADD, payload, lambda task: self._store.put_with_task(item, task))

        return self._archive.import_from(source, restore, on_document, on_refused)

    def rebuild(self, on_document: OnDocument = lambda _: None) -> RebuildReport:
        """Queue every document that the store lost or whose text is damaged; they are read again from their copies."""
        with self._storage.adding():
            return self._rebuild.run(lambda file: self._tasks.submit(ADD, file.to_payload()), on_document)

    # Status

    def status(self) -> KnowledgeStatus:
        """Return figures, and health as checked now; never fails."""
        return self._health.status()

    def check_health(self) -> dict[str, str]:
        """Check each part now, and return a sentence for each one that does not work."""
        return self._health.check_all()

    def problems(self) -> Sequence[str]:
        """Return what keeps documents from being stored, read or searched; without the model, keyword search works."""
        return list(self._health.check_storage().values())


def _not_found(document_id: str) -> DocumentNotFound:
    return DocumentNotFound(f"Document with ID '{document_id}' not found", document_id=document_id)
