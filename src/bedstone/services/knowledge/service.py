"""What people add: files in, passages out. One truth in a store, indexes derived from it."""

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from bedstone.errors import InvalidInput
from bedstone.ingest.extraction import Page
from bedstone.ingest.reader import sweep_scratch
from bedstone.records import Document, StoredChunk
from bedstone.search.hits import Is, Mode
from bedstone.search.live_index import LiveIndex
from bedstone.search.matching import Matcher
from bedstone.search.relevance import coverage, falling, relevance, term_weights
from bedstone.search.snippets import snippet
from bedstone.services.catalog import FindRequest, Found, FoundItem
from bedstone.services.knowledge.add_file import Processing, ReadingOptions
from bedstone.services.knowledge.collections import Contexts, contexts_of
from bedstone.services.knowledge.errors import DocumentNotFound, EmptyKnowledgeBase
from bedstone.services.knowledge.file_storage import MEGABYTE, Shelf
from bedstone.services.knowledge.listing import passes
from bedstone.services.service import Service
from bedstone.store.engine import TaskRecord
from bedstone.store.engines.sqlite import SqliteStore
from bedstone.tasks import Duties, Ownership, TaskRunner

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder
    from bedstone.services.knowledge.folder_sync import FolderKeepers

logger = logging.getLogger(__name__)

VECTORS_SECONDS = 2.0  # between looks for passages that lack theirs
CHANGED = "changed"  # the store's note of when something was last removed


@dataclass(frozen=True)
class KnowledgeOptions:
    """Where things are kept, and how files are read."""

    documents_path: Path
    index_path: Path
    allowed_roots: Sequence[Path] = ()
    max_file_size_mb: int = 100
    max_concurrent_tasks: int = 3
    watched_folders: Sequence[Path] = ()
    read_only: bool = False
    reading: ReadingOptions = field(default_factory=ReadingOptions)


@dataclass(frozen=True)
class KnowledgeHit:
    """A passage that was found."""

    document: Document
    stored: StoredChunk
    score: float
    why: str = "words"


@dataclass(frozen=True)
class Admitted:
    """A file that was copied and may be read; `duplicate` is a document with the same content."""

    details: dict[str, Any]
    duplicate: Document | None = None


