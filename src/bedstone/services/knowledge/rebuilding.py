"""Read documents again from their stored copies: those that the store lost, and those whose text is damaged."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bedstone.errors import BedstoneError
from bedstone.records import Task
from bedstone.services.knowledge.collections import Collections
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.records import AddFile, FileDocument
from bedstone.services.knowledge.unfinished import failed_tasks, pending_tasks
from bedstone.store.blobs import BlobsUnavailable
from bedstone.store.engine import ALL, Store

SIDECARS_WRITTEN = "sidecars_written"  # the store's value once every document of earlier versions has one


@dataclass
class RebuildReport:
    """What a rebuild queued, and the folders that it had to leave, with the reasons."""

    tasks: list[Task] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class Rebuild:
    """Finds the documents to read again. It can be repeated: what is queued or complete is not queued again."""

    def __init__(self, store: Store, storage: FileStorage, collections: Collections) -> None:
        self._store = store
        self._storage = storage
        self._collections = collections

    def run(self, submit: Callable[[AddFile], Task], on_document: Callable[[str], None]) -> RebuildReport:
        """Submit a task for each document to read again; those that were moved aside come back."""
        report = RebuildReport()
        # The copies of files that failed were moved aside: they are tried again.
        known = {*self._store.digests(), *_active_ids(self._store)}
        aside = self._storage.aside.folders()
        lost = {name: name for name in self._storage.document_ids() - known}
        for name in lost.keys() & aside.keys():  # an earlier attempt to move it back was interrupted
            self._storage.aside.bring_back(name)
        moved = {name: folder for name, folder in aside.items() if name not in known | lost.keys()}
        for name, folder in sorted((lost | moved).items()):
            on_document(name)
            self._restore(name, folder, submit, report)
        for document in self._damaged_documents():
            on_document(document.filename)
            report.tasks.append(submit(replace(self._file_of(document), is_rebuild=True)))
        return report

    def _restore(self, name: str, folder: str, submit: Callable[[AddFile], Task], report: RebuildReport) -> None:
        copy, shown = self._storage.find_copy(folder), f"{self._storage.place}/{folder}"
        file = self._storage.recall_file(folder, copy) if copy is not None else None
        if copy is None or file is None:
            report.left[shown] = "It holds no copy of a file that can be read."
            return
        digest = self._storage.hash_copy(copy)
        if (same := self._store.find_by_digest(digest)) is not None or digest in _active_digests(self._store):
            owner = f"document {same.id}" if same is not None else "a file that is being read"
            report.left[shown] = f"Its content is that of {owner}."
            return
        if file.digest and file.digest != digest:
            report.warnings.append(f"{file.filename} ({name}) is not the file that was added: its copy was changed.")
        if folder != name:
            self._storage.aside.bring_back(name)
        for collection in set(file.collections) - self._collections.names():
            self._collections.create(collection)
        facts = replace(file, document_id=name, digest=digest, size_bytes=copy.size)
        self._storage.save_file(facts)
        report.tasks.append(submit(replace(facts, is_rebuild=True)))
        for task in failed_tasks(self._store):
            if AddFile.from_payload(task.payload).document_id == name:
                self._store.put_task(replace(task, is_dismissed=True))

    def _damaged_documents(self) -> list[FileDocument]:
        """Return completed documents whose text or chunks cannot be read, but whose copy can."""
        documents = [FileDocument.from_stored(item) for item in self._store.documents(limit=ALL)]
        active = _active_digests(self._store)
        return [
            item
            for item in documents
            if item.status == "completed"
            and item.digest not in active
            and self._storage.find_copy(item.id) is not None
            and not self._is_readable(item.id)
        ]

    def _is_readable(self, document_id: str) -> bool:
        try:
            return bool(self._storage.texts.load(document_id)) and bool(self._store.chunks_of(document_id))
        except BlobsUnavailable:
            raise
        except BedstoneError:
            return False

    def _file_of(self, document: FileDocument) -> AddFile:
        known = self._storage.read_sidecar(document.id)
        force_ocr = known.force_ocr if known else False
        return replace(AddFile.of_document(document), submitted_at=document.submitted_at, force_ocr=force_ocr)


def known_folders(store: Store) -> set[str]:
    """Return the documents that have a folder: those of the store, and those of tasks."""
    tasks = pending_tasks(store)  # first: a task that finishes now has its document
    return {AddFile.from_payload(task.payload).document_id for task in tasks} | set(store.digests())


def write_missing_sidecars(store: Store, storage: FileStorage) -> None:
    """Write once what earlier versions did not keep beside the copies."""
    if store.get_value(SIDECARS_WRITTEN) is not None:
        return
    for document in store.documents(limit=ALL):
        if not storage.has_sidecar(document.id):
            storage.save_document(FileDocument.from_stored(document), durable=False)
    store.set_value(SIDECARS_WRITTEN, "yes")


def _active_ids(store: Store) -> set[str]:
    return {AddFile.from_payload(task.payload).document_id for task in store.tasks({"queued", "running"}, limit=ALL)}


def _active_digests(store: Store) -> set[str]:
    return {AddFile.from_payload(task.payload).digest for task in store.tasks({"queued", "running"}, limit=ALL)}
