"""What reading a file gives: pages of Markdown, facts about the document, and what went wrong on the way."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

Method = Literal["text", "ocr"]
Reason = Literal[
    "password_required",
    "damaged",
    "unsafe_archive",
    "too_deep",
    "too_many_cells",
    "too_large",
    "time_limit",
    "memory_limit",
    "worker_crashed",
    "no_text_found",
    "ocr_unavailable",
    "unsupported",
]
# In which documents the pictures are read too, where pages have text besides.
Pictures = Literal["none", "pdf", "all"]


class Unreadable(Exception):
    """A file cannot be read; `reason` is a name for programs, the message a sentence for people."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class Page:
    """A page, slide or sheet as Markdown; a document without pages is one Page without a number."""

    markdown: str
    number: int | None = None
    of: int | None = None
    method: Method = "text"
    confidence: float | None = None


@dataclass(frozen=True)
class ReadOptions:
    """How a file is to be read."""

    password: str | None = None
    force_ocr: bool = False
    ocr: bool = True
    ocr_language: str = "eng"
    ocr_data_path: str | None = None
    ocr_images: Pictures = "pdf"
    ocr_confidence: float = 0.0


@dataclass
class Notes:
    """What a reader learns beside the text: title, author, dates; and what it could not read."""

    metadata: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def warn(self, message: str) -> None:
        """Note something once."""
        if message not in self.warnings:
            self.warnings.append(message)

    def learn(self, name: str, value: object) -> None:
        """Note a fact, unless it is empty."""
        text = " ".join(str(value or "").split())
        if text:
            self.metadata.setdefault(name, text)


class Read(Protocol):
    """One format: a function that reads a file page by page. It runs in a worker process."""

    def __call__(self, path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]: ...
