"""The work of a task: a copied file to text, chunks and vectors."""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bedstone.errors import BedstoneError
from bedstone.ingest.chunking.by_size import SplitOptions, split_pages
from bedstone.ingest.extraction import Page, ReadOptions, Unreadable
from bedstone.ingest.formats import IMAGES
from bedstone.ingest.reader import FileReader
from bedstone.records import Chunk, Document, StoredChunk
from bedstone.search.live_index import LiveIndex
from bedstone.services.knowledge.collections import Contexts, contexts_of, in_contexts
from bedstone.services.knowledge.errors import ExtractionFailed, OcrFailed
from bedstone.services.knowledge.file_storage import Shelf
from bedstone.store.engine import StoreEngine, TaskRecord
from bedstone.tasks import Cancelled, Postponed, Progress

logger = logging.getLogger(__name__)

SPEED = "bytes_a_second"  # the store's note of how fast files were read
FIRST_SPEED, LEAST_SECONDS = 200_000.0, 1
STEPS = 20  # what progress is counted in
EXTRACTED, CHUNKED = 8, 9


@dataclass(frozen=True)
class ReadingOptions:
    """How files are read and cut."""

    split: SplitOptions = field(default_factory=SplitOptions)
    read: ReadOptions = field(default_factory=ReadOptions)


