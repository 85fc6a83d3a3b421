"""The records of a knowledge base: its documents, and the payload and result of a task that adds a file."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from bedstone.ingest.left_out import LeftOut
from bedstone.records import Document, Task, TaskError

DEFAULT_COLLECTION = "default"
DOCUMENT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DocumentStatus = Literal["pending", "processing", "completed", "failed"]
Method = Literal["text_extraction", "ocr", "image_analysis"]
TASK_STATUSES: Mapping[str, DocumentStatus] = {"queued": "pending", "running": "processing"}


@dataclass(frozen=True, slots=True)
class OcrSummary:
    """How much of a document OCR recognized, and how reliably, from 0 to 1."""

    pages: int
    confidence: float


@dataclass(frozen=True, slots=True)
class FileDocument:
    """A file of the knowledge base.

    `metadata` comes from the user, `properties` from the file itself. A file that is `pending` or `failed` is known
    from its task alone. `source` is empty for an upload; files with the same content are `other_sources`. While a new
    version is read, `replaces` has the documents that it takes the place of once it is complete.
    """

    id: str
    title: str
    digest: str
    filename: str
    source: str
    format: str
    size_bytes: int
    added_at: float
    status: DocumentStatus
    method: Method | None
    page_count: int | None = None
    collections: tuple[str, ...] = (DEFAULT_COLLECTION,)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    ocr: OcrSummary | None = None
    seconds: float | None = None
    error: TaskError | None = None  # why it could not be read
    left_out: LeftOut = field(default_factory=LeftOut)
    other_sources: tuple[str, ...] = ()
    submitted_at: float | None = None
    is_ocr_forced: bool = False
    replaces: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """Return every place that the content came from."""
        return (self.source, *self.other_sources)

    @property
    def version(self) -> float:
        """Return when the content was handed in: of two versions of a file, the later one counts."""
        return self.submitted_at if self.submitted_at is not None else self.added_at

    @classmethod
    def from_stored(cls, document: Document) -> "FileDocument":
        """Return the typed form of a stored document."""
        known = document.attributes
        pages = known.get("pages")
        return cls(
            document.id,
            document.title,
            document.digest,
            filename=known["filename"],
            source=known.get("source", ""),
            format=known["format"],
            size_bytes=int(known["size"]),
            added_at=float(known["added"]),
            status=known["status"],  # type: ignore[arg-type]
            method=known.get("method"),  # type: ignore[arg-type]
            page_count=int(pages) if pages else None,
            collections=tuple(json.loads(known.get("contexts", "null")) or (DEFAULT_COLLECTION,)),
            metadata=json.loads(known.get("user") or "{}"),
            properties=json.loads(known.get("facts") or "{}"),
            warnings=tuple(json.loads(known.get("warnings") or "[]")),
            ocr=OcrSummary(int(known["ocr_pages"]), float(known["ocr_confidence"])) if "ocr_pages" in known else None,
            seconds=float(known["seconds"]) if "seconds" in known else None,
            error=TaskError(known["error"], known.get("message", "")) if "error" in known else None,
            left_out=LeftOut.from_dict(json.loads(known.get("left_out") or "{}")),
            other_sources=tuple(json.loads(known.get("other_sources") or "[]")),
            submitted_at=float(known["submitted"]) if "submitted" in known else None,
            is_ocr_forced="ocr_forced" in known,
            replaces=tuple(json.loads(known.get("replaces") or "[]")),
        )

    def to_stored(self) -> Document:
        """Return the document as the store keeps it."""
        attributes: dict[str, Any] = {
            "filename": self.filename,
            "source": self.source,
            "format": self.format,
            "size": self.size_bytes,
            "added": self.added_at,
            "status": self.status,
            **({"method": self.method} if self.method is not None else {}),
            "pages": self.page_count if self.page_count is not None else "",
            "user": json.dumps(dict(self.metadata), ensure_ascii=False),
            "facts": json.dumps(dict(self.properties), ensure_ascii=False),
            "warnings": json.dumps(self.warnings, ensure_ascii=False),
            **({"ocr_pages": self.ocr.pages, "ocr_confidence": self.ocr.confidence} if self.ocr else {}),
            "contexts": json.dumps(self.collections),
            **({"seconds": f"{self.seconds:.3f}"} if self.seconds is not None else {}),
            **({"error": self.error.code, "message": self.error.message} if self.error is not None else {}),
            **({"left_out": json.dumps(self.left_out.to_dict(), ensure_ascii=False)} if self.left_out.total else {}),
            **({"other_sources": json.dumps(self.other_sources)} if self.other_sources else {}),
            **({"submitted": self.submitted_at} if self.submitted_at is not None else {}),
            **({"ocr_forced": True} if self.is_ocr_forced else {}),
            **({"replaces": json.dumps(self.replaces)} if self.replaces else {}),
        }
        texts = {key: str(value) for key, value in attributes.items()}
        return Document(self.id, self.title, self.digest, texts)

    @classmethod
    def from_task(cls, task: Task) -> "FileDocument":
        """Return a document that is not stored yet, or never will be, as far as it is known."""
        file = AddFile.from_payload(task.payload)
        return cls(
            file.document_id,
            "",
            file.digest,
            filename=file.filename,
            source=file.source,
            format=file.format,
            size_bytes=file.size_bytes,
            added_at=task.created_at,
            status=TASK_STATUSES.get(task.status, "failed"),
            method=None,
            collections=file.collections,
            metadata=file.metadata,
            error=task.error,
        )

    def with_collections(self, names: Iterable[str]) -> "FileDocument":
        """Return the document in these collections and no others."""
        return replace(self, collections=tuple(sorted(set(names))) or (DEFAULT_COLLECTION,))

    def differences(self, other: "FileDocument") -> tuple[str, ...]:
        """Return what differs in another state of the document: of what users and paths add to it."""
        pairs = {
            "contexts": (sorted(self.collections), sorted(other.collections)),
            "metadata": (dict(self.metadata), dict(other.metadata)),
            "source": (self.sources, other.sources),
        }
        return tuple(name for name, (before, after) in pairs.items() if before != after)

    def with_sources(self, sources: Iterable[str]) -> "FileDocument":
        """Return the document with these sources, the first one as the main one; at least one."""
        first, *others = dict.fromkeys(sources)
        return replace(self, source=first, other_sources=tuple(others))


@dataclass(frozen=True, slots=True)
class AddFile:
    """The payload of a task: a file that was copied, and how to read it."""

    document_id: str
    filename: str
    source: str
    format: str
    size_bytes: int
    digest: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    force_ocr: bool = False
    collections: tuple[str, ...] = (DEFAULT_COLLECTION,)
    page_images: int = 0  # pictures as wide as a page, which probably need OCR
    submitted_at: float | None = None
    other_sources: tuple[str, ...] = ()  # of a document that is read again
    added_at: float | None = None  # when it was first added, if that was before its task
    is_rebuild: bool = False  # the copy is all there is: it is read again, and never deleted

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> "AddFile":
        """Return the typed form of a task's payload."""
        return cls(
            document_id=payload["document_id"],
            filename=payload["filename"],
            source=payload.get("source", ""),
            format=payload["format"],
            size_bytes=int(payload["size"]),
            digest=payload["digest"],
            metadata=payload.get("metadata") or {},
            force_ocr=bool(payload.get("force_ocr")),
            collections=tuple(payload.get("contexts") or (DEFAULT_COLLECTION,)),
            page_images=int(payload.get("page_images") or 0),
            submitted_at=float(payload["submitted"]) if "submitted" in payload else None,
            other_sources=tuple(payload.get("other_sources") or ()),
            added_at=float(payload["added"]) if "added" in payload else None,
            is_rebuild=bool(payload.get("rebuild")),
        )

    def to_payload(self) -> dict[str, Any]:
        """Return the payload as a task keeps it."""
        return {
            "document_id": self.document_id,
            "filename": self.filename,
            "source": self.source,
            "format": self.format,
            "size": self.size_bytes,
            "digest": self.digest,
            "metadata": dict(self.metadata),
            "force_ocr": self.force_ocr,
            "contexts": list(self.collections),
            **({"page_images": self.page_images} if self.page_images else {}),
            **({"submitted": self.submitted_at} if self.submitted_at is not None else {}),
            **({"other_sources": list(self.other_sources)} if self.other_sources else {}),
            **({"added": self.added_at} if self.added_at is not None else {}),
            **({"rebuild": True} if self.is_rebuild else {}),
        }

    @classmethod
    def of_document(cls, document: FileDocument) -> "AddFile":
        """Return the payload of the task that completes a document."""
        return cls(
            document.id,
            document.filename,
            document.source,
            document.format,
            document.size_bytes,
            document.digest,
            document.metadata,
            collections=document.collections,
            other_sources=document.other_sources,
            added_at=document.added_at,
        )