class KnowledgeBase(Service):
    """Documents, searched by words as soon as they are cut and by meaning when their vectors are there.

    Several processes may open the same folders: one of them reads files and writes indexes, the others ask it to by
    way of the store.
    """

    def __init__(self, options: KnowledgeOptions, embedder: "Callable[[], Embedder | None]") -> None:
        self.options = options
        self._closing = threading.Event()
        self._vectors: threading.Thread | None = None
        self._folders: FolderKeepers | None = None
        self._listed: tuple[tuple[int, int], list[Document]] | None = None
        options.index_path.mkdir(parents=True, exist_ok=True)
        file = options.index_path / "knowledge.sqlite"
        is_frozen = options.read_only and file.exists() and not os.access(file, os.W_OK)
        self.store = SqliteStore(file, read_only=is_frozen, durable=not is_frozen)
        self.contexts = Contexts(self.store)
        self.shelf = Shelf(
            options.documents_path, options.index_path / ".adding", options.allowed_roots, options.max_file_size_mb
        )
        self._index = LiveIndex(self.store, options.index_path, embedder)
        self._processing = Processing(self.store, self.shelf, self._index, self.contexts, options.reading)
        duties = Duties(self._processing.work, self._processing.undo, self._own, self._index.follow)
        ownership = Ownership(options.index_path / ".owner")
        self.tasks = TaskRunner(self.store, duties, workers=options.max_concurrent_tasks, ownership=ownership)

    def open(self) -> None:
        """Begin: what was interrupted goes on."""
        if self.options.read_only:
            return
        self.tasks.start()
        if self.tasks.is_owner:
            self.shelf.sweep(self._known_folders)
            sweep_scratch()

    async def start(self) -> None:
        """Keep the watched folders in sync."""
        if self.options.watched_folders and not self.options.read_only:
            from bedstone.services.knowledge.folder_sync import FolderKeepers  # noqa: PLC0415 - only watching needs it

            self._folders = FolderKeepers(self, self.options.watched_folders)
            await to_thread.run_sync(self._folders.start)

    async def aclose(self) -> None:
        """Stop background work and close the store."""
        await to_thread.run_sync(self.close)

    async def figures(self) -> Sequence[tuple[str, str]]:
        """Return how much there is, the state of the base, and when it last changed."""
        return await to_thread.run_sync(self._figures)

    def _figures(self) -> list[tuple[str, str]]:
        counts, changed = self.store.counts(), self.last_updated()
        when = [("changed", datetime.fromtimestamp(changed, UTC).date().isoformat())] if changed else []
        return [
            ("documents", f"{counts.documents:,}"),
            ("chunks", f"{counts.chunks:,}"),
            ("health", "degraded" if self.issues() else "healthy"),
            *when,
        ]

    def close(self) -> None:
        """Stop background work and close the store; blocks."""
        self._closing.set()
        if self._folders is not None:
            self._folders.stop()
        self.tasks.stop()
        if self._vectors is not None:
            self._vectors.join(10)
        self._index.close()
        self.store.close()

    @property
    def embedder(self) -> "Embedder | None":
        """The model, loaded when it is first needed."""
        return self._index.embedder

    # Adding

    def admit(
        self, path: Path, metadata: Mapping[str, Any], *, force_ocr: bool = False, contexts: Sequence[str] = ()
    ) -> Admitted:
        """Check a file and copy it."""
        wanted = self.contexts.check(contexts)
        copy = self.shelf.take(path)
        details = {**asdict(copy), "metadata": dict(metadata), "force_ocr": force_ocr, "contexts": wanted}
        duplicate = self.store.with_digest(copy.digest)
        if duplicate is not None and duplicate.metadata["status"] != "completed":
            duplicate = None  # it may still fail: the task waits for it
        if duplicate is not None:
            self.shelf.drop(copy.document_id)
        return Admitted(details, duplicate)

    def add(
        self, path: Path, metadata: Mapping[str, Any], *, force_ocr: bool = False, contexts: Sequence[str] = ()
    ) -> TaskRecord:
        """Queue a file; one that is known already is done at once."""
        with self.shelf.adding():
            admitted = self.admit(path, metadata, force_ocr=force_ocr, contexts=contexts)
            return self._queued(admitted)

    def _queued(self, admitted: Admitted) -> TaskRecord:
        if admitted.duplicate is not None:
            result = self._processing.duplicate(admitted.duplicate, admitted.details["contexts"])
            return self.tasks.add_finished("add", admitted.details, result)
        return self.tasks.submit("add", admitted.details)

    def restore(self, document: Document) -> TaskRecord:
        """Take a document whose files lie on the shelf already, as another base knew it."""
        return self.tasks.submit("add", self._processing.restore(document))

    def estimate(self, size: int) -> int:
        """Seconds a file of a size will take, by past speed."""
        return self._processing.estimate(size)

    # Searching

    def search(
        self,
        query: str,
        *,
        top_k: int,
        min_relevance: float = 0.0,
        filters: Mapping[str, Any] | None = None,
        context: str | None = None,
        mode: Mode = "hybrid",
    ) -> list[KnowledgeHit]:
        """The best passages."""
        if context is not None:
            self.contexts.check([context])
        counts = self.store.counts()
        if not counts.documents:
            raise EmptyKnowledgeBase(
                "Knowledge base is empty. Add documents with knowledge-add first", document_count=0
            )
        condition = None
        if filters and set(filters) == {"format"} and context is None:
            condition = Is("format", tuple(name.lower() for name in _several(filters["format"])))
        elif filters or context is not None:
            allowed = tuple(item.id for item in self.documents(context) if passes(item, filters or {}))
            if not allowed:
                return []
            condition = Is("document", allowed)
        found = self._index.opened().search(query, condition=condition, limit=top_k, mode=mode)
        if "words" not in found.signals and self.embedder is not None:
            nearest = max((hit.cosine or 0.0 for hit in found.hits), default=0.0)
            if nearest < self.embedder.floor:
                return []
        chunks = self.store.chunks([hit.rowid for hit in found.hits])
        matcher = Matcher(query)
        weights = term_weights(matcher.terms, counts.chunks, self._index.frequency)
        hits, scores = [], []
        for hit in found.hits:
            stored = chunks.get(hit.rowid)
            document = self.store.document(stored.document) if stored else None
            if stored is None or document is None:  # removed meanwhile
                continue
            text = "\n".join([document.title, *stored.chunk.breadcrumb, stored.chunk.plain])
            scores.append(relevance(hit.cosine, coverage(weights, {term for _, _, term in matcher.find(text)})))
            hits.append((document, stored, hit.why(self.embedder.floor if self.embedder is not None else 0.0)))
        shown = zip(hits, falling(scores), strict=True)
        return [
            KnowledgeHit(document, stored, round(score, 4), why)
            for (document, stored, why), score in shown
            if score >= min_relevance
        ]

    async def find(self, request: FindRequest) -> Found:
        """Return the best chunks for the search over everything."""
        return await to_thread.run_sync(self._find, request)

    def _find(self, request: FindRequest) -> Found:
        filters = {"format": request.filters["format"]} if "format" in request.filters else {}
        facets = {"format": self.format_counts(request.query)} if request.with_facets else {}
        matcher = Matcher(request.query)
        items = [
            FoundItem(
                id=hit.stored.chunk.id,
                title=hit.document.metadata["filename"],
                location=f"page {hit.stored.chunk.page}" if hit.stored.chunk.page else "",
                address=f"/documents/{hit.document.id}?chunk={hit.stored.chunk.id}#chunk-{hit.stored.chunk.id}",
                snippet=snippet(hit.stored.chunk.text, matcher),
                matched_by=hit.why,
                score=hit.score,
            )
            for hit in self.search(request.query, top_k=request.limit, filters=filters, mode=request.mode)
        ]
        return Found(items, facets)

    def format_counts(self, query: str) -> Mapping[str, int]:
        """How many passages with a word of a query are of each format."""
        return self._index.opened().index.facet_counts(query, None).get("format", {})

    # Reading

    def documents(self, context: str | None = None) -> list[Document]:
        """Every document that can be searched, or those of one context."""
        version = self.store.version()
        if self._listed is None or self._listed[0] != version:
            self._listed = (version, self.store.documents(limit=2**31))
        everything = self._listed[1]
        if context is None:
            return list(everything)
        return [item for item in everything if context in contexts_of(item)]

    def document(self, document_id: str) -> Document:
        """One document."""
        document = self.store.document(document_id)
        if document is None:
            raise DocumentNotFound(f"Document with ID '{document_id}' not found", document_id=document_id)
        return document

    def pages(self, document_id: str) -> list[Page]:
        """What was read of a document, page by page."""
        self.document(document_id)
        return self.shelf.text(document_id)

    def chunks(self, document_id: str) -> list[StoredChunk]:
        """A document's chunks in order."""
        self.document(document_id)
        return self.store.chunks_of(document_id)

    def chunk(self, chunk_id: str) -> StoredChunk:
        """One chunk."""
        stored = self.store.chunk(chunk_id)
        if stored is None:
            raise InvalidInput(f"There is no chunk '{chunk_id}'", parameter="chunk_id")
        return stored

    def chunk_count(self, document_id: str) -> int:
        """How many chunks a document has."""
        return self.store.chunk_counts(document_id).get(document_id, 0)

    # Managing

    def describe(self, document_id: str, metadata: Mapping[str, Any]) -> None:
        """Replace what somebody has said about a document."""
        document = self.document(document_id)
        kept = {**document.metadata, "user": json.dumps(dict(metadata), ensure_ascii=False)}
        self.store.update_documents([replace(document, metadata=kept)])

    def removable(self, document_id: str) -> str:
        """The file name of a document, or of one that could not be read."""
        found = self.store.document(document_id)
        if found is not None:
            return found.metadata["filename"]
        task = self.attempt(document_id)
        is_over = task is not None and task.status == "failed"
        return str(task.details["filename"]) if task and is_over else self.document(document_id).metadata["filename"]

    def attempt(self, document_id: str) -> TaskRecord | None:
        """The task of a document that is not there: still being read, or not readable."""
        tasks = [*self.store.tasks({"queued", "running"}, limit=10**6), *self.failures()]
        return next((task for task in tasks if task.details.get("document_id") == document_id), None)

    def failures(self) -> list[TaskRecord]:
        """Files that could not be read, until somebody dismisses them."""
        return [task for task in self.store.tasks({"failed"}, limit=10**6) if not task.details.get("dismissed")]

    def dismiss(self, tasks: Iterable[TaskRecord]) -> None:
        """Files that could not be read are listed no longer."""
        for task in tasks:
            self.store.put_task(replace(task, details={**task.details, "dismissed": True}))

    def remove(self, document_id: str) -> int:
        """Remove a document with everything that belongs to it; how many chunks it had."""
        self.removable(document_id)
        failures = self.failures()
        digests = {task.details["digest"] for task in failures if task.details["document_id"] == document_id}
        self.dismiss(task for task in failures if task.details["digest"] in digests)  # every try of the same file
        count = self.chunk_count(document_id)
        for task in self.store.tasks({"queued", "running"}):
            if task.details.get("document_id") == document_id:
                self.tasks.cancel(task.id)
        self._delete([document_id])
        return count

    def clear(self) -> tuple[int, int, float]:
        """Remove everything: documents, vectors, megabytes freed."""
        for task in self.store.tasks({"queued", "running"}, limit=10**6):
            self.tasks.cancel(task.id)
        counts = self.store.counts()
        documents = self.documents()
        self._delete([document.id for document in documents])
        self.dismiss(self.failures())
        return counts.documents, counts.passages, _size(documents) / MEGABYTE

    def size_on_disk(self) -> int:
        """Bytes of the copies."""
        return _size(self.documents())

    def issues(self) -> dict[str, str]:
        """What does not work right now, by part: probed, not assumed."""
        problems: dict[str, str] = {}
        try:
            if not self.options.read_only:
                self.store.probe()
            self.store.counts()
        except sqlite3.Error as error:
            problems["vector_db"] = f"The store does not answer: {error}"
        if not self.options.read_only and (reason := self.shelf.probe()):
            problems["storage"] = f"Storage directory not accessible: {reason}"
        if reason := self._index.model_problem():
            problems["embedding_model"] = f"The embedding model does not answer: {reason}"
        return problems

    def last_updated(self) -> float | None:
        """When something last changed."""
        removed = self.store.setting(CHANGED)
        added = [float(document.metadata.get("added", 0)) for document in self.documents()]
        return max([*([float(removed)] if removed else []), *added], default=None)

    def _own(self) -> None:
        """This process does the work from now on; vectors that are lacking are made beside it."""
        self._index.own()
        self._vectors = threading.Thread(target=self._make_vectors, name="knowledge-vectors", daemon=True)
        self._vectors.start()

    def _make_vectors(self) -> None:
        while not self._closing.wait(VECTORS_SECONDS):
            try:
                self._processing.embed_missing(self._closing.is_set)
            except Exception:  # the next look may find the model well again
                logger.exception("Vectors could not be made", extra={"action": "vectors_failed"})

    def _known_folders(self) -> set[str]:
        tasks = self.store.tasks({"queued", "running"}, limit=10**6)  # first: one that ends now has its document
        known = {str(task.details.get("document_id")) for task in tasks}
        return known | {document.id for document in self.documents()}

    def _delete(self, document_ids: Sequence[str]) -> None:
        self.store.delete(document_ids)
        for document_id in document_ids:
            self.shelf.drop(document_id)
        self.store.set_setting(CHANGED, str(time.time()))


def _size(documents: Sequence[Document]) -> int:
    return sum(int(document.metadata.get("size", 0)) for document in documents)


def _several(value: Any) -> list[str]:
    return list(value) if isinstance(value, list) else [value]