class Processing:
    """Reads files one by one; safe to begin again wherever it was interrupted."""

    def __init__(
        self, store: StoreEngine, shelf: Shelf, index: LiveIndex, contexts: Contexts, options: ReadingOptions
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._index = index
        self._contexts = contexts
        self._options = options
        self._adding = threading.Lock()
        self._lacking = threading.Event()  # vectors, possibly: looked for once at the start
        self._lacking.set()
        # A core is left to whoever searches meanwhile.
        self._embedding = threading.Semaphore(max(1, (os.cpu_count() or 1) - 1))

    def work(self, task: TaskRecord, progress: Progress) -> Mapping[str, Any]:
        """Do what a task says."""
        started = time.monotonic()
        details = task.details
        document_id = str(details["document_id"])
        document = self._store.document(document_id)
        if document is None or document.metadata.get("status") != "processing":
            try:
                document = self._read(details, progress)
            except _Known as known:
                if known.document.id == document_id:  # all was done but for saying so
                    return self.result(known.document)
                if known.document.metadata["status"] != "completed":  # it may still fail
                    raise Postponed from None
                self._shelf.drop(document_id)
                return self.duplicate(known.document, details["contexts"])
        self._embed(document, progress)
        progress.update("Storing", STEPS, STEPS)
        seconds = time.monotonic() - started
        current = self._store.document(document_id) or document  # it may be in other contexts by now
        done = replace(current, metadata={**current.metadata, "status": "completed", "seconds": f"{seconds:.3f}"})
        self._store.update_documents([done])
        self._learn_speed(float(details["size"]), seconds)
        return self.result(done)

    def restore(self, document: Document) -> dict[str, Any]:
        """Put a document in from the text that was kept of it; the details of the task that does the rest."""
        pages = self._shelf.text(document.id)
        self._store.put([(document, self._chunks(document, pages))])
        facts = document.metadata
        return {
            "document_id": document.id,
            "filename": facts["filename"],
            "source": facts.get("source", ""),
            "format": facts["format"],
            "size": int(facts["size"]),
            "digest": document.digest,
            "metadata": json.loads(facts["user"]),
            "force_ocr": False,
            "contexts": contexts_of(document),
        }

    def undo(self, task: TaskRecord) -> None:
        """Remove what a task that did not succeed has left."""
        document_id = str(task.details.get("document_id"))
        self._store.delete([document_id])
        self._shelf.drop(document_id)

    def estimate(self, size: int) -> int:
        """Seconds a file of a size will take, by past speed."""
        speed = float(self._store.setting(SPEED) or FIRST_SPEED)
        return max(LEAST_SECONDS, round(size / speed))

    def result(self, document: Document) -> dict[str, Any]:
        """What is told when a document is there."""
        return {
            "document_id": document.id,
            "filename": document.metadata["filename"],
            "chunks_created": self._store.chunk_counts(document.id).get(document.id, 0),
            "processing_method": document.metadata["method"],
        }

    def duplicate(self, document: Document, contexts: Sequence[str]) -> dict[str, Any]:
        """The same content again: the document is in the further contexts too, and nothing else happens."""
        wanted = {*contexts_of(document), *self._contexts.existing(contexts)}
        if wanted != set(contexts_of(document)):
            self._store.update_documents([in_contexts(document, wanted)])
        return {**self.result(document), "duplicate": True}

    def _read(self, details: Mapping[str, Any], progress: Progress) -> Document:
        """Text to chunks, in one transaction: from then on the document is found by words."""
        self._check_known(str(details["digest"]))
        forced = bool(details["force_ocr"]) or self._options.read.force_ocr
        file = self._shelf.file(str(details["document_id"]), str(details["filename"]))
        reader = FileReader(file, replace(self._options.read, force_ocr=forced))
        pages = _pages(reader, progress)
        progress.update("Chunking", EXTRACTED, STEPS)
        document = self._document(details, pages, reader)
        named = _with_name(pages, document)
        chunks = self._chunks(document, named)
        if not chunks:
            ocr_failed = any(page.method == "ocr" for page in pages)
            raise (
                OcrFailed("OCR processing failed: no text was recognised.")
                if ocr_failed
                else ExtractionFailed("No text was found in the file.")
            )
        self._shelf.keep_text(document.id, named)
        with self._adding:  # the same content may be read by two tasks at once
            self._check_known(document.digest)
            self._store.put([(document, chunks)])
        progress.update("Chunking", CHUNKED, STEPS)
        return document

    def _document(self, details: Mapping[str, Any], pages: Sequence[Page], reader: FileReader) -> Document:
        recognised = [page for page in pages if page.method == "ocr"]
        is_image = details["format"] in IMAGES
        method = "image_analysis" if is_image else "ocr" if recognised else "text_extraction"
        facts: dict[str, Any] = {
            "filename": details["filename"],
            "source": details["source"],
            "format": details["format"],
            "size": details["size"],
            "added": time.time(),
            "status": "processing",
            "method": method,
            "pages": len(pages) if pages and pages[0].number is not None else "",
            "user": json.dumps(details["metadata"], ensure_ascii=False),
            "facts": json.dumps(reader.notes.metadata, ensure_ascii=False),
            "warnings": json.dumps(reader.notes.warnings, ensure_ascii=False),
        }
        if recognised:
            confidence = sum(page.confidence or 0.0 for page in recognised) / len(recognised)
            facts |= {"ocr_pages": len(recognised), "ocr_confidence": round(confidence, 3)}
        title = str(details["metadata"].get("title") or reader.notes.metadata.get("title") or details["filename"])
        metadata = {key: str(value) for key, value in facts.items()}
        document = Document(str(details["document_id"]), title, str(details["digest"]), metadata)
        return in_contexts(document, self._contexts.existing(details["contexts"]))

    def _chunks(self, document: Document, pages: Sequence[Page]) -> list[Chunk]:
        facets = {"document": document.id, "format": document.metadata["format"]}
        return split_pages(document.id, pages, self._options.split, facets)

    def _embed(self, document: Document, progress: Progress) -> None:
        """Vectors in batches, each kept as it comes."""
        embedder = self._index.embedder
        if embedder is None:
            return
        from bedstone.search.indexer import embed_chunks  # noqa: PLC0415 - loads numpy

        chunks = self._store.chunks_of(document.id)
        total = len(chunks)
        try:
            self._index.check_model()
            waiting = [stored for stored in chunks if not self._has_vectors(stored)]
            for start in range(0, len(waiting), embedder.batch):
                done = total - len(waiting) + start
                share = (STEPS - CHUNKED) * done / max(total, 1)
                progress.update("Generating embeddings", CHUNKED + share, STEPS)
                with self._embedding:
                    vectors = embed_chunks(waiting[start : start + embedder.batch], embedder, document.title)
                self._store.put_passages(vectors)
        except BedstoneError as error:  # it is found by words; its vectors follow when the model answers again
            logger.warning("No vectors for %s yet: %s", document.id, error.message, extra={"action": "no_vectors"})
            self._lacking.set()

    def embed_missing(self, is_over: Callable[[], bool]) -> None:
        """Vectors for finished documents that have none: added while there was no model, or made by another one."""
        if not self._lacking.is_set() and not self._index.forgot_vectors:
            return
        if not any(self._is_finished(stored.document) for stored in self._store.unembedded(limit=1000)):
            self._lacking.clear()
            self._index.forgot_vectors = False
            return
        embedder = self._index.embedder
        if embedder is None:
            if self._index.model_problem() is None:  # there is to be none
                self._lacking.clear()
            return
        from bedstone.search.indexer import embed_chunks  # noqa: PLC0415 - loads numpy

        self._index.check_model()
        self._index.forgot_vectors = False
        after = 0
        while not is_over() and (chunks := self._store.unembedded(after=after, limit=embedder.batch)):
            after = chunks[-1].rowid
            finished = [stored for stored in chunks if self._is_finished(stored.document)]
            for name in {stored.document for stored in finished}:
                title = getattr(self._store.document(name), "title", None)
                with self._embedding:
                    vectors = embed_chunks([item for item in finished if item.document == name], embedder, title)
                self._store.put_passages(vectors)
        if not is_over():
            self._lacking.clear()

    def _is_finished(self, document_id: str) -> bool:
        document = self._store.document(document_id)
        return document is not None and document.metadata["status"] == "completed"

    def _has_vectors(self, stored: StoredChunk) -> bool:
        return next(iter(self._store.passages_between(stored.rowid, stored.rowid)), None) is not None

    def _check_known(self, digest: str) -> None:
        same = self._store.with_digest(digest)
        if same is not None:
            raise _Known(same)

    def _learn_speed(self, size: float, seconds: float) -> None:
        speed = float(self._store.setting(SPEED) or FIRST_SPEED)
        self._store.set_setting(SPEED, str(0.7 * speed + 0.3 * size / max(seconds, 0.001)))


class _Known(Exception):
    """The content is there already."""

    def __init__(self, document: Document) -> None:
        super().__init__(document.id)
        self.document = document


def _pages(reader: FileReader, progress: Progress) -> list[Page]:
    pages: list[Page] = []
    progress.on_cancel = reader.stop
    try:
        for page in reader.pages():
            pages.append(page)
            share = len(pages) / (page.of or len(pages))
            said = f"Processing page {page.number} of {page.of}" if page.of else "Extracting text"
            progress.update(said, EXTRACTED * share, STEPS)
    except Unreadable as error:
        if progress.is_ending:
            raise Cancelled from None
        raise _failure(error) from None
    finally:
        progress.on_cancel = None
    return pages


def _failure(error: Unreadable) -> BedstoneError:
    return OcrFailed(error.message) if error.reason == "ocr_unavailable" else ExtractionFailed(error.message)


def _with_name(pages: Sequence[Page], document: Document) -> Sequence[Page]:
    """A picture always has something to be found by: what was recognised, and its name."""
    if document.metadata["format"] not in IMAGES:
        return pages
    text = "\n\n".join(page.markdown for page in pages if page.markdown.strip())
    caption = str(json.loads(document.metadata["user"]).get("caption", ""))
    named = "\n\n".join(part for part in (text, caption, document.metadata["filename"]) if part)
    return [Page(named, method=pages[0].method if pages else "text")]
