"""The task that adds a file: from a copy to text, chunks and vectors."""

import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bedstone.errors import BedstoneError
from bedstone.ingest.chunking.pieces import SplitOptions
from bedstone.ingest.detection import find_format, is_image
from bedstone.ingest.extraction import OCR_OFF, ExtractionError, Page, ReadOptions
from bedstone.ingest.left_out import shorten
from bedstone.ingest.ocr_quality import warn_poor_pages
from bedstone.ingest.process import WorkerProcess
from bedstone.records import DocumentAndChunks, Task
from bedstone.search.live_index import LiveIndex
from bedstone.services.knowledge.backfill import Backfill
from bedstone.services.knowledge.collections import Collections
from bedstone.services.knowledge.errors import ExtractionFailed, OcrFailed
from bedstone.services.knowledge.estimates import FileFacts, Timeline, facts_of
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.learned_speeds import LearnedSpeeds
from bedstone.services.knowledge.reading import CheckedChunks, PageReading, TaskReport, split_document
from bedstone.services.knowledge.records import AddedFile, AddFile, FileDocument, Method, OcrSummary
from bedstone.services.knowledge.versions import Versions, needs_ocr
from bedstone.store.engine import Store, StoreUnavailable
from bedstone.tasks import INTERRUPTED, Progress, TaskDeferred

logger = logging.getLogger(__name__)

MAX_TITLE_CHARS = 300  # the index has it with every chunk


@dataclass(frozen=True)
class ReadingOptions:
    """How files are read and split into chunks."""

    split: SplitOptions = field(default_factory=SplitOptions)
    read: ReadOptions = field(default_factory=ReadOptions)


