"""What is kept beside the copy of a file, so that its document can be restored without the store."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from bedstone.ingest.detection import detect
from bedstone.services.knowledge.records import AddFile
from bedstone.store.blobs import Blob

SIDECAR = "document.json"
COPY = "content"
VERSION = 1
SHORT_ID = 8  # characters
MAX_SIDECAR_BYTES = 2**24


def format_sidecar(file: AddFile) -> bytes:
    """Return what to write about a file."""
    facts = {"version": VERSION, **file.to_payload()}
    return json.dumps(facts, ensure_ascii=False, indent=1).encode(errors="replace")


def parse_sidecar(data: bytes, document_id: str) -> AddFile | None:
    """Return what was written about a file; None if that is damaged."""
    try:
        facts: Any = json.loads(data.decode("utf-8"))
        return replace(AddFile.from_payload(facts), document_id=document_id)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def guess_file(document_id: str, path: Path, copy: Blob) -> AddFile | None:
    """Return what a copy itself tells about its file; None if it has no format."""
    suffix = Path(copy.key).suffix
    filename = f"{document_id[:SHORT_ID]}{suffix}"
    kind = detect(path, filename)
    if kind is None:
        return None
    return AddFile(document_id, filename, "", kind, copy.size, "", added_at=copy.modified)
