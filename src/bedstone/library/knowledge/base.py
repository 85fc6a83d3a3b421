"""What people add: files in, passages out. One truth in a store, indexes derived from it."""

import json
import logging
import os
import shutil
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from bedstone.documents import Document, StoredChunk
from bedstone.errors import BedstoneError
from bedstone.ingest.detection import detect, format_of
from bedstone.ingest.extraction import Page, ReadOptions, Unreadable
from bedstone.ingest.formats import IMAGES
from bedstone.ingest.reader import FileReader
from bedstone.ingest.splitting import SplitOptions, split_pages
from bedstone.library.knowledge.documents import passes
from bedstone.library.knowledge.errors import (
    DocumentNotFound,
    EmptyKnowledgeBase,
    ExtractionFailed,
    FileNotFound,
    FileTooLarge,
    OcrFailed,
    PathNotAllowed,
    unsupported,
)
from bedstone.search.engine import SearchEngine
from bedstone.search.indexes.hybrid import HybridIndex
from bedstone.search.indexes.words import WordIndex
from bedstone.search.matching import Matcher
from bedstone.search.query import Is
from bedstone.search.relevance import coverage, falling, relevance, term_weights
from bedstone.store.engine import TaskRecord
from bedstone.store.engines.sqlite import SqliteStore
from bedstone.tasks import Progress, TaskRunner
from bedstone.tasks.runner import Cancelled

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder
    from bedstone.search.indexes.vectors import VectorIndex

logger = logging.getLogger(__name__)

MEGABYTE = 2**20
COPY_BYTES = MEGABYTE
MODEL = "embedding_fingerprint"
SPEED = "bytes_a_second"  # the store's note of how fast files were read
FIRST_SPEED, LEAST_SECONDS = 200_000.0, 1
STEPS = 20  # what progress is counted in
EXTRACTED, CHUNKED = 8, 9


@dataclass(frozen=True)
class KnowledgeOptions:
    """Where things are kept, and how files are read."""

    documents_path: Path
    index_path: Path
    allowed_roots: Sequence[Path] = ()
    max_file_size_mb: int = 100
    max_concurrent_tasks: int = 3
    split: SplitOptions = field(default_factory=SplitOptions)
    ocr: bool = True
    ocr_language: str = "eng"
    force_ocr: bool = False
    ocr_confidence: float = 0.0


@dataclass(frozen=True)
class KnowledgeHit:
    """A passage that was found."""

    document: Document
    stored: StoredChunk
    score: float


@dataclass(frozen=True)
class Admitted:
    """A file that was copied and may be read; `duplicate` is a document with the same content."""

    details: dict[str, Any]
    duplicate: Document | None = None