@dataclass(frozen=True, slots=True)
class AddedFile:
    """The result of a task: the document, which may be one that had the same content before.

    `updated` names what a duplicate changed, `replaced_id` the earlier version. A file that changed again before it
    was read is `superseded`: the document is the later version.
    """

    document_id: str
    filename: str
    chunks_created: int
    processing_method: str
    is_duplicate: bool = False
    updated: tuple[str, ...] = ()
    replaced_id: str | None = None
    is_superseded: bool = False

    @classmethod
    def from_result(cls, result: Mapping[str, Any]) -> "AddedFile":
        """Return the typed form of a task's result."""
        return cls(
            result["document_id"],
            result["filename"],
            result["chunks_created"],
            result["processing_method"],
            bool(result.get("duplicate")),
            tuple(result.get("updated") or ()),
            result.get("replaced_document_id"),
            bool(result.get("superseded")),
        )

    def to_result(self) -> dict[str, Any]:
        """Return the result as a task keeps it."""
        return {
            "document_id": self.document_id,
            "filename": self.filename,
            "chunks_created": self.chunks_created,
            "processing_method": self.processing_method,
            **({"duplicate": True} if self.is_duplicate else {}),
            **({"updated": list(self.updated)} if self.updated else {}),
            **({"replaced": True, "replaced_document_id": self.replaced_id} if self.replaced_id else {}),
            **({"superseded": True} if self.is_superseded else {}),
        }


def added_file(task: Task) -> AddedFile:
    """Return what a completed task added."""
    return AddedFile.from_result(task.result or {})


def iso_time(seconds: float) -> str:
    """Return a time as agents see it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
