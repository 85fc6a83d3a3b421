"""What can go wrong with the files of a knowledge base."""

from bedstone.errors import BedstoneError, InvalidInput, NotFound

SUPPORTED = ("pdf", "docx", "pptx", "xlsx", "html", "jpg", "png", "svg")
ADDITIONAL = ("md", "txt", "csv", "json", "eml", "epub", "rtf", "odt")


class UnsupportedFormat(InvalidInput):
    """The file has a format that cannot be read."""


class FileTooLarge(InvalidInput):
    """The file is larger than allowed."""


class FileNotFound(NotFound):
    """The file does not exist, or is not a regular file."""


class PathNotAllowed(InvalidInput):
    """The file is outside the folders that files may be added from."""


class DocumentNotFound(NotFound):
    """No document has that id."""


class CollectionNotFound(NotFound):
    """No collection has that name."""


class EmptyKnowledgeBase(BedstoneError):
    """The knowledge base has no documents to search."""


class ExtractionFailed(BedstoneError):
    """The file is corrupt, protected or empty."""


class OcrFailed(BedstoneError):
    """The file needs OCR, which found no text or is not installed."""


def unsupported(suffix: str) -> UnsupportedFormat:
    """Return the error for a file that cannot be read, with the formats that can."""
    names = ", ".join(name.upper() for name in SUPPORTED[:-1])
    return UnsupportedFormat(
        f"Unsupported file format: {suffix}. Use {names}, or {SUPPORTED[-1].upper()}",
        supported_formats=list(SUPPORTED),
        additional_formats=list(ADDITIONAL),
    )
