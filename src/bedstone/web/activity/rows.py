"""What Activity says about each task: what it does now or waits for, and how it ended."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedstone.records import Task
from bedstone.services.knowledge.next_steps import next_step
from bedstone.services.knowledge.records import AddFile, FileDocument, added_file
from bedstone.services.service import StateKind, format_count
from bedstone.tasks import INTERRUPTED
from bedstone.web.documents.state import notes_of
from bedstone.web.formatting import MINUTE, describe_length
from bedstone.web.wording import for_people

if TYPE_CHECKING:
    from bedstone.services.knowledge.service import KnowledgeBase

MAX_NOTE_CHARACTERS = 160
MIN_REST_SECONDS = 5  # less is not worth saying
PAGE_STEP = re.compile(r"^Processing page ")
STEPS: Mapping[str, str] = {
    "": "Reading the text",
    "Extracting text": "Reading the text",
    "Chunking": "Splitting the text into passages",
    "Generating embeddings": "Preparing semantic search",
    "Storing": "Storing",
}


@dataclass(frozen=True)
class ActiveRow:
    """A task that is running or queued: what it does or waits for, and how far it is."""

    id: str
    name: str
    address: str
    text: str
    percent: int | None = None  # None while it waits
    rest: str = ""


@dataclass(frozen=True)
class DoneRow:
    """A task that finished: how it ended, what came of it or why it failed, and what to do about that."""

    id: str
    kind: StateKind | str
    state: str
    name: str
    address: str
    text: str
    at: float
    step: str = ""
    can_retry: bool = False


def describe_active(task: Task, ahead: int) -> ActiveRow:
    """Return the row of a task; `ahead` is how many queued ones come before it."""
    file = AddFile.from_payload(task.payload)
    address = f"/documents/{file.document_id}"
    if task.status == "queued":
        return ActiveRow(task.id, file.filename, address, _describe_wait(task, ahead))
    progress = task.progress
    step = progress.step if progress is not None else ""
    text = STEPS.get(step) or PAGE_STEP.sub("Reading page ", step)
    percent = int(progress.share * 100) if progress is not None else 0
    rest = _describe_rest(progress.ends_at) if progress is not None and progress.ends_at is not None else ""
    return ActiveRow(task.id, file.filename, address, text, percent, rest)


def _describe_wait(task: Task, ahead: int) -> str:
    if task.retry is not None:
        seconds = max(1.0, task.retry.at - time.time())
        reason = task.retry.reason.rstrip(".")
        return f"Waits, because the machine failed: {reason}. It is tried again in {describe_length(seconds)}."
    if ahead == 0:
        return "Is next"
    return "Waits for the file before it" if ahead == 1 else f"Waits for {format_count(ahead, 'file')} before it"


def _describe_rest(ends_at: float) -> str:
    seconds = ends_at - time.time()
    return f"about {describe_length(seconds)} left" if seconds >= MIN_REST_SECONDS else ""


def describe_done(task: Task, document: FileDocument | None, base: "KnowledgeBase") -> DoneRow:
    """Return the row of a finished task; `document` is what it added, unless that is gone."""
    file = AddFile.from_payload(task.payload)
    at = task.finished_at or task.created_at
    address = f"/documents/{document.id}" if document is not None else ""
    if task.status == "completed":
        return DoneRow(task.id, "good", "Read", file.filename, address, _describe_result(task, document), at)
    if task.error is None:
        text = "Stopped before it was read. Add the file again to read it."
        return DoneRow(task.id, "", "Stopped", file.filename, address, text, at)
    reason = for_people(task.error.message)
    if task.is_dismissed:
        return DoneRow(task.id, "", "Failed", file.filename, address, f"{reason} Read again or removed since.", at)
    address = f"/documents/{file.document_id}"
    is_kept = base.places.shown_path(file.source) is not None or file.is_rebuild or task.error == INTERRUPTED
    step = next_step(task.error)
    if not is_kept and step.startswith("Retry"):
        step = "Add the file again; if it fails again, the server log has the details."
    return DoneRow(task.id, "bad", "Failed", file.filename, address, reason, at, step, is_kept)


def _describe_result(task: Task, document: FileDocument | None) -> str:
    added = added_file(task)
    if added.is_duplicate:
        return "Known already: a document has the same content."
    if added.is_superseded:
        return "The file had changed meanwhile; the later version was read instead."
    pages = format_count(document.page_count, "page") if document is not None and document.page_count else ""
    amount = ", ".join(filter(None, (pages, format_count(added.chunks_created, "passage"))))
    seconds = (task.finished_at or 0.0) - (task.started_at or task.finished_at or 0.0)
    taken = f"{seconds:.1f} s" if seconds < MINUTE else describe_length(seconds)
    parts = [f"{amount} in {taken}."]
    if added.replaced_id:
        parts.append("It replaces the version before.")
    if document is None:
        parts.append("Removed since.")
    elif notes := notes_of(document):
        note = notes[0] if len(notes[0]) <= MAX_NOTE_CHARACTERS else f"{notes[0][:MAX_NOTE_CHARACTERS]}…"
        parts.append(f"{format_count(len(notes), 'note')}: {note}")
    return " ".join(parts)
