"""The task that adds a file: from a copy to text, chunks and vectors."""

import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bedstone.errors import BedstoneError
from bedstone.ingest.chunking.by_size import SplitOptions, chunk_pages
from bedstone.ingest.detection import is_image
from bedstone.ingest.extraction import ExtractionError, Page, ReadOptions
from bedstone.ingest.reader import FileReader
from bedstone.records import Chunk, Task
from bedstone.search.live_index import LiveIndex
from bedstone.services.knowledge.backfill import Backfill
from bedstone.services.knowledge.collections import Collections
from bedstone.services.knowledge.errors import ExtractionFailed, OcrFailed
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.records import AddedFile, AddFile, FileDocument, Method, OcrSummary
from bedstone.store.engine import Store
from bedstone.tasks import Cancelled, Progress, TaskDeferred

logger = logging.getLogger(__name__)

THROUGHPUT = "bytes_a_second"  # the store's value for the average speed of reading
INITIAL_THROUGHPUT = 200_000.0
MIN_ESTIMATE_SECONDS = 1
TOTAL_STEPS = 20
STEPS_WHEN_EXTRACTED = 8
STEPS_WHEN_CHUNKED = 9


@dataclass(frozen=True)
class ReadingOptions:
    """How files are read and split into chunks."""

    split: SplitOptions = field(default_factory=SplitOptions)
    read: ReadOptions = field(default_factory=ReadOptions)


class AddFileHandler:
    """Reads files; it can start again wherever it was interrupted."""

    def __init__(
        self, store: Store, storage: FileStorage, index: LiveIndex, collections: Collections, options: ReadingOptions
    ) -> None:
        self._store = store
        self._storage = storage
        self._index = index
        self._collections = collections
        self._options = options
        self._adding = threading.Lock()
        # One core stays free for searches.
        self._embedding = threading.Semaphore(max(1, (os.cpu_count() or 1) - 1))
        self.backfill = Backfill(store, index, self._embedding)

    def run(self, task: Task, progress: Progress) -> Mapping[str, Any]:
        """Add the file of a task."""
        started = time.monotonic()
        file = AddFile.from_payload(task.payload)
        document = self._find_document(file.document_id)
        if document is None or document.status != "processing":
            try:
                document = self._read(file, progress)
            except _AlreadyStored as error:
                return self._result_for(error.document, file).to_result()
        self._embed(document, progress)
        progress.update("Storing", TOTAL_STEPS, TOTAL_STEPS)
        seconds = time.monotonic() - started
        current = self._find_document(document.id) or document  # it may be in other collections by now
        completed = replace(current, status="completed", seconds=seconds)
        self._store.update_documents([completed.to_stored()])
        self._update_throughput(file.size_bytes, seconds)
        return self._result(completed).to_result()

    def clean_up(self, task: Task) -> None:
        """Remove what a task that failed or was cancelled left behind."""
        document_id = AddFile.from_payload(task.payload).document_id
        self._store.delete([document_id])
        self._storage.delete(document_id)

    def on_start(self) -> None:
        """Write the indexes in this process, and embed what has no vectors."""
        self._index.become_writer()
        self.backfill.start()

    def on_tick(self) -> None:
        """Bring the indexes up to date."""
        self._index.refresh()

    def restore(self, document: FileDocument) -> AddFile:
        """Store a document from its text, as another knowledge base had it; a task completes it."""
        pages = self._storage.load_pages(document.id)
        self._store.put([(document.to_stored(), self._chunks(document, pages))])
        return AddFile.of_document(document)

    def estimate_seconds(self, size_bytes: int) -> int:
        """Return how long a file of a size will take, by the average speed so far."""
        return max(MIN_ESTIMATE_SECONDS, round(size_bytes / self._throughput()))

    def link_duplicate(self, document: FileDocument, collections: Sequence[str]) -> AddedFile:
        """Put a document that has the same content into the collections as well."""
        names = {*document.collections, *self._collections.existing(collections)}
        if names != set(document.collections):
            self._store.update_documents([document.with_collections(names).to_stored()])
        return replace(self._result(document), is_duplicate=True)

    def _result_for(self, known: FileDocument, file: AddFile) -> AddedFile:
        """Return the result for content that is stored already."""
        if known.id == file.document_id:  # the task was complete, but its outcome was not recorded
            return self._result(known)
        if known.status != "completed":  # it may still fail
            raise TaskDeferred
        self._storage.delete(file.document_id)
        return self.link_duplicate(known, file.collections)

    def _result(self, document: FileDocument) -> AddedFile:
        count = self._store.chunk_counts(document.id).get(document.id, 0)
        return AddedFile(document.id, document.filename, count, document.method or "")

    def _find_document(self, document_id: str) -> FileDocument | None:
        document = self._store.document(document_id)
        return FileDocument.from_stored(document) if document is not None else None

    def _read(self, file: AddFile, progress: Progress) -> FileDocument:
        """Store the chunks of a file in one transaction: from then on keyword search finds it."""
        self._check_new(file.digest)
        is_forced = file.force_ocr or self._options.read.force_ocr
        path = self._storage.path_of(file.document_id, file.filename)
        reader = FileReader(path, replace(self._options.read, force_ocr=is_forced))
        pages = _read_pages(reader, progress)
        progress.update("Chunking", STEPS_WHEN_EXTRACTED, TOTAL_STEPS)
        document = self._document(file, pages, reader)
        named = _with_name(pages, document)
        chunks = self._chunks(document, named)
        if not chunks:
            if any(page.method == "ocr" for page in pages):
                raise OcrFailed("OCR processing failed: no text was recognised.")
            raise ExtractionFailed("No text was found in the file.")
        self._storage.save_pages(document.id, named)
        with self._adding:  # two tasks may read the same content at once
            self._check_new(document.digest)
            self._store.put([(document.to_stored(), chunks)])
        progress.update("Chunking", STEPS_WHEN_CHUNKED, TOTAL_STEPS)
        return document

    def _document(self, file: AddFile, pages: Sequence[Page], reader: FileReader) -> FileDocument:
        properties = reader.notes.metadata
        document = FileDocument(
            file.document_id,
            str(file.metadata.get("title") or properties.get("title") or file.filename),
            file.digest,
            filename=file.filename,
            source=file.source,
            format=file.format,
            size_bytes=file.size_bytes,
            added_at=time.time(),
            status="processing",
            method=_method(file.format, pages),
            page_count=len(pages) if pages and pages[0].number is not None else None,
            metadata=file.metadata,
            properties=properties,
            warnings=tuple(reader.notes.warnings),
            ocr=_ocr_summary(pages),
        )
        return document.with_collections(self._collections.existing(file.collections))

    def _chunks(self, document: FileDocument, pages: Sequence[Page]) -> list[Chunk]:
        facets = {"document": document.id, "format": document.format}
        return chunk_pages(document.id, pages, self._options.split, facets)

    def _embed(self, document: FileDocument, progress: Progress) -> None:
        """Embed the chunks of a document; without a model the vectors follow later."""
        embedder = self._index.embedder
        if embedder is None:
            return
        from bedstone.search.indexer import embed_missing  # noqa: PLC0415 - loads numpy

        done, total = 0, max(self._result(document).chunks_created, 1)

        def advance(count: int) -> None:
            nonlocal done
            done += count
            steps = STEPS_WHEN_CHUNKED + (TOTAL_STEPS - STEPS_WHEN_CHUNKED) * done / total
            progress.update("Generating embeddings", steps, TOTAL_STEPS)

        try:
            self._index.ensure_model()
            advance(0)
            embed_missing(
                self._store,
                embedder,
                document_id=document.id,
                title=document.title,
                on_progress=advance,
                workers=1,
                throttle=self._embedding,
            )
        except BedstoneError as error:
            logger.warning("No vectors for %s yet: %s", document.id, error.message, extra={"action": "no_vectors"})
            self.backfill.request()

    def _check_new(self, digest: str) -> None:
        same = self._store.find_by_digest(digest)
        if same is not None:
            raise _AlreadyStored(FileDocument.from_stored(same))

    def _throughput(self) -> float:
        return float(self._store.get_value(THROUGHPUT) or INITIAL_THROUGHPUT)

    def _update_throughput(self, size_bytes: int, seconds: float) -> None:
        speed = 0.7 * self._throughput() + 0.3 * size_bytes / max(seconds, 0.001)
        self._store.set_value(THROUGHPUT, str(speed))


