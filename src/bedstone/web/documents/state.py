"""How a document is, in one word, then the reason, then the way out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bedstone.services.knowledge.next_steps import next_step
from bedstone.services.knowledge.records import FileDocument
from bedstone.services.service import format_count

# What a reader leaves out that a person may miss; headers, page numbers and the like are meant to be left out.
MISSED = ("picture", "scanned page", "uncertain OCR", "attachment", "embedded file")
METHODS: Mapping[str, str] = {
    "text_extraction": "Text extraction",
    "ocr": "OCR",
    "image_analysis": "OCR of a picture",
}
STATUSES: Mapping[str, str] = {
    "completed": "Ready",
    "pending,processing": "Being read",
    "pending": "Waiting",
    "processing": "Reading",
    "failed": "Failed",
}


@dataclass(frozen=True)
class DocumentState:
    """The kind of a state, what it is, a second line with the step or the way out, and how far it is in percent."""

    kind: str
    text: str
    more: str = ""
    percent: int | None = None


def describe_state(document: FileDocument, task: Mapping[str, Any] | None = None) -> DocumentState:
    """Return the state of a document; `task` is the state of the task that reads it, or reads it again."""
    if task is not None and task["status"] in ("queued", "running"):
        return _describe_task(task)
    if document.error is not None:
        return DocumentState("bad", f"Failed: {as_clause(document.error.message)}", next_step(document.error))
    if document.status == "failed":
        return DocumentState("bad", "Failed", "Retry, or add the file again.")
    if document.status != "completed":  # its task is further down than the page looks
        return DocumentState("busy", STATUSES[document.status])
    count = len(notes_of(document))
    return DocumentState("warn", f"Ready, {format_count(count, 'note')}") if count else DocumentState("good", "Ready")


def _describe_task(task: Mapping[str, Any]) -> DocumentState:
    if task["status"] == "queued":
        ahead = task.get("position", 1) - 1
        text = "Waiting" + (f", {format_count(ahead, 'file')} ahead" if ahead else "")
        return DocumentState("", text, task.get("message", ""))
    percent = int(task["progress"] * 100)
    rest = f", {task['remaining']}" if "remaining" in task else ""
    return DocumentState("busy", f"Reading, {percent} %{rest}", task.get("current_step", ""), percent)


def notes_of(document: FileDocument) -> list[str]:
    """Return what a person should know about the text of a document: warnings, and what is missing in it."""
    counts = document.left_out.counts
    missed = [f"{format_count(counts[kind], kind)} not read" for kind in MISSED if counts.get(kind)]
    return [*document.warnings, *missed]


def as_clause(sentence: str) -> str:
    """Return a sentence as it follows a colon: without its full stop, in lower case unless it begins with a name."""
    text = sentence.removesuffix(".")
    is_name = text[1:2].isupper() or not text[:1].isalpha()
    return text if is_name else text[:1].lower() + text[1:]
