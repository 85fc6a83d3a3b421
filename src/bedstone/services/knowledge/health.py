"""Whether a knowledge base works: each check reads or writes what it is about, and none raises an error."""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.errors import BedstoneError
from bedstone.records import Counts, StoredChunk
from bedstone.search.filters import OneOf
from bedstone.search.hits import SearchRequest
from bedstone.search.live_index import LiveIndex
from bedstone.services.knowledge.file_storage import FileStorage, find_write_error
from bedstone.services.knowledge.listing import DocumentCounts, count_documents
from bedstone.services.knowledge.records import FileDocument
from bedstone.services.knowledge.removing import CHANGED
from bedstone.services.knowledge.unfinished import unfinished_documents
from bedstone.services.peers import has_workers
from bedstone.store.engine import Store
from bedstone.store.filters import AttributeIn, Order
from bedstone.tasks import TaskRunner

if TYPE_CHECKING:
    from bedstone.services.knowledge.options import KnowledgeOptions

MEGABYTE = 2**20
MIN_FREE_BYTES = 100 * MEGABYTE
MIN_FREE_SHARE = 0.05  # of a disk that is too small for the other limit
LAST_ROWID = 2**62
PROBE_WORD = re.compile(r"(?<!\S)[a-z]{4,}(?!\S)")  # every analysis keeps such a word
UNKNOWN = "The figures cannot be read, so they are 0"
NEWEST = Order("added", is_number=True, descending=True)


@dataclass(frozen=True)
class Figures:
    """How much there is, and when it last changed."""

    counts: Counts
    documents: DocumentCounts
    size_bytes: int
    updated_at: float | None
    orphans: int = 0


UNKNOWN_FIGURES = Figures(Counts(0, 0, 0), DocumentCounts(0, 0, 0), 0, None)


@dataclass(frozen=True)
class KnowledgeStatus:
    """Figures and health; `problems` has a sentence for each part that does not work."""

    counts: Counts
    documents: DocumentCounts
    size_bytes: int
    problems: Mapping[str, str]
    embedding_model: str | None
    updated_at: float | None
    options: "KnowledgeOptions"
    orphans: int = 0  # folders that were moved aside because they have no document

    @classmethod
    def of(
        cls, figures: Figures, problems: Mapping[str, str], embedding_model: str | None, options: "KnowledgeOptions"
    ) -> "KnowledgeStatus":
        """Return figures with health."""
        amounts = (figures.counts, figures.documents, figures.size_bytes)
        return cls(*amounts, problems, embedding_model, figures.updated_at, options, figures.orphans)

    @property
    def is_store_usable(self) -> bool:
        """Return whether store and index can be read, searched and written."""
        return self.problems.keys().isdisjoint({"vector_db", "index", "search"})

    @property
    def is_storage_usable(self) -> bool:
        """Return whether files can be stored and their texts read."""
        return self.problems.keys().isdisjoint({"storage", "text"})

    @property
    def is_model_usable(self) -> bool:
        """Return whether there is a model, and it answers."""
        return self.embedding_model is not None and "embedding_model" not in self.problems


