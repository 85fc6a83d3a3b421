"""A data folder as of a large installation: documents, documentation, a knowledge file, a schema, evaluations."""

import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from large_schema import fill

from bedstone.evaluation.history import save_run
from bedstone.records import Chunk, Document, Task, TaskError
from bedstone.search.embedders.minilm import MiniLm
from bedstone.search.indexer import embed_missing
from bedstone.services.knowledge.collections import Collections
from bedstone.services.knowledge.records import AddFile, FileDocument
from bedstone.services.schema.search import SchemaSearch
from bedstone.services.schema.store import SchemaStore
from bedstone.store.engines.sqlite import SqliteStore
from bedstone.store.filters import Order
from support.processes import BEDSTONE, clean_environment

ROOT = Path(__file__).parents[1]
DOCUMENTS = 10_000
FAILED = 100
COLLECTIONS = ("spring", "summer", "autumn", "winter")
FORMATS = ("pdf", "docx", "html", "markdown")
QUESTIONS = 200
RUNS = 30
FIRST_DAY = 1_700_000_000
# Long files, in which pages are found by number and by heading.
LONG_PDF = "pdf/unst__DA-619p.pdf"
LONG_DOCX = "docx/unst__handbook-872p.docx"
CORPORA = {"python-sdk": "", "sdks": "dub/python"}  # archives, and the folder of each to build


@dataclass(frozen=True)
class Site:
    """A folder with the data folder of a server, and the files that it is filled from."""

    folder: Path

    @property
    def data(self) -> Path:
        """Return the data folder."""
        return self.folder / "data"

    @property
    def files(self) -> Path:
        """Return the folder with public files."""
        return self.folder / "files"

    @property
    def knowledge_file(self) -> Path:
        """Return the file that the kb tools serve."""
        return self.files / "python-sdk" / "docs" / "migration.md"

    def newest_documents(self) -> dict[str, str]:
        """Return the ids of the documents that were added last by file name."""
        store = SqliteStore(self.data / "index" / "knowledge.sqlite")
        newest = store.documents(order=Order("added", is_number=True, descending=True), limit=10)
        store.close()
        return {item.attributes["filename"]: item.id for item in newest}


def fill_site(site: Site, source: Path, provider: str) -> None:
    """Fill a data folder from the folder with public data; with the provider `none`, for keyword search."""
    for archive in (source / "files" / "corpus.tar.xz", *(source / "docs" / f"{name}.tar.xz" for name in CORPORA)):
        unpack(archive, site.files)
    run = partial(_run, environment={"BEDSTONE_EMBEDDING__PROVIDER": provider, "BEDSTONE_DATA_DIR": str(site.data)})
    put_documents(site, has_vectors=provider != "none", add=lambda *paths: run("knowledge", "add", *paths))
    for name, part in CORPORA.items():
        run("docs", "build", site.files / name / part, "--out", site.data / "docs" / name)
    schemas = SchemaStore(site.data / "salesforce" / "schemas" / "import-large")
    fill(schemas, source)
    if provider != "none":
        SchemaSearch(schemas.load(), schemas.folder, MiniLm).make_vectors()
    save_runs(site.data)


def put_documents(site: Site, *, has_vectors: bool, add: Callable[..., None]) -> None:
    """Store documents as if they had been read, and add a few files."""
    store = SqliteStore(site.data / "index" / "knowledge.sqlite", durable=False)
    collections = Collections(store)
    for name in COLLECTIONS:
        collections.create(name)
    store.put(make_documents())
    for task in make_tasks():
        store.put_task(task)
    add(ROOT / "demo" / "files", *(site.files / "corpus" / name for name in (LONG_PDF, LONG_DOCX)))
    if has_vectors:
        embed_missing(store, MiniLm())
    store.close()


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive into a folder."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")


def make_documents() -> Iterator[tuple[Document, list[Chunk]]]:
    """Yield documents with one chunk each."""
    for number in range(DOCUMENTS):
        file = FileDocument(
            document_id(number),
            f"File {number}",
            f"digest {number}",
            filename=f"file-{number}.{FORMATS[number % len(FORMATS)]}",
            source=f"/srv/files/{number % 100}/file-{number}",
            format=FORMATS[number % len(FORMATS)],
            size_bytes=1000 + number,
            added_at=float(FIRST_DAY + number),
            status="completed",
            method="text_extraction",
            page_count=3,
            collections=(COLLECTIONS[number % len(COLLECTIONS)],),
        )
        text = f"Tulips of field {number}, counted in spring."
        facets = {"document": file.id, "format": file.format}
        yield file.to_stored(), [Chunk(f"{number:08d}-1111-4000-8000-000000000000", text, text, facets=facets)]


def make_tasks() -> Iterator[Task]:
    """Yield the tasks of the last documents, and of files that could not be read."""
    for number in range(DOCUMENTS - 900, DOCUMENTS + FAILED):
        is_failed = number >= DOCUMENTS
        name = f"file-{number}.pdf"
        file = AddFile(document_id(number), name, f"/srv/files/{name}", "pdf", 1000, f"digest {number}")
        at = time.time() - number
        yield Task(
            f"{number:08d}-2222-4000-8000-000000000000",
            "add",
            "failed" if is_failed else "completed",
            at,
            file.to_payload(),
            at,
            at + 1,
            result=None if is_failed else {"document_id": file.document_id, "chunks_created": 1},
            error=TaskError("extraction_failed", "Not a PDF, or the file is corrupt.") if is_failed else None,
        )


def document_id(number: int) -> str:
    return f"{number:08d}-0000-4000-8000-000000000000"


def save_runs(data: Path) -> None:
    """Save runs of one set of questions, whose answers move by a rank from run to run."""
    for run in range(RUNS):
        ranks = [1 + (question * 7 + run) % 5 for question in range(QUESTIONS)]
        quality = {
            "mrr@5": round(sum(1 / rank for rank in ranks) / len(ranks), 4),
            "hit@1": ranks.count(1) / len(ranks),
            "hit@5": 1.0,
        }
        results = [
            {"name": f"q{number}", "query": f"How many tulips has field {number}?", "category": "known", "rank": rank}
            for number, rank in enumerate(ranks)
        ]
        figures = {"search_ms": {"p50": 2.0 + run, "p95": 4.0}, "cpu_ms_per_search": 2.5, "peak_rss_mb": 120.0}
        categories = dict.fromkeys(("known", "worded differently"), quality)
        facts = {"cases": QUESTIONS, "errors": 0, "quality": quality, "by_category": categories, "results": results}
        save_run({"name": "tulips", **facts, **figures}, data)


def _run(*arguments: str | Path, environment: Mapping[str, str]) -> None:
    command = [str(BEDSTONE), *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=clean_environment() | dict(environment))
