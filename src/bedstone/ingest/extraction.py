"""What a reader takes and returns: options, pages of Markdown, metadata, warnings, what it left out, and its error."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from bedstone.ingest.left_out import Kind, LeftOut, shorten

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
    "worker_killed",  # from outside: not the file's fault, unless it happens every time
    "machine",  # a full disk, too many open files: the same file can be read later
    "no_text_found",
    "ocr_unavailable",
    "unsupported",
    "page_missing",  # asked for by its number
]
# In which documents OCR reads the pictures on pages that also have text.
Pictures = Literal["none", "pdf", "all"]


MAX_WARNINGS = 100
MORE_WARNINGS = "There are more warnings than are listed here."
MAX_NOTE_CHARS = 2_000  # of a warning, and of a property such as the title


class ExtractionError(Exception):
    """A file cannot be read; `reason` is for programs, `message` for people."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


OCR_OFF = "OCR is switched off (ocr.enabled)"


@dataclass(frozen=True, slots=True)
class Page:
    """A page, slide or sheet as Markdown; a document without pages is one Page without a number.

    OCR adds how confident it is, where it found the words (see `page_words`), the share of words that look like words,
    and what was done to the picture.
    """

    markdown: str
    number: int | None = None
    of: int | None = None
    method: Method = "text"
    confidence: float | None = None
    words: str = ""
    word_share: float | None = None
    done: str = ""


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file."""

    password: str | None = None
    force_ocr: bool = False
    ocr: bool = True
    ocr_language: str = "eng"
    ocr_data_path: str | None = None
    ocr_images: Pictures = "pdf"
    ocr_confidence: float = 0.0
    first_page: int = 1  # the pages before it are known from an interrupted attempt


@dataclass
class Notes:
    """Metadata that a reader finds (title, author, dates), warnings about what it could not read, what it left out.

    `kept_once` has the repeated texts that a page has already: the reader leaves them out from then on.
    """

    metadata: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)
    kept_once: list[str] = field(default_factory=list)

    def warn(self, message: str) -> None:
        """Add a warning once; behind the last one, a file with more of them says so."""
        if message in self.warnings or len(self.warnings) > MAX_WARNINGS:
            return
        is_last = len(self.warnings) == MAX_WARNINGS
        self.warnings.append(MORE_WARNINGS if is_last else shorten(message, MAX_NOTE_CHARS))

    def learn(self, name: str, value: object) -> None:
        """Add metadata, unless it is empty or known."""
        text = " ".join(str(value or "").split())
        if text:
            self.metadata.setdefault(name, shorten(text, MAX_NOTE_CHARS))

    def leave_out(self, kind: Kind, text: str, page: int | None = None, count: int = 1) -> None:
        """Record text of the file that the pages do not have."""
        self.left_out.add(kind, text, page, count)


class Read(Protocol):
    """The reader of a format: yields a file page by page, in a worker process."""

    def __call__(self, path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]: ...
