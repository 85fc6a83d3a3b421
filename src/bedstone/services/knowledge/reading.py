"""Read the pages of an added file: resume an interrupted attempt, report progress, and stop when told to."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

from bedstone import __version__
from bedstone.ingest.chunking.pieces import SplitOptions
from bedstone.ingest.detection import find_format
from bedstone.ingest.extraction import ExtractionError, Notes, Page, ReadOptions
from bedstone.ingest.process import WorkerProcess
from bedstone.ingest.reader import FileReader, split_pages
from bedstone.ingest.resuming import PageSpool
from bedstone.records import Chunk
from bedstone.services.knowledge.errors import ExtractionFailed, OcrFailed
from bedstone.services.knowledge.estimates import Timeline
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.records import AddFile, FileDocument
from bedstone.tasks import Cancelled, MachineFailure, Progress

TOTAL_STEPS = 20
COPIES = "Search finds only the first copies of repeated text: {copies:,} chunks with the same text are left out."


@dataclass
class TaskReport:
    """Reports a task's current step, with the share of the expected time that has passed."""

    progress: Progress
    timeline: Timeline

    def step(self, name: str) -> None:
        """Report the current step; raise `Cancelled` if the work must end."""
        done = TOTAL_STEPS * self.timeline.share
        self.progress.update(name, done, TOTAL_STEPS, time.time() + self.timeline.remaining)


class PageReading:
    """Reads one file, from the page where an interrupted attempt ended, and splits its text into chunks."""

    def __init__(self, storage: FileStorage, file: AddFile, options: ReadOptions) -> None:
        declaration = find_format(file.format)
        self._is_resumable = declaration is not None and declaration.is_resumable
        self.spool: PageSpool = storage.spool(file.document_id, _key(file, options))
        self._known = self.spool.load()
        if self._known.pages and self._is_resumable:
            options = replace(options, first_page=len(self._known.pages) + 1)
        path = storage.local_copy(file.document_id, file.filename, file.digest)
        self._worker = WorkerProcess()
        self._reader = FileReader(path, options, known_notes=self._known.notes, worker=self._worker)

    def __enter__(self) -> "PageReading":
        return self

    def __exit__(self, *error: object) -> None:
        self._worker.close()

    @property
    def notes(self) -> Notes:
        """Return the properties of the file, and what could not be read or was left out."""
        return self._reader.notes

    def pages(self, report: TaskReport) -> list[Page]:
        """Return every page; each is kept for a restart as soon as it is read."""
        pages, progress = list(self._known.pages), report.progress
        of = pages[-1].of if pages else None
        report.timeline.resume([(page.method, len(page.markdown)) for page in pages], self._known.seconds, of)
        report.step("Extracting text")
        try:
            with _stoppable(self._worker, progress):
                for page in self._reader.pages():
                    pages.append(page)
                    report.timeline.add_page(page.method, len(page.markdown), page.of)
                    if self._is_resumable:
                        self.spool.add(page, self._reader.page_notes, report.timeline.elapsed_seconds)
                    report.step(f"Processing page {page.number} of {page.of}" if page.of else "Extracting text")
        finally:
            self.spool.close()
        report.timeline.end_reading()
        return pages

    def split(
        self, document: FileDocument, pages: Sequence[Page], options: SplitOptions, report: TaskReport
    ) -> tuple[FileDocument, list[Chunk]]:
        """Return a document and its chunks, made by the process that read it."""
        with _stoppable(self._worker, report.progress):
            return split_document(self._worker, document, pages, options)


@contextmanager
def _stoppable(worker: WorkerProcess, progress: Progress) -> Iterator[None]:
    """Stop a worker when its task is cancelled, and translate its errors."""
    progress.on_cancel = worker.stop
    try:
        progress.check()  # it may have been cancelled before it could be stopped
        yield
    except ExtractionError as error:
        if progress.is_ending:
            raise Cancelled from None
        if error.reason in ("machine", "worker_killed"):
            raise MachineFailure(error.message, is_suspect=error.reason == "worker_killed") from None
        kind = OcrFailed if error.reason == "ocr_unavailable" else ExtractionFailed
        raise kind(error.message) from None
    finally:
        progress.on_cancel = None


def split_document(
    worker: WorkerProcess, document: FileDocument, pages: Sequence[Page], options: SplitOptions
) -> tuple[FileDocument, list[Chunk]]:
    """Return a document and its chunks; a text that repeats very often is searched through some of its copies."""
    facets = {"document": document.id, "format": document.format}
    declaration = find_format(document.format)
    splits_pages = declaration is not None and declaration.splits_pages
    chunks, copies = split_pages(worker, document.id, pages, options, facets, splits_pages=splits_pages)
    warning = COPIES.format(copies=copies)
    if copies and warning not in document.warnings:
        document = replace(document, warnings=(*document.warnings, warning))
    return document, chunks


@dataclass(frozen=True)
class CheckedChunks(Sequence[Chunk]):
    """Chunks that call `check` as each is stored: if it raises, the store rolls back."""

    chunks: Sequence[Chunk]
    check: Callable[[], object]

    def __len__(self) -> int:
        return len(self.chunks)

    def __getitem__(self, index: Any) -> Any:
        return self.chunks[index]

    def __iter__(self) -> Iterator[Chunk]:
        for chunk in self.chunks:
            self.check()
            yield chunk


def _key(file: AddFile, options: ReadOptions) -> str:
    """Return what the pages depend on: the content, the options, and the version that reads it."""
    facts: dict[str, Any] = {"digest": file.digest, "version": __version__, "options": asdict(options)}
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
