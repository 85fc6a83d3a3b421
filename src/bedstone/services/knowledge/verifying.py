"""Check a knowledge base completely: its store, its index, and the files of every document."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bedstone.errors import BedstoneError
from bedstone.search.indexes import EMBEDDED
from bedstone.search.indexes.opening import KEYWORDS, open_index
from bedstone.services.knowledge.file_storage import FileStorage, open_storage
from bedstone.services.knowledge.opening import count_documents, knowledge_options, store_file
from bedstone.services.knowledge.options import KnowledgeOptions
from bedstone.services.knowledge.ownership import Ownership, lost_store
from bedstone.services.knowledge.rebuilding import known_folders
from bedstone.services.knowledge.records import FileDocument
from bedstone.settings import Settings
from bedstone.store.engine import ALL, Store
from bedstone.store.opening import open_store

OnProgress = Callable[[str, int, int], None]  # a step, how much of it is done, and of how much


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, or only worth knowing."""

    part: str
    message: str
    is_problem: bool = True


def verify(settings: Settings, on_progress: OnProgress = lambda step, done, total: None) -> list[Finding]:
    """Return everything that is wrong with a knowledge base; change nothing."""
    options, file = knowledge_options(settings), store_file(settings)
    if file is not None and not (file.exists() and file.stat().st_size):
        if count := count_documents(settings):
            return [Finding("store", lost_store(str(file), options.storage_place, count).message)]
        return [Finding("store", "Nothing has been added yet.", is_problem=False)]
    try:
        is_frozen = file is not None and not os.access(file, os.W_OK)
        store = open_store(settings.storage.database or str(f"sqlite:{file}"), read_only=is_frozen)
    except BedstoneError as error:
        return [Finding("store", error.message)]
    try:
        return list(_check_all(store, options, on_progress))
    finally:
        store.close()


def _check_all(store: Store, options: KnowledgeOptions, on_progress: OnProgress) -> Iterator[Finding]:
    problems = store.check_integrity(lambda done, total: on_progress("Store", done, total))
    yield from (Finding("store", text) for text in problems)
    if problems:  # what else it says cannot be trusted
        return
    storage = open_storage(options)
    try:
        Ownership(store, storage, options.store_place).check()
    except BedstoneError as error:
        yield Finding("store", error.message)
        return
    yield from _check_index(store, options)
    documents = [FileDocument.from_stored(item) for item in store.documents(limit=ALL)]
    for number, document in enumerate(documents, 1):
        on_progress("Documents", number, len(documents))
        if document.status == "completed":
            yield from _check_document(document, store, storage)
    for name in sorted(storage.document_ids() - known_folders(store)):
        yield Finding("orphan", f"{name} has a folder, but no document.", is_problem=False)
    for folder in storage.aside.folders().values():
        yield Finding("orphan", f"{storage.place}/{folder} was moved aside.", is_problem=False)


def _check_index(store: Store, options: KnowledgeOptions) -> Iterator[Finding]:
    if options.index == EMBEDDED and not (options.index_path / KEYWORDS).exists():
        yield Finding("index", "The keyword index does not exist yet; a server builds it.", is_problem=False)
        return
    try:
        index = open_index(store, options.index_path, None, "read", kind=options.index)
        index.verify()
        last = store.last_change()
        if last is not None and index.applied_seq < last.seq:
            yield Finding("index", "The keyword index is behind the store; a server updates it.", is_problem=False)
        index.close()
    except BedstoneError as error:
        yield Finding("index", f"The keyword index is damaged; a server rebuilds it: {error.message}")


def _check_document(document: FileDocument, store: Store, storage: FileStorage) -> Iterator[Finding]:
    """Check the files of a document: its copy, its text, and what is kept beside them."""
    name = f"{document.filename} ({document.id})"
    copy = storage.find_copy(document.id)
    if copy is None:
        yield Finding("original", f"The copy of {name} is missing.")
    elif storage.hash_copy(copy) != document.digest:
        yield Finding("original", f"The copy of {name} is not the file that was added: its digest differs.")
    try:
        storage.texts.load(document.id)
    except BedstoneError:
        yield Finding("text", f"The text of {name} is missing or damaged. Run `bedstone knowledge rebuild`.")
    if not store.chunk_counts(document.id):
        yield Finding("text", f"{name} has no chunks. Run `bedstone knowledge rebuild`.")
    sidecar = storage.read_sidecar(document.id)
    if sidecar is None and copy is not None:
        yield Finding("sidecar", f"document.json of {name} is missing or damaged.")
    elif sidecar is not None and (sidecar.filename, sidecar.source) != (document.filename, document.source):
        yield Finding("sidecar", f"document.json of {name} is outdated.")