class KnowledgeBase:
    """Documents, searched by words as soon as they are cut and by meaning when their vectors are there."""

    def __init__(self, options: KnowledgeOptions, embedder: "Callable[[], Embedder | None]") -> None:
        self.options = options
        self._make_embedder = embedder
        options.documents_path.mkdir(parents=True, exist_ok=True)
        options.index_path.mkdir(parents=True, exist_ok=True)
        self.store = SqliteStore(options.index_path / "knowledge.sqlite")
        self._indexing = threading.Lock()
        self._adding = threading.Lock()
        self._vectors: VectorIndex | None = None
        # A core is left to whoever searches meanwhile.
        self._embedding = threading.Semaphore(max(1, (os.cpu_count() or 1) - 1))
        self.tasks = TaskRunner(self.store, self._process, workers=options.max_concurrent_tasks, undo=self._undo)

    def open(self) -> None:
        """Begin: what was interrupted goes on."""
        self._sweep()
        self.tasks.start()

    def close(self) -> None:
        """End in good order."""
        self.tasks.stop()
        if self._vectors is not None:
            self._vectors.save()
        if "_words" in vars(self):
            self._words.finish()
            self._words.close()
        self.store.close()

    @cached_property
    def embedder(self) -> "Embedder | None":
        """The model, loaded when it is first needed."""
        embedder = self._make_embedder()
        if embedder is not None and self.store.setting(MODEL) != embedder.fingerprint:
            self.store.delete_passages()
            self.store.set_setting(MODEL, embedder.fingerprint)
        return embedder

    @cached_property
    def _words(self) -> WordIndex:
        return WordIndex(self.options.index_path / "words")

    @cached_property
    def _engine(self) -> SearchEngine:
        vectors = None
        if self.embedder is not None:
            from bedstone.search.indexes.vectors import VectorIndex  # noqa: PLC0415 - loads numpy

            file = self.options.index_path / "vectors.usearch"
            vectors = self._vectors = VectorIndex(self.store, self.embedder.dimensions, self.embedder.reach, file)
        return SearchEngine(HybridIndex(self.store, self._words, vectors), self.embedder)

    # Adding

    def admit(self, path: Path, metadata: Mapping[str, Any], *, force_ocr: bool) -> Admitted:
        """Check a file and copy it; the open file is what is checked and read, so nobody can swap it meanwhile."""
        kind = format_of(path.name)
        if kind is None:
            raise unsupported(path.suffix or path.name)
        resolved = self._allowed(path)
        try:
            with resolved.open("rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise FileNotFound(f"Not a file: {path}", file_path=str(path))
                self._check_size(status.st_size)
                document_id = str(uuid4())
                copy, digest = self._copy(file, document_id, path.name)
        except OSError as error:
            raise FileNotFound(f"File not found: {path} ({error.strerror})", file_path=str(path)) from None
        found = detect(copy, path.name)
        if found is None:
            shutil.rmtree(copy.parent, ignore_errors=True)
            raise unsupported(path.suffix)
        details = {
            "document_id": document_id,
            "filename": path.name,
            "source": str(path),
            "format": found,
            "size": status.st_size,
            "digest": digest,
            "metadata": dict(metadata),
            "force_ocr": force_ocr or self.options.force_ocr,
        }
        duplicate = self._same(digest)
        if duplicate is not None:
            shutil.rmtree(copy.parent, ignore_errors=True)
        return Admitted(details, duplicate)

    def add(self, admitted: Admitted) -> TaskRecord:
        """Queue a file that was admitted; a duplicate is done at once."""
        if admitted.duplicate is not None:
            result = {**self._result(admitted.duplicate), "duplicate": True}
            return self.tasks.add_finished("add", admitted.details, result)
        return self.tasks.submit("add", admitted.details)

    def estimate(self, size: int) -> int:
        """Seconds a file of a size will take, by past speed."""
        speed = float(self.store.setting(SPEED) or FIRST_SPEED)
        return max(LEAST_SECONDS, round(size / speed))

    # Searching

    def search(
        self, query: str, *, top_k: int, min_relevance: float = 0.0, filters: Mapping[str, Any] | None = None
    ) -> list[KnowledgeHit]:
        """The best passages."""
        counts = self.store.counts()
        if not counts.documents:
            raise EmptyKnowledgeBase(
                "Knowledge base is empty. Add documents with knowledge-add first", document_count=0
            )
        condition = None
        if filters:
            allowed = tuple(item.id for item in self.documents() if passes(item, filters))
            if not allowed:
                return []
            condition = Is("document", allowed)
        self._catch_up()
        found = self._engine.search(query, condition=condition, limit=top_k)
        if "words" not in found.signals and self.embedder is not None:
            nearest = max((hit.cosine or 0.0 for hit in found.hits), default=0.0)
            if nearest < self.embedder.floor:
                return []
        chunks = self.store.chunks([hit.rowid for hit in found.hits])
        matcher = Matcher(query)
        weights = term_weights(matcher.terms, counts.chunks, self._words.frequency)
        hits, scores = [], []
        for hit in found.hits:
            stored = chunks.get(hit.rowid)
            document = self.store.document(stored.document) if stored else None
            if stored is None or document is None:  # removed meanwhile
                continue
            text = "\n".join([document.title, *stored.chunk.breadcrumb, stored.chunk.plain])
            scores.append(relevance(hit.cosine, coverage(weights, {term for _, _, term in matcher.find(text)})))
            hits.append((document, stored))
        shown = zip(hits, falling(scores), strict=True)
        return [
            KnowledgeHit(document, stored, round(score, 4))
            for (document, stored), score in shown
            if score >= min_relevance
        ]

    # Managing

    def documents(self) -> list[Document]:
        """Every document that can be searched."""
        return self.store.documents(limit=2**31)

    def document(self, document_id: str) -> Document:
        """One document."""
        document = self.store.document(document_id)
        if document is None:
            raise DocumentNotFound(f"Document with ID '{document_id}' not found", document_id=document_id)
        return document

    def chunk_count(self, document_id: str) -> int:
        """How many chunks a document has."""
        return self.store.chunk_counts().get(document_id, 0)

    def remove(self, document_id: str) -> int:
        """Remove a document with everything that belongs to it; how many chunks it had."""
        self.document(document_id)
        count = self.chunk_count(document_id)
        for task in self.store.tasks({"queued", "running"}):
            if task.details.get("document_id") == document_id:
                self.tasks.cancel(task.id)
        self.store.delete([document_id])
        shutil.rmtree(self.options.documents_path / document_id, ignore_errors=True)
        return count

    def clear(self) -> tuple[int, int, float]:
        """Remove everything: documents, vectors, megabytes freed."""
        before = self.size_on_disk()
        for task in self.store.tasks({"queued", "running"}):
            self.tasks.cancel(task.id)
        counts = self.store.counts()
        names = [document.id for document in self.documents()]
        self.store.delete(names)
        for name in names:
            shutil.rmtree(self.options.documents_path / name, ignore_errors=True)
        return counts.documents, counts.passages, max(0.0, before - self.size_on_disk()) / MEGABYTE

    def size_on_disk(self) -> float:
        """Bytes of the copies."""
        return sum(float(document.metadata.get("size", 0)) for document in self.documents())

    def issues(self) -> dict[str, str]:
        """What does not work right now, by part: probed, not assumed."""
        problems: dict[str, str] = {}
        try:
            self.store.set_setting("probe", str(time.time()))
            self.store.counts()
        except sqlite3.Error as error:
            problems["vector_db"] = f"The store does not answer: {error}"
        try:
            probe = self.options.documents_path / f".probe-{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            problems["storage"] = f"Storage directory not accessible: {error.strerror}"
        try:
            if self.embedder is not None:
                self.embedder.embed_query("probe")
        except BedstoneError as error:
            problems["embedding_model"] = f"The embedding model does not answer: {error.message}"
        return problems

    def last_updated(self) -> float | None:
        """When something last changed."""
        times = [task.finished for task in self.store.tasks({"completed"}, limit=10**6) if task.finished]
        added = [float(document.metadata.get("added", 0)) for document in self.documents()]
        return max([*times, *added], default=None)

    # The work of a task

    def _process(self, task: TaskRecord, progress: Progress) -> Mapping[str, Any]:
        started = time.monotonic()
        details = task.details
        document_id = str(details["document_id"])
        document = self.store.document(document_id)
        if document is None or document.metadata.get("status") != "processing":
            try:
                document = self._read(task, progress)
            except _Known as known:
                if known.document.id == document_id:  # all was done but for saying so
                    return self._result(known.document)
                shutil.rmtree(self.options.documents_path / document_id, ignore_errors=True)
                return {**self._result(known.document), "duplicate": True}
        self._embed(document, progress)
        progress.update("Storing", STEPS, STEPS)
        seconds = time.monotonic() - started
        done = replace(document, metadata={**document.metadata, "status": "completed", "seconds": f"{seconds:.3f}"})
        self.store.update_documents([done])
        self._learn_speed(float(details["size"]), seconds)
        return self._result(done)

    def _read(self, task: TaskRecord, progress: Progress) -> Document:
        """Text to chunks, in one transaction: from then on the document is found by words."""
        details = task.details
        self._check_known(str(details["digest"]))
        copy = self._copy_path(str(details["document_id"]), str(details["filename"]))
        options = ReadOptions(
            force_ocr=bool(details["force_ocr"]),
            ocr=self.options.ocr,
            ocr_language=self.options.ocr_language,
            ocr_confidence=self.options.ocr_confidence,
        )
        reader = FileReader(copy, options)
        progress.on_cancel = reader.stop
        pages: list[Page] = []
        try:
            for page in reader.pages():
                pages.append(page)
                share = len(pages) / (page.of or len(pages))
                said = f"Processing page {page.number} of {page.of}" if page.of else "Extracting text"
                progress.update(said, EXTRACTED * share, STEPS)
        except Unreadable as error:
            if progress.is_cancelled:
                raise Cancelled from None
            raise _failure(error) from None
        progress.on_cancel = None
        progress.update("Chunking", EXTRACTED, STEPS)
        document = self._document(details, pages, reader)
        facets = {"document": document.id, "format": str(details["format"])}
        chunks = split_pages(document.id, _with_name(pages, document), self.options.split, facets)
        if not chunks:
            ocr_failed = any(page.method == "ocr" for page in pages)
            raise (
                OcrFailed("OCR processing failed: no text was recognised.")
                if ocr_failed
                else ExtractionFailed("No text was found in the file.")
            )
        with self._adding:  # the same content may be read by two tasks at once
            self._check_known(document.digest)
            self.store.put([(document, chunks)])
        progress.update("Chunking", CHUNKED, STEPS)
        return document

    def _document(self, details: Mapping[str, Any], pages: Sequence[Page], reader: FileReader) -> Document:
        recognised = [page for page in pages if page.method == "ocr"]
        is_image = details["format"] in IMAGES
        method = "image_analysis" if is_image else "ocr" if recognised else "text_extraction"
        facts: dict[str, Any] = {
            "filename": details["filename"],
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
        return Document(str(details["document_id"]), title, str(details["digest"]), metadata)

    def _embed(self, document: Document, progress: Progress) -> None:
        """Vectors in batches, each kept as it comes."""
        embedder = self.embedder
        if embedder is None:
            return
        from bedstone.search.indexer import embed_chunks  # noqa: PLC0415 - loads numpy

        chunks = self.store.chunks_of(document.id)
        total = len(chunks)
        waiting = [stored for stored in chunks if not self._has_vectors(stored)]
        done = total - len(waiting)
        for start in range(0, total, embedder.batch):
            part = waiting[start : start + embedder.batch]
            if not part:
                break
            share = (STEPS - CHUNKED) * done / max(total, 1)
            progress.update("Generating embeddings", CHUNKED + share, STEPS)
            with self._embedding:
                vectors = embed_chunks(part, embedder)
            self.store.put_passages(vectors)
            done += len(part)

    def _has_vectors(self, stored: StoredChunk) -> bool:
        return next(iter(self.store.passages_between(stored.rowid, stored.rowid)), None) is not None

    def _undo(self, task: TaskRecord) -> None:
        document_id = str(task.details.get("document_id"))
        self.store.delete([document_id])
        shutil.rmtree(self.options.documents_path / document_id, ignore_errors=True)

    def _catch_up(self) -> None:
        with self._indexing:
            self._engine.index.catch_up()

    def _sweep(self) -> None:
        """Copies nobody knows: of a file that was admitted when the process ended."""
        known = {document.id for document in self.documents()}
        known |= {str(task.details.get("document_id")) for task in self.store.tasks({"queued", "running"})}
        for path in self.options.documents_path.iterdir():
            if path.is_dir() and path.name not in known:
                shutil.rmtree(path, ignore_errors=True)

    def _result(self, document: Document) -> dict[str, Any]:
        return {
            "document_id": document.id,
            "filename": document.metadata["filename"],
            "chunks_created": self.chunk_count(document.id),
            "processing_method": document.metadata["method"],
        }

    def _same(self, digest: str) -> Document | None:
        found = next((name for name, known in self.store.digests().items() if known == digest), None)
        return self.store.document(found) if found else None

    def _check_known(self, digest: str) -> None:
        same = self._same(digest)
        if same is not None:
            raise _Known(same)

    def _learn_speed(self, size: float, seconds: float) -> None:
        speed = float(self.store.setting(SPEED) or FIRST_SPEED)
        self.store.set_setting(SPEED, str(0.7 * speed + 0.3 * size / max(seconds, 0.001)))

    def _allowed(self, path: Path) -> Path:
        """The real path, if it may be read; what lies elsewhere is not told."""
        resolved = Path(os.path.realpath(path))
        roots = [Path(os.path.realpath(root)) for root in self.options.allowed_roots]
        if roots and not any(resolved.is_relative_to(root) for root in roots):
            raise PathNotAllowed(f"Reading {path} is not allowed", file_path=str(path))
        if not resolved.is_file():
            raise FileNotFound(f"File not found: {path}", file_path=str(path))
        return resolved

    def _check_size(self, size: int) -> None:
        most = self.options.max_file_size_mb
        if size > most * MEGABYTE:
            raise FileTooLarge(
                f"File size ({-(-size // MEGABYTE)} MB) exceeds maximum allowed size ({most} MB)", max_size_mb=most
            )

    def _copy(self, file: Any, document_id: str, name: str) -> tuple[Path, str]:
        target = self._copy_path(document_id, name)
        target.parent.mkdir(parents=True)
        digest, size = sha256(), 0
        with target.open("wb") as copy:
            while part := file.read(COPY_BYTES):
                size += len(part)
                self._check_size(size)  # a file may grow while it is read
                digest.update(part)
                copy.write(part)
        return target, digest.hexdigest()

    def _copy_path(self, document_id: str, name: str) -> Path:
        return self.options.documents_path / document_id / f"content{Path(name).suffix.lower()}"


class _Known(Exception):
    """The content is there already."""

    def __init__(self, document: Document) -> None:
        super().__init__(document.id)
        self.document = document


def _failure(error: Unreadable) -> BedstoneError:
    if error.reason == "ocr_unavailable":
        return OcrFailed(error.message)
    return ExtractionFailed(error.message)


def _with_name(pages: Sequence[Page], document: Document) -> Sequence[Page]:
    """A picture always has something to be found by: what was recognised, and its name."""
    if document.metadata["format"] not in IMAGES:
        return pages
    text = "\n\n".join(page.markdown for page in pages if page.markdown.strip())
    caption = str(json.loads(document.metadata["user"]).get("caption", ""))
    named = "\n\n".join(part for part in (text, caption, document.metadata["filename"]) if part)
    return [Page(named, method=pages[0].method if pages else "text")]
