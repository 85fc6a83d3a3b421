"""Files that are not documents yet: queued, being read, or failed and not dismissed."""

from collections.abc import Callable, Sequence

from bedstone.records import Task
from bedstone.services.knowledge.errors import DocumentNotReady, EmptyKnowledgeBase, UnreadDocument
from bedstone.services.knowledge.records import AddFile, FileDocument
from bedstone.store.engine import ALL, Store

MAX_LOOKUPS = 500  # more of them cost more than reading every digest of 10,000 documents


def pending_tasks(store: Store) -> list[Task]:
    """Return the tasks of files that are in process, or that failed and were not dismissed."""
    return [*store.tasks({"queued", "running"}, limit=ALL), *failed_tasks(store)]


def failed_tasks(store: Store) -> list[Task]:
    """Return the tasks of files that could not be read, until they are dismissed."""
    return [task for task in store.tasks({"failed"}, limit=ALL) if not task.is_dismissed]


def find_pending_task(store: Store, document_id: str) -> Task | None:
    """Return the task of a file that is in process, or that could not be read."""
    found = (task for task in pending_tasks(store) if AddFile.from_payload(task.payload).document_id == document_id)
    return next(found, None)


def unfinished_documents(store: Store) -> Sequence[FileDocument]:
    """Return files that are not stored yet, or could not be read; each content once."""
    documents = [FileDocument.from_task(task) for task in pending_tasks(store)]
    is_stored = _stored_check(store, len(documents))
    waiting = {item.digest: item for item in documents if not is_stored(item)}
    return list(waiting.values())


class UnfinishedDocuments:
    """Reads the unfinished files of a store, again only after it has changed: 4 ms for 100 failed files."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: tuple[int, Sequence[FileDocument]] | None = None

    def current(self) -> Sequence[FileDocument]:
        """Return them as they are now."""
        version = self._store.version()
        known = self._known
        if known is None or known[0] != version:
            known = self._known = (version, unfinished_documents(self._store))
        return known[1]


def _stored_check(store: Store, count: int) -> Callable[[FileDocument], bool]:
    """Return what tells whether a file, or one with the same content, is stored: a few are looked up one by one."""
    if count <= MAX_LOOKUPS:
        return lambda item: store.document(item.id) is not None or store.find_by_digest(item.digest) is not None
    digests = store.digests()
    contents = set(digests.values())
    return lambda item: item.id in digests or item.digest in contents


def unread_document(document_id: str, task: Task) -> DocumentNotReady | UnreadDocument:
    """Return the error for a document that has no text yet, or never will: its state, and why."""
    filename = AddFile.from_payload(task.payload).filename
    facts = {"document_id": document_id, "filename": filename, "task_id": task.id}
    if task.error is not None:
        message = f"{filename} could not be read: {task.error.message}"
        return UnreadDocument(message, task.error.code, **facts, processing_status="failed")
    is_running = task.status == "running"
    state = "is being read" if is_running else "is waiting to be read"
    reason = f" (again, after a failure of the machine: {task.retry.reason})" if task.retry is not None else ""
    message = f"{filename} {state}{reason}. Try again when task {task.id} has completed."
    return DocumentNotReady(message, **facts, processing_status="processing" if is_running else "pending")


def empty_knowledge_base(pending: int, failed: int) -> EmptyKnowledgeBase:
    """Return the error for a search without documents, which tells about files that are on their way."""
    counts = {name: count for name, count in (("pending_count", pending), ("failed_count", failed)) if count}
    if pending:
        verb = "file is" if pending == 1 else "files are"
        message = f"No document can be searched yet: {pending:,} {verb} being read. Search again in a moment"
    elif failed:
        files = "file" if failed == 1 else "files"
        message = f"Knowledge base is empty: {failed:,} {files} could not be read (knowledge-show says why)"
    else:
        message = "Knowledge base is empty. Add documents with knowledge-add first"
    return EmptyKnowledgeBase(message, document_count=0, **counts)