class _AlreadyStored(Exception):
    """A document with the same content exists."""

    def __init__(self, document: FileDocument) -> None:
        super().__init__(document.id)
        self.document = document


def _read_pages(reader: FileReader, progress: Progress) -> list[Page]:
    pages: list[Page] = []
    progress.on_cancel = reader.stop
    try:
        for page in reader.pages():
            pages.append(page)
            share = len(pages) / (page.of or len(pages))
            step = f"Processing page {page.number} of {page.of}" if page.of else "Extracting text"
            progress.update(step, STEPS_WHEN_EXTRACTED * share, TOTAL_STEPS)
    except ExtractionError as error:
        if progress.is_ending:
            raise Cancelled from None
        kind = OcrFailed if error.reason == "ocr_unavailable" else ExtractionFailed
        raise kind(error.message) from None
    finally:
        progress.on_cancel = None
    return pages


def _method(file_format: str, pages: Sequence[Page]) -> Method:
    if is_image(file_format):
        return "image_analysis"
    return "ocr" if any(page.method == "ocr" for page in pages) else "text_extraction"


def _ocr_summary(pages: Sequence[Page]) -> OcrSummary | None:
    recognized = [page.confidence or 0.0 for page in pages if page.method == "ocr"]
    return OcrSummary(len(recognized), round(sum(recognized) / len(recognized), 3)) if recognized else None


def _with_name(pages: Sequence[Page], document: FileDocument) -> Sequence[Page]:
    """Return the pages of a document; those of an image with its caption and file name, so that search finds it."""
    if not is_image(document.format):
        return pages
    text = "\n\n".join(page.markdown for page in pages if page.markdown.strip())
    caption = str(document.metadata.get("caption", ""))
    named = "\n\n".join(part for part in (text, caption, document.filename) if part)
    return [Page(named, method=pages[0].method if pages else "text")]
