"""What can go wrong with the files of a knowledge base."""

from typing import Any

from bedstone.errors import BedstoneError, InvalidInput, NotFound, Unavailable


class UnsupportedFormat(InvalidInput):
    """The file has a format that cannot be read."""


class FileTooLarge(InvalidInput):
    """The file is larger than allowed."""


class FileNotFound(NotFound):
    """The file does not exist, or is not a regular file."""


class PathNotAllowed(InvalidInput):
    """The file is outside the folders that files may be added from, belongs to the server, or may not be read."""


class DocumentNotFound(NotFound):
    """No document has that id."""


class DocumentNotReady(NotFound):
    """The file is still being read."""


class UnreadDocument(NotFound):
    """The file could not be read; `reason` is the code of the error."""

    def __init__(self, message: str, reason: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.reason = reason


class StoreMismatch(Unavailable):
    """The documents folder belongs to another store, or to one that was lost."""


class TextMissing(Unavailable):
    """The stored text of a document is missing or damaged."""


class CollectionNotFound(NotFound):
    """No collection has that name."""


class PageNotFound(NotFound):
    """The document has no page with that number."""


class OriginalMissing(Unavailable):
    """The stored copy of a document is missing."""


class RenderingBusy(Unavailable):
    """Too many pages are being drawn at once."""


class RenderingFailed(BedstoneError):
    """A page cannot be drawn; `reason` is for programs."""

    def __init__(self, message: str, reason: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.reason = reason


class EmptyKnowledgeBase(BedstoneError):
    """The knowledge base has no documents to search."""


class ExtractionFailed(BedstoneError):
    """The file is corrupt, protected or empty."""


class OcrFailed(BedstoneError):
    """The file needs OCR, which found no text or is not installed."""


def unsupported_format(suffix: str) -> UnsupportedFormat:
    """Return the error for a file that cannot be read, with the formats that can."""
    from bedstone.ingest.detection import supported_formats  # noqa: PLC0415 - for this error only

    formats = supported_formats()
    names = [item.name for item in formats if item.in_contract]
    return UnsupportedFormat(
        f"Unsupported file format: {suffix}. Use {', '.join(names[:-1]).upper()}, or {names[-1].upper()}",
        supported_formats=names,
        additional_formats=[item.name for item in formats if not item.in_contract],
    )