class AddFileHandler:
    """Reads files; it can start again wherever it was interrupted."""

    def __init__(
        self,
        store: Store,
        storage: FileStorage,
        index: LiveIndex,
        collections: Collections,
        *,
        versions: Versions,
        options: ReadingOptions,
    ) -> None:
        self._store = store
        self._storage = storage
        self._index = index
        self._collections = collections
        self._versions = versions
        self._options = options
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
                document = self._read_new(file, report)
            except _AlreadyStored as error:
                return self._result_for(error.document, file).to_result()
        else:
            timeline.skip_reading()
        self._embed(document, report)
        report.step("Storing")
        result = self._complete(document, file, time.monotonic() - started)
        self._speeds.learn(timeline, result.chunks_created)
        return result.to_result()

    def _complete(self, document: FileDocument, file: AddFile, seconds: float) -> AddedFile:
        """Mark a document as complete; earlier versions of its file disappear in the same moment."""
        with self._collections.changing:
            current = self._find_document(document.id)  # it may be in other collections by now
            later = self._versions.later(file)
            if later is not None and (current is None or later.status == "completed"):
                self._delete(document.id)
                return replace(self._result(later), is_superseded=True)
            if current is None:  # removed meanwhile
                return self._result(document)
            change = self._versions.take_over(replace(current, status="completed", seconds=seconds), file)
            self._versions.apply(replace(change, document=replace(change.document, replaces=())))
        return replace(self._result(current), replaced_id=change.removed_id)

    def clean_up(self, task: Task) -> None:
        """Remove what a task that failed or was cancelled left behind; the only copy of a file is moved aside."""
        file = AddFile.from_payload(task.payload)
        if file.is_rebuild:
            self._clean_up_rebuild(file.document_id)
        elif task.error == INTERRUPTED:  # that is not the file's fault: its copy is kept for another attempt
            self._store.delete([file.document_id])
        else:
            self._delete(file.document_id)

    def _clean_up_rebuild(self, document_id: str) -> None:
        known = self._find_document(document_id)
        if known is None or known.status != "completed":  # otherwise it was to be read again, and stays as it was
            self._store.delete([document_id])
            self._storage.aside.add(document_id)

    def on_start(self) -> None:
        """Embed what has no vectors; write the index in this process, unless each process has its own."""
        if self._store.notes is None:
            self._index.become_writer()
        self.backfill.start()

    def on_tick(self) -> None:
        """Bring the indexes up to date."""
        self._index.refresh()

    def chunk_restored(self, document: FileDocument, pages: Sequence[Page]) -> DocumentAndChunks:
        """Return what to store of a document whose text another knowledge base had."""
        with WorkerProcess() as worker:
            try:
                document, chunks = split_document(worker, document, pages, self._options.split)
            except ExtractionError as error:
                raise ExtractionFailed(error.message) from None
        return document.to_stored(), chunks

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

    def link_duplicate(self, document: FileDocument, file: AddFile) -> AddedFile:
        """Apply to a document what is new about a file with the same content: collections, metadata and its path."""
        with self._collections.changing:
            known = self._find_document(document.id) or document
            names = {*known.collections, *self._collections.existing(file.collections)}
            metadata = {**known.metadata, **file.metadata}
            title = str(file.metadata.get("title") or known.title)
            linked = replace(known.with_collections(names), metadata=metadata, title=title)
            if known.sources == (file.source,):  # a version that is being read is older than this
                linked = replace(linked, submitted_at=file.submitted_at)
            change = self._versions.take_over(linked, file)
            updated = known.differences(change.document)
            if change.document != known or change.removed or change.kept:
                self._versions.apply(change)
        return replace(self._result(known), is_duplicate=True, updated=updated, replaced_id=change.removed_id)

    def _result_for(self, known: FileDocument, file: AddFile) -> AddedFile:
        """Return the result for content that is stored already."""
        if known.id == file.document_id:  # the task was complete, but its outcome was not recorded
            return self._result(known)
        if known.status != "completed":  # it may still fail
            raise TaskDeferred
        self._storage.delete(file.document_id)
        if known.digest != file.digest:
            return replace(self._result(known), is_superseded=True)
        return self.link_duplicate(known, file)

    def _result(self, document: FileDocument) -> AddedFile:
        count = self._store.chunk_counts(document.id).get(document.id, 0)
        return AddedFile(document.id, document.filename, count, document.method or "")

    def _find_document(self, document_id: str) -> FileDocument | None:
        document = self._store.document(document_id)
        return FileDocument.from_stored(document) if document is not None else None

    def _delete(self, document_id: str) -> None:
        self._store.delete([document_id])
        self._storage.delete(document_id)

    def _read_new(self, file: AddFile, report: TaskReport) -> FileDocument:
        """Read a file; if that fails, the error says whether an earlier version of it remains."""
        try:
            return self._read(file, report)
        except (ExtractionFailed, OcrFailed) as error:
            if self._versions.earlier(file):
                raise type(error)(f"{error.message} The version that was added earlier is kept.") from error
            raise

    def _read(self, file: AddFile, report: TaskReport) -> FileDocument:
        """Store the chunks of a file in one transaction: from then on keyword search finds it."""
        self._check_new(file)
        self._storage.check_copy(file.document_id, file.filename)
        if file.force_ocr and not self._options.read.ocr:
            raise OcrFailed(f"{OCR_OFF}. Enable it, or add the file without force_ocr.")
        options = replace(self._options.read, force_ocr=self._is_ocr_forced(file))
        with PageReading(self._storage, file, options) as reading:
            pages = reading.pages(report)
            report.step("Chunking")
            document = self._document(file, pages, reading)
            named = _with_name(pages, document)
            document, chunks = reading.split(document, named, self._options.split, report)
        report.step("Chunking")
        if not chunks:
            raise self._no_text(pages, document)
        self._storage.texts.save(document.id, named)
        self._storage.save_document(document)
        with self._collections.changing:  # two tasks may read the same content at once
            self._check_new(file)
            document = replace(document, replaces=self._replaced_ids(file))
            self._store.put([(document.to_stored(), CheckedChunks(chunks, report.progress.check))])
        reading.spool.discard()
        report.step("Chunking")
        return document

    def _document(self, file: AddFile, pages: Sequence[Page], reading: PageReading) -> FileDocument:
        properties = reading.notes.metadata
        document = FileDocument(
            file.document_id,
            shorten(str(file.metadata.get("title") or properties.get("title") or file.filename), MAX_TITLE_CHARS),
            file.digest,
            filename=file.filename,
            source=file.source,
            format=file.format,
            size_bytes=file.size_bytes,
            added_at=file.added_at or time.time(),
            status="processing",
            method=_method(file.format, pages),
            page_count=len(pages) if pages and pages[0].number is not None else None,
            metadata=file.metadata,
            properties=properties,
            warnings=(*reading.notes.warnings, *warn_poor_pages(pages)),
            ocr=_ocr_summary(pages),
            left_out=reading.notes.left_out,
            submitted_at=file.submitted_at,
            other_sources=file.other_sources,
            is_ocr_forced=self._is_ocr_forced(file),
        )
        return document.with_collections(self._collections.existing(file.collections))

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
        except StoreUnavailable:  # they could not be stored: the task runs again
            raise
        except BedstoneError as error:
            logger.warning("No vectors for %s yet: %s", document.id, error.message, extra={"action": "no_vectors"})
            self.backfill.request()

    def _is_ocr_forced(self, file: AddFile) -> bool:
        return self._options.read.ocr and (file.force_ocr or self._options.read.force_ocr)

    def _check_new(self, file: AddFile) -> None:
        """Raise if the content is stored already, unless OCR is to read more of it, or if there is a later version."""
        same = self._same_content(file)
        if same is not None and not self._is_to_be_read_again(same, file):
            raise _AlreadyStored(same)
        later = self._versions.later(file)
        if later is not None:
            raise _AlreadyStored(later)

    @staticmethod
    def _is_to_be_read_again(same: FileDocument, file: AddFile) -> bool:
        if file.is_rebuild and same.id == file.document_id:
            return True
        return file.force_ocr and same.status == "completed" and needs_ocr(same)

    def _same_content(self, file: AddFile) -> FileDocument | None:
        same = self._store.find_by_digest(file.digest)
        return FileDocument.from_stored(same) if same is not None else None

    def _replaced_ids(self, file: AddFile) -> tuple[str, ...]:
        """Return the documents that a file takes the place of: earlier versions, and a reading without OCR."""
        same = self._same_content(file)
        found = [*self._versions.earlier(file), *([same] if same is not None else [])]
        return tuple(dict.fromkeys(item.id for item in found if item.id != file.document_id))

    def _no_text(self, pages: Sequence[Page], document: FileDocument) -> ExtractionFailed | OcrFailed:
        if any(page.method == "ocr" for page in pages):
            return OcrFailed("OCR processing failed: no text was recognised.")
        if not self._options.read.ocr and document.left_out.counts.get("scanned page"):
            return OcrFailed(f"{OCR_OFF}, and the file has only scanned pages. Enable OCR and add the file again.")
        return ExtractionFailed("No text was found in the file.")


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
    return [replace(pages[0], markdown=named)] if pages else [Page(named)]
