"""What can go wrong with files people add, by the names the contract gives it."""

from bedstone.errors import BedstoneError, InvalidInput, NotFound

SUPPORTED = ("pdf", "docx", "pptx", "xlsx", "html", "jpg", "png", "svg")
ADDITIONAL = ("md", "txt", "csv", "json", "eml", "epub", "rtf", "odt")


class UnsupportedFormat(InvalidInput):
    """The file is of a kind that cannot be read."""

    code = "unsupported_format"


class FileTooLarge(InvalidInput):
    """The file is larger than allowed."""

    code = "file_too_large"


class FileNotFound(NotFound):
    """There is no such file."""

    code = "file_not_found"


class PathNotAllowed(InvalidInput):
    """The file lies outside the folders that may be read."""

    code = "path_not_allowed"


class DocumentNotFound(NotFound):
    """No document has that id."""

    code = "document_not_found"


class ContextNotFound(NotFound):
    """No context has that name."""

    code = "context_not_found"


class EmptyKnowledgeBase(BedstoneError):
    """There is nothing to search yet."""

    code = "empty_knowledge_base"


class ExtractionFailed(BedstoneError):
    """A file is damaged, protected or empty."""

    code = "extraction_failed"


class OcrFailed(BedstoneError):
    """Text recognition was needed and gave nothing."""

    code = "ocr_failed"


def unsupported(suffix: str) -> UnsupportedFormat:
    """A file of a kind that cannot be read, and which kinds can."""
    named = ", ".join(name.upper() for name in SUPPORTED[:-1])
    return UnsupportedFormat(
        f"Unsupported file format: {suffix}. Use {named}, or {SUPPORTED[-1].upper()}",
        supported_formats=list(SUPPORTED),
        additional_formats=list(ADDITIONAL),
    )
