"""Read a file, and split its text into chunks, in a process of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bedstone.ingest.chunking.pieces import SplitOptions
from bedstone.ingest.detection import detect, find_format, is_image
from bedstone.ingest.extraction import ExtractionError, Notes, Page, ReadOptions
from bedstone.ingest.left_out import LeftOut
from bedstone.ingest.ocr_quality import warn_poor_pages
from bedstone.ingest.process import Limits, WorkerProcess
from bedstone.records import Chunk, Place

MEGABYTE = 2**20


class FileReader:
    """Reads one file once; `stop` ends it from another thread."""

    def __init__(
        self,
        path: Path,
        options: ReadOptions | None = None,
        limits: Limits | None = None,
        *,
        known_notes: Mapping[str, Any] | None = None,
        worker: WorkerProcess | None = None,
    ) -> None:
        """Read a file; one whose first pages are known starts behind them, with the notes that belong to them.

        A worker that is given stays open for further work.
        """
        self._path = path
        self._known_notes = known_notes or {}
        self._options = options or ReadOptions()
        self._worker = worker or WorkerProcess(limits)
        self._owns_worker = worker is None
        self.notes = Notes()
        self.page_notes: Mapping[str, Any] = {}  # what the reader noted with the last page
        self.format = detect(path)

    def pages(self) -> Iterator[Page]:
        """Yield the pages as they are read, or raise `ExtractionError`."""
        declaration = find_format(self.format) if self.format else None
        if declaration is None:
            raise ExtractionError("unsupported", "Unsupported file format.")
        try:
            yield from self._receive(declaration.reader)
        finally:
            if self._owns_worker:
                self._worker.close()

    def stop(self, reason: str = "cancelled") -> None:
        """Stop reading at once."""
        self._worker.stop(reason)

    def _receive(self, reader: str) -> Iterator[Page]:
        request = {
            "work": "read",
            "path": str(self._path.resolve()),
            "reader": reader,
            "options": asdict(self._options),
            "notes": dict(self._known_notes),
        }
        limits = self._worker.limits
        for response, watchdog in self._worker.ask(request, limits.seconds, limits.silence):
            if "page" in response:
                page = Page(**response["page"])
                self.page_notes = response.get("notes") or {}
                # Pages that arrived, not those that the file claims to have.
                is_work = bool(page.markdown) or page.method == "ocr"
                watchdog.extend(limits.seconds_per_page if is_work else 0.0)
                yield page
            else:
                self.notes.metadata.update(response["done"]["metadata"])
                self.notes.warnings.extend(response["done"]["warnings"])
                self.notes.left_out = LeftOut.from_dict(response["done"]["left_out"])


def read_whole(
    path: Path, options: ReadOptions | None = None, limits: Limits | None = None
) -> tuple[list[Page], Notes]:
    """Return every page of a file; a document without text is an error, a picture without text is not."""
    reader = FileReader(path, options, limits)
    pages = list(reader.pages())
    if not any(page.markdown.strip() for page in pages) and not is_image(reader.format or ""):
        raise ExtractionError("no_text_found", "No text was found in the file.")
    reader.notes.warnings.extend(warn_poor_pages(pages))
    return pages, reader.notes


def split_pages(
    worker: WorkerProcess,
    document_id: str,
    pages: Sequence[Page],
    options: SplitOptions,
    facets: dict[str, str],
    *,
    splits_pages: bool = False,
) -> tuple[list[Chunk], int]:
    """Return the chunks of a document, made in the process of a worker, and the number of copies it left out."""
    request = {
        "work": "split",
        "document_id": document_id,
        "pages": [(page.number, page.markdown) for page in pages],
        "options": asdict(options),
        "splits_pages": splits_pages,
    }
    megabytes = sum(len(page.markdown) for page in pages) / MEGABYTE
    seconds = worker.limits.seconds + worker.limits.seconds_per_megabyte * megabytes
    chunks: list[Chunk] = []
    copies = 0
    for response, _ in worker.ask(request, seconds, seconds):
        chunks += [_chunk(row, facets) for row in response.get("chunks", ())]
        copies += response.get("done", {}).get("copies", 0)
    return chunks, copies


def _chunk(row: Mapping[str, Any], facets: dict[str, str]) -> Chunk:
    breadcrumb = tuple(row["breadcrumb"])
    places = tuple(Place(start, text_start, page, tuple(above)) for start, text_start, page, above in row["places"])
    heading = breadcrumb[-1] if breadcrumb else ""
    start, end = row["span"]
    return Chunk(
        row["id"], row["text"], row["plain"], heading, 0, breadcrumb, facets, row["page"], places, (start, end)
    )
