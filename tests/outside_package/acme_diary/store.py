"""A SQLite store that also writes an audit file: one line for every document that is added, replaced or deleted."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from bedstone.records import Document, DocumentAndChunks, Task
from bedstone.store.engines.sqlite import SqliteStore


class AuditedStore(SqliteStore):
    """Opened with an address such as `audited:/data/knowledge.sqlite`; the audit file is beside it."""

    def __init__(self, path: Path, *, read_only: bool = False, durable: bool = False) -> None:
        super().__init__(path, read_only=read_only, durable=durable)
        self._audit_file = path.with_suffix(".audit.jsonl")

    def put(self, items: Iterable[DocumentAndChunks]) -> None:
        """Add documents, each in place of the one with its id."""
        items = list(items)
        super().put(items)
        self._record("put", [document.id for document, _ in items])

    def put_with_task(self, item: DocumentAndChunks, task: Task) -> None:
        """Add a document and the task that completes it."""
        super().put_with_task(item, task)
        self._record("put", [item[0].id])

    def delete(self, document_ids: Iterable[str]) -> None:
        """Delete documents with their chunks and passages; ignore unknown ids."""
        known = [document_id for document_id in dict.fromkeys(document_ids) if self.document(document_id)]
        super().delete(known)
        self._record("delete", known)

    def update_documents(self, documents: Iterable[Document]) -> None:
        """Replace titles, digests and attributes without touching chunks."""
        documents = list(documents)
        super().update_documents(documents)
        self._record("update", [document.id for document in documents])

    def update_and_delete(self, documents: Iterable[Document], deleted: Iterable[str]) -> None:
        """Do both in one transaction: a new version takes the place of earlier ones."""
        documents, deleted = list(documents), list(deleted)
        super().update_and_delete(documents, deleted)
        self._record("update", [document.id for document in documents])
        self._record("delete", deleted)

    def _record(self, action: str, document_ids: Iterable[str]) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        lines = [json.dumps({"time": now, "action": action, "document": name}) for name in document_ids]
        with self._audit_file.open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