class Health:
    """Checks the parts of one knowledge base; several threads may ask."""

    def __init__(
        self,
        store: Store,
        storage: FileStorage,
        index: LiveIndex,
        options: "KnowledgeOptions",
        tasks: TaskRunner,
    ) -> None:
        self._store = store
        self._storage = storage
        self._index = index
        self._options = options
        self._tasks = tasks
        self._known: Figures | None = None

    def status(self) -> KnowledgeStatus:
        """Return figures, and health as checked now."""
        problems = self.check_all()
        figures = self._figures(problems)
        embedder = self._index.embedder
        return KnowledgeStatus.of(figures, problems, embedder.name if embedder is not None else None, self._options)

    def check_all(self) -> dict[str, str]:
        """Check each part now, and return a sentence for each one that does not work."""
        found = self.check_storage()
        found |= dict(_problems({"rebuild": self._index.problem, "embedding_model": self._check_model}))
        return found if "vector_db" in found else found | dict(_problems({"tasks": self._check_tasks}))

    def check_storage(self) -> dict[str, str]:
        """Check what storing, reading and searching need; without the model, keyword search still works."""
        checks: dict[str, Callable[[], str | None]] = {"vector_db": self._check_store, "space": self._check_space}
        if not self._options.read_only:
            checks |= {"index": self._check_index_folder, "storage": self._check_documents_folder}
        found = dict(_problems(checks))
        if "vector_db" not in found:  # otherwise the others fail for the same reason
            found |= dict(_problems({"search": self._check_search}))
            found |= dict(_problems({"text": self._check_text})) if "storage" not in found else {}
        return found

    def _check_store(self) -> str | None:
        if not self._options.read_only:
            self._store.check_writable()
        self._store.check_readable()
        return None

    def _check_index_folder(self) -> str | None:
        reason = find_write_error(self._options.index_path)
        return f"Index directory not accessible: {reason}" if reason else None

    def _check_documents_folder(self) -> str | None:
        reason = self._storage.write_error()
        if reason is not None and self._storage.is_shared:
            return reason
        return f"Storage directory not accessible: {reason}" if reason else None

    def _check_text(self) -> str | None:
        """Read the text of the newest document."""
        newest = self._store.documents([AttributeIn("status", ("completed",))], order=NEWEST, limit=1)
        for document in map(FileDocument.from_stored, newest):
            if reason := self._storage.texts.find_error(document.id):
                return f"The text of {document.filename} cannot be read: {reason}"
        return None

    def _check_space(self) -> str | None:
        return next(filter(None, map(low_space, (self._options.documents_path, self._options.index_path))), None)

    def _check_search(self) -> str | None:
        """Search for a word of a stored chunk; it must be found once the index has every change."""
        chunk = next(self._store.chunks_between(0, LAST_ROWID), None)
        if chunk is None:
            return None
        last = self._store.last_change()
        word = PROBE_WORD.search(chunk.plain)
        request = SearchRequest(word[0] if word else "probe", _same_document(chunk), mode="keyword", limit=1)
        hits = self._index.search(request).hits
        is_current = last is None or self._index.applied_seq >= last.seq
        if word and is_current and not hits and self._index.problem() is None:
            return "The index lacks documents that are stored"
        return None

    def _check_model(self) -> str | None:
        reason = self._index.model_problem()
        return f"The embedding model does not answer: {reason}" if reason else None

    def _check_tasks(self) -> str | None:
        reasons = [task.retry.reason for task in self._tasks.waiting() if task.retry is not None]
        if not reasons:
            return self._check_workers()
        files = "1 file waits" if len(reasons) == 1 else f"{len(reasons)} files wait"
        return f"{files} to be read again: {reasons[-1]}"

    def _check_workers(self) -> str | None:
        """Return how many files wait although no process reads any."""
        notes = self._store.notes
        if notes is None or self._tasks.is_owner or has_workers(notes):
            return None
        count = self._store.count_tasks({"queued"})
        files = "1 file waits" if count == 1 else f"{count:,} files wait"
        return f"{files} to be read, and no server reads files: start `bedstone work`" if count else None

    def _count_orphans(self) -> int:
        try:
            return len(self._storage.aside.folders())
        except (OSError, BedstoneError):  # the check of the documents folder reports that
            return 0

    def updated_at(self) -> float | None:
        """Return when the base last changed."""
        return _updated_at(self._store)

    def _figures(self, problems: dict[str, str]) -> Figures:
        """Return the figures as they are now; if they cannot be read, the last known ones, and say so."""
        try:
            self._known = Figures(
                self._store.counts(),
                count_documents(self._store, unfinished_documents(self._store)),
                self._store.sum_attribute("size"),
                _updated_at(self._store),
                self._count_orphans(),
            )
        except Exception as error:  # noqa: BLE001 - status never fails
            shown = UNKNOWN if self._known is None else "The figures are the last known ones"
            problems["figures"] = f"{shown}: {explain(error)}"
        return self._known or UNKNOWN_FIGURES


def low_space(folder: Path) -> str | None:
    """Return how much room is left on the disk of a folder, if it is little."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:  # another check reports that
        return None
    if usage.free >= min(MIN_FREE_BYTES, usage.total * MIN_FREE_SHARE):
        return None
    return f"Disk space is low: {usage.free // MEGABYTE} MB left for {folder.name}"


def explain(error: Exception) -> str:
    """Return why something failed, for people."""
    if isinstance(error, BedstoneError):
        return error.message
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


SENTENCES: Mapping[str, str] = {
    "vector_db": "The store does not answer",
    "search": "Search does not work",
    "text": "Stored texts cannot be read",
    "embedding_model": "The embedding model does not answer",
    "tasks": "The tasks cannot be read",
}


def _problems(checks: Mapping[str, Callable[[], str | None]]) -> Iterator[tuple[str, str]]:
    """Run checks, and yield a sentence for each one that finds a problem or fails itself."""
    for name, check in checks.items():
        try:
            problem = check()
        except Exception as error:  # noqa: BLE001 - a check that fails has found a problem
            problem = f"{SENTENCES.get(name, name)}: {explain(error)}"
        if problem:
            yield name, problem


def _same_document(chunk: StoredChunk) -> OneOf:
    return OneOf("document", (chunk.head.document_id,))


def _updated_at(store: Store) -> float | None:
    removed = store.get_value(CHANGED)
    newest = store.documents(order=NEWEST, limit=1)
    added = [FileDocument.from_stored(item).added_at for item in newest]
    return max([*([float(removed)] if removed else []), *added], default=None)
