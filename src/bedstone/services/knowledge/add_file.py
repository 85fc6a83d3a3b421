"""The task that adds a file: from a copy to text, chunks and vectors."""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bedstone.errors import BedstoneError
from bedstone.ingest.chunking.by_size import SplitOptions, chunk_pages
from bedstone.ingest.detection import find_format, is_image
from bedstone.ingest.extraction import Page, ReadOptions
from bedstone.records import Chunk, Task
from bedstone.search.live_index import LiveIndex
from bedstone.services.knowledge.backfill import Backfill
from bedstone.services.knowledge.collections import Collections
from bedstone.services.knowledge.errors import ExtractionFailed, OcrFailed
from bedstone.services.knowledge.estimates import FileFacts, Timeline, facts_of
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.learned_speeds import LearnedSpeeds
from bedstone.services.knowledge.reading import CheckedChunks, PageReading, TaskReport
from bedstone.services.knowledge.records import AddedFile, AddFile, FileDocument, Method, OcrSummary
from bedstone.store.engine import Store
from bedstone.tasks import Progress, TaskDeferred

logger = logging.getLogger(__name__)


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
        self._speeds = LearnedSpeeds(store, index)

    def run(self, task: Task, progress: Progress) -> Mapping[str, Any]:
        """Add the file of a task."""
        started = time.monotonic()
        file = AddFile.from_payload(task.payload)
        timeline = Timeline(self._speeds.estimator(), self._facts(file), self._options.split.size)
        report = TaskReport(progress, timeline)
        report.step("Extracting text")
        document = self._find_document(file.document_id)
        if document is None or document.status != "processing":
            try:
                document = self._read(file, report)
            except _AlreadyStored as error:
                return self._result_for(error.document, file).to_result()
        else:
            timeline.skip_reading()
        self._embed(document, report)
        report.step("Storing")
        seconds = time.monotonic() - started
        current = self._find_document(document.id) or document  # it may be in other collections by now
        completed = replace(current, status="completed", seconds=seconds)
        self._store.update_documents([completed.to_stored()])
        result = self._result(completed)
        self._speeds.learn(timeline, result.chunks_created)
        return result.to_result()

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

    def estimate_seconds(self, files: Sequence[AddFile]) -> list[float]:
        """Return how long each of some files will take, from what earlier ones took."""
        estimator = self._speeds.estimator()
        return [estimator.estimate(self._facts(file)).seconds for file in files]

    def _facts(self, file: AddFile) -> FileFacts:
        options, declaration = self._options.read, find_format(file.format)
        if declaration is None:  # its package is not installed any more
            return FileFacts(file.format, file.size_bytes)
        page_images = file.page_images if options.ocr else 0
        force_ocr = file.force_ocr or options.force_ocr
        return facts_of(declaration, file.size_bytes, page_images=page_images, force_ocr=force_ocr)

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

    def _read(self, file: AddFile, report: TaskReport) -> FileDocument:
        """Store the chunks of a file in one transaction: from then on keyword search finds it."""
        self._check_new(file.digest)
        is_forced = file.force_ocr or self._options.read.force_ocr
        reading = PageReading(self._storage, file, replace(self._options.read, force_ocr=is_forced))
        pages = reading.pages(report)
        report.step("Chunking")
        document = self._document(file, pages, reading)
        named = _with_name(pages, document)
        chunks = self._chunks(document, named, report.progress.check)
        report.step("Chunking")
        if not chunks:
            if any(page.method == "ocr" for page in pages):
                raise OcrFailed("OCR processing failed: no text was recognised.")
            raise ExtractionFailed("No text was found in the file.")
        self._storage.save_pages(document.id, named)
        with self._adding:  # two tasks may read the same content at once
            self._check_new(document.digest)
            self._store.put([(document.to_stored(), CheckedChunks(chunks, report.progress.check))])
        reading.spool.discard()
        report.step("Chunking")
        return document

    def _document(self, file: AddFile, pages: Sequence[Page], reading: PageReading) -> FileDocument:
        properties = reading.notes.metadata
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
            warnings=tuple(reading.notes.warnings),
            ocr=_ocr_summary(pages),
            left_out=reading.notes.left_out,
        )
        return document.with_collections(self._collections.existing(file.collections))

    def _chunks(
        self, document: FileDocument, pages: Sequence[Page], check: Callable[[], object] = lambda: None
    ) -> list[Chunk]:
        facets = {"document": document.id, "format": document.format}
        return chunk_pages(document.id, pages, self._options.split, facets, check)

    def _embed(self, document: FileDocument, report: TaskReport) -> None:
        """Embed the chunks of a document; without a model the vectors follow later."""
        embedder = self._index.embedder
        if embedder is None:
            return
        from bedstone.search.indexer import embed_missing  # noqa: PLC0415 - loads numpy

        done, total = 0, max(self._result(document).chunks_created, 1)

        def advance(count: int) -> None:
            nonlocal done
            done += count
            report.timeline.add_chunks(done, total)
            report.step("Generating embeddings")

        try:
            self._index.ensure_model()
            advance(0)
            embed_missing(
                self._store,
                embedder,
                document_id=document.id,
                title=document.title,
                should_stop=lambda: report.progress.is_ending,
                on_progress=advance,
                workers=1,
                throttle=self._embedding,
            )
            report.progress.check()
        except BedstoneError as error:
            logger.warning("No vectors for %s yet: %s", document.id, error.message, extra={"action": "no_vectors"})
            self.backfill.request()

    def _check_new(self, digest: str) -> None:
        same = self._store.find_by_digest(digest)
        if same is not None:
            raise _AlreadyStored(FileDocument.from_stored(same))


class _AlreadyStored(Exception):
    """A document with the same content exists."""

    def __init__(self, document: FileDocument) -> None:
        super().__init__(document.id)
        self.document = document


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
