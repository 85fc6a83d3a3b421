"""Which store the documents folder belongs to: without that store, no document may be taken for an orphan."""

from uuid import uuid4

from bedstone.services.knowledge.errors import StoreMismatch
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.records import AddFile
from bedstone.services.knowledge.sharing import ChangeLock
from bedstone.store.engine import ALL, Store
from bedstone.store.locks import FileLock

STORE_ID = "store_id"  # the store's value
ADVICE = (
    "Nothing was changed. Restore the store from a backup, or read all documents again with: bedstone knowledge rebuild"
)


class Ownership:
    """The id of a store, and the same id beside the documents that it knows."""

    def __init__(self, store: Store, storage: FileStorage, place: str) -> None:
        self._store = store
        self._storage = storage
        self._place = place

    def check(self) -> None:
        """Raise `StoreMismatch` if the documents belong to another store, or to one that was lost."""
        owner, store_id = self._storage.owner_id, self._store.get_value(STORE_ID)
        if owner is not None and owner == store_id:
            return
        documents = self._storage.document_ids()
        if not documents:
            return
        if (owner is None or store_id is None) and self._knows_any(documents):
            return  # they are older than these ids
        raise self._mismatch(len(documents))

    def claim(self, *, restores: bool = False) -> None:
        """Check, and write the ids that are missing; with `restores`, a store without documents gets the folder's."""
        with FileLock(self._storage.id_lock), ChangeLock(self._store):  # several servers may begin at once
            if restores and self._is_empty():
                if owner := self._storage.owner_id:
                    self._store.set_value(STORE_ID, owner)
            else:
                self.check()
            owner, store_id = self._storage.owner_id, self._store.get_value(STORE_ID)
            if store_id is None:
                store_id = owner if owner is not None and self._storage.has_documents() else uuid4().hex
            if self._store.get_value(STORE_ID) is None:
                self._store.set_value(STORE_ID, store_id)
            self._storage.set_owner(store_id)

    def _knows_any(self, documents: set[str]) -> bool:
        return not documents.isdisjoint(self._store.digests()) or not documents.isdisjoint(
            AddFile.from_payload(task.payload).document_id
            for task in self._store.tasks({"queued", "running", "completed", "failed", "cancelled"}, limit=ALL)
        )

    def _is_empty(self) -> bool:
        return not self._store.documents(limit=1) and not self._store.tasks({"queued", "running"}, limit=1)

    def _mismatch(self, count: int) -> StoreMismatch:
        documents = f"{count:,} document{'' if count == 1 else 's'}"
        if self._is_empty():
            return lost_store(self._place, self._storage.place, count)
        return StoreMismatch(
            f"The {documents} in {self._storage.place} belong to another store than {self._place}. Nothing was "
            "changed. Check storage.database, storage.vector_db_path, storage.documents_path and storage.blobs."
        )


def lost_store(place: str, folder: str, count: int) -> StoreMismatch:
    """Return the error for documents whose store is missing or empty."""
    documents = f"{count:,} document{'' if count == 1 else 's'}"
    return StoreMismatch(f"The store {place} is missing or empty, but {folder} holds {documents}. {ADVICE}")
