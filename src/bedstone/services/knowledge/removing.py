"""Remove documents, and files that are being read or could not be read."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bedstone.records import Task
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.records import AddFile
from bedstone.services.knowledge.unfinished import failed_tasks, pending_tasks, unfinished_documents
from bedstone.store.engine import ALL, Store
from bedstone.tasks import TaskRunner

CHANGED = "changed"  # the store's value for the time of the last removal
MAX_CANCEL_SECONDS = 10.0  # to wait for work that is being stopped


@dataclass(frozen=True)
class ClearReport:
    """What was removed with everything else."""

    documents: int
    vectors: int
    freed_bytes: int


class Removal:
    """Removes everything that belongs to a document: its tasks, chunks, vectors and files."""

    def __init__(self, store: Store, storage: FileStorage, tasks: TaskRunner) -> None:
        self._store = store
        self._storage = storage
        self._tasks = tasks

    def remove(self, document_id: str) -> int:
        """Remove one document, with every attempt to read the same content; return how many chunks it had."""
        known = [(task, AddFile.from_payload(task.payload)) for task in pending_tasks(self._store)]
        digests = {file.digest for _, file in known if file.document_id == document_id}
        stored = self._store.document(document_id)
        if stored is not None:  # it may be being read again
            digests.add(stored.digest)
        same = [task for task, file in known if file.digest in digests]
        count = self._chunk_count(document_id)
        self._cancel([task for task in same if task.status != "failed"])
        self._forget([task for task in same if task.status == "failed"])
        count = max(count, self._chunk_count(document_id))  # the task may have completed
        self._delete([document_id])
        return count

    def clear(self) -> ClearReport:
        """Remove everything."""
        unfinished = len(unfinished_documents(self._store))
        counts, size = self._store.counts(), self._store.sum_attribute("size")
        self._cancel(self._store.tasks({"queued", "running"}, limit=ALL))
        self._delete(self._store.document_ids(()))
        self._storage.aside.clear()
        self._forget(failed_tasks(self._store))
        return ClearReport(counts.documents + unfinished, counts.passages, size)

    def dismiss(self, tasks: Sequence[Task]) -> None:
        """Stop listing files that could not be read."""
        for task in tasks:
            self._store.put_task(replace(task, is_dismissed=True))

    def _forget(self, tasks: Sequence[Task]) -> None:
        """Dismiss failed files, and delete the copies that were kept for another attempt."""
        self.dismiss(tasks)
        for task in tasks:
            self._storage.delete(AddFile.from_payload(task.payload).document_id)

    def _cancel(self, tasks: Sequence[Task]) -> None:
        """Cancel tasks, and wait until their work has stopped."""
        for task in tasks:
            self._tasks.cancel(task.id)
        deadline = time.monotonic() + MAX_CANCEL_SECONDS
        for task in tasks:
            self._tasks.wait_until_ended(task.id, max(0.0, deadline - time.monotonic()))

    def _chunk_count(self, document_id: str) -> int:
        return self._store.chunk_counts(document_id).get(document_id, 0)

    def _delete(self, document_ids: Sequence[str]) -> None:
        self._storage.mark_removed(document_ids)
        self._store.delete(document_ids)
        self._storage.delete_all(document_ids)
        self._storage.aside.delete(document_ids)
        self._store.set_value(CHANGED, str(time.time()))
