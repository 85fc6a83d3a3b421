"""What is kept beside the copy of a file, so that its document can be restored without the store."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from bedstone.ingest.detection import detect
from bedstone.permissions import make_private_folder
from bedstone.services.knowledge.records import AddFile, FileDocument

SIDECAR = "document.json"
COPY = "content"
VERSION = 1
SHORT_ID = 8  # characters


def write_sidecar(folder: Path, file: AddFile, *, durable: bool = True) -> None:
    """Write what is known of a file into the folder of its document."""
    facts = {"version": VERSION, **file.to_payload()}
    write_durably(folder / SIDECAR, json.dumps(facts, ensure_ascii=False, indent=1), durable=durable)


def read_sidecar(folder: Path) -> AddFile | None:
    """Return what was written about a file; None if that is missing or damaged."""
    try:
        facts: Any = json.loads((folder / SIDECAR).read_text(encoding="utf-8"))
        return replace(AddFile.from_payload(facts), document_id=folder.name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def update_sidecar(folder: Path, document: FileDocument, *, durable: bool = True) -> None:
    """Write what changed in a document; how its file is read stays as it was."""
    known = read_sidecar(folder)
    force_ocr = known.force_ocr if known else False
    file = replace(AddFile.of_document(document), submitted_at=document.submitted_at, force_ocr=force_ocr)
    if folder.is_dir() and file != known:
        write_sidecar(folder, file, durable=durable)


def find_copy(folder: Path) -> Path | None:
    """Return the copy of the original file in the folder of a document."""
    return next((path for path in sorted(folder.glob(f"{COPY}.*")) if path.is_file()), None)


def recall_file(folder: Path, copy: Path) -> AddFile | None:
    """Return the file of a folder: as its sidecar has it, or what the copy itself tells; None if it has no format."""
    if (known := read_sidecar(folder)) is not None:
        return known
    filename = f"{folder.name[:SHORT_ID]}{copy.suffix}"
    status, kind = copy.stat(), detect(copy, filename)
    if kind is None:
        return None
    return AddFile(folder.name, filename, "", kind, status.st_size, "", added_at=status.st_mtime)


def write_durably(file: Path, text: str, *, durable: bool = True) -> None:
    """Replace a file at once; it survives a power failure."""
    make_private_folder(file.parent)
    draft = file.with_name(f"{file.name}.{uuid4().hex}.tmp")
    try:
        with draft.open("w", encoding="utf-8", errors="replace") as target:
            target.write(text)
            if durable:
                target.flush()
                os.fsync(target.fileno())
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
