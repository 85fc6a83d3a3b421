"""The arguments and results of the knowledge tools, as the contract prints them."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema

from bedstone.toolkit import Arguments, Result


def _task_id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise ValueError(
            "not a task id; knowledge-add returns one such as 123e4567-e89b-42d3-a456-426614174000"
        ) from None


def _lower(text: str) -> str:
    return text.strip().lower()


def _names(names: Any) -> Any:
    return [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else names


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


Names = Annotated[list[str], BeforeValidator(_names, json_schema_input_type=list[str] | str)]
Id = Annotated[str, AfterValidator(_lower)]
FILTERS = {
    "type": "object",
    "properties": {
        "format": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "date_range": {
            "type": "object",
            "properties": {"start": {"type": "string"}, "end": {"type": "string"}},
            "additionalProperties": False,
            "description": "When added: 2026-01-31 or 2026-01-31T09:30:00Z; both ends included",
        },
    },
    "additionalProperties": True,
}
Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class Add(Arguments):
    file_path: str = Field(min_length=1, description="Path to the document or image file")
    metadata: dict[str, Any] | None = Field(None, description="Additional metadata (author, title, tags)")
    force_ocr: bool = Field(False, description="Force OCR even if text extraction available")
    in_background: bool = Field(True, alias="async", description="Process asynchronously and return task ID")
    contexts: Names | None = Field(None, description="Contexts the document goes into, as a list or by commas")


class Search(Arguments):
    query: Query = Field(description="Natural language search query")
    top_k: int = Field(10, ge=1, le=50, description="Number of results to return")
    min_relevance: float = Field(0.0, ge=0, le=1, description="Minimum relevance score (0.0 to 1.0)")
    filters: Annotated[dict[str, Any], WithJsonSchema(FILTERS)] | None = Field(
        None,
        description="Metadata filters (format, date_range); other keys match the metadata of documents",
    )
    context: str | None = Field(None, description="Only documents of this context; all by default")


class Remove(Arguments):
    document_id: Id = Field(min_length=1, description="ID of document to remove")
    confirm: bool = Field(False, description="Confirmation flag for safety")


class Show(Arguments):
    limit: int = Field(100, ge=1, le=1000, description="Max documents to return")
    offset: int = Field(0, ge=0, description="Pagination offset")
    sort_by: Literal["date_added", "filename", "size"] = Field(
        "date_added", description="Sort field (date_added, filename, size)"
    )
    sort_order: Literal["asc", "desc"] = Field("desc", description="Sort order (asc, desc)")
    context: str | None = Field(None, description="Only documents of this context; all by default")


class Clear(Arguments):
    # Required in the schema; but a missing value asks for confirmation and is not an error.
    model_config = ConfigDict(json_schema_extra={"required": ["confirm", "confirmation_phrase"]})

    confirm: Annotated[Any, WithJsonSchema({"type": "boolean"})] = Field(
        None, description="Must be true to clear", json_schema_extra=_without_default
    )
    confirmation_phrase: Annotated[Any, WithJsonSchema({"type": "string"})] = Field(
        None, description='Must be "DELETE ALL"', json_schema_extra=_without_default
    )


class TaskStatusArguments(Arguments):
    task_id: Annotated[str, AfterValidator(_task_id)] = Field(description="Task ID returned from async operation")


class Get(Arguments):
    document_id: Id | None = Field(None, min_length=1, description="Document to read; this or chunk_id")
    chunk_id: Id | None = Field(None, min_length=1, description="Passage to read, as knowledge-search names it")
    neighbours: int = Field(1, ge=0, le=10, description="With chunk_id: passages before and after it")
    start_page: int = Field(1, ge=1, description="With document_id: first page, slide or sheet")
    end_page: int | None = Field(None, ge=1, description="Last page; to the end by default")
    offset: int = Field(0, ge=0, description="Characters of the text to skip, to go on after a long answer")
    max_characters: int = Field(20_000, ge=100, le=200_000, description="Most characters to return at once")


class ContextCreate(Arguments):
    name: str = Field(description="1 to 64 letters, digits, _ or -")
    description: str = Field("", max_length=1_000, description="What the context is for")


class ContextShow(Arguments):
    name: str = Field(description="Name of the context")
    limit: int = Field(100, ge=1, le=1000, description="Max documents to return")
    offset: int = Field(0, ge=0, description="Pagination offset")


class ContextDelete(Arguments):
    name: str = Field(description="Name of the context")
    confirm: bool = Field(False, description="Needed when documents are in no other context")


class Success(Result):
    success: Literal[True] = True


class Queued(Success):
    task_id: str
    message: str
    estimated_time_seconds: int


class Added(Success):
    document_id: str
    filename: str
    chunks_created: int
    processing_method: str
    processing_time_seconds: float
    duplicate: bool | None = None
    updated: list[str] | None = None
    replaced: bool | None = None
    replaced_document_id: str | None = None
    superseded: bool | None = None


class FoundPassage(Result):
    document_id: str
    chunk_id: str
    filename: str
    chunk_text: str
    relevance_score: float
    metadata: dict[str, Any]


class FoundPassages(Success):
    query: str
    results: list[FoundPassage]
    total_results: int
    message: str | None = None
    notice: str | None = None
    search_time_ms: int


class Removed(Success):
    document_id: str
    filename: str
    chunks_removed: int
    message: str


class DocumentToRemove(Result):
    id: str
    filename: str
    chunks: int


class ConfirmRemoval(Result):
    success: Literal[False] = False
    error: Literal["confirmation_required"] = "confirmation_required"
    message: str
    document: DocumentToRemove


class ListedDocument(Result):
    id: str
    filename: str
    format: str
    size_bytes: int
    date_added: str
    chunk_count: int
    processing_status: Literal["pending", "processing", "completed", "failed"]
    processing_method: str | None
    source: str | None = None
    error: str | None = None
    message: str | None = None


class Documents(Success):
    documents: list[ListedDocument]
    total_count: int
    limit: int | None = None
    offset: int | None = None
    message: str | None = None


class Cleared(Success):
    documents_removed: int
    embeddings_removed: int
    storage_freed_mb: float
    message: str


class ConfirmClearing(Result):
    success: Literal[False] = False
    error: Literal["confirmation_required"] = "confirmation_required"
    message: str
    current_document_count: int


class BaseFacts(Result):
    name: str
    document_count: int
    total_chunks: int
    total_size_bytes: int
    total_size_mb: float
    average_chunks_per_document: float
    storage_path: str
    vector_db_path: str
    pending_count: int | None = None
    failed_count: int | None = None
    orphaned_count: int | None = None


class Health(Result):
    status: Literal["healthy", "degraded"]
    vector_db_connected: bool
    storage_accessible: bool
    embedding_model_loaded: bool
    issues: list[str] | None = None


class ConfigurationFacts(Result):
    embedding_model: str
    chunk_size: int
    max_file_size_mb: int


class Status(Success):
    knowledge_base: BaseFacts
    health: Health
    configuration: ConfigurationFacts
    last_updated: str | None


class TaskResult(Result):
    document_id: str
    filename: str
    chunks_created: int
    duplicate: bool | None = None
    updated: list[str] | None = None
    replaced: bool | None = None
    replaced_document_id: str | None = None
    superseded: bool | None = None


class TaskState(Success):
    task_id: str
    status: Literal["queued", "running", "completed", "cancelled"]
    progress: float
    position: int | None = None
    message: str | None = None
    current_step: str | None = None
    completed_steps: int | None = None
    total_steps: int | None = None
    result: TaskResult | None = None
    elapsed_time_seconds: float | None = None
    estimated_remaining_seconds: float | None = None
    total_time_seconds: float | None = None


class DocumentText(Success):
    document_id: str
    filename: str
    format: str
    page_count: int | None
    start_page: int | None
    end_page: int | None
    text: str
    offset: int
    total_characters: int
    next_offset: int | None
    metadata: dict[str, Any]


class PassageText(Success):
    document_id: str
    filename: str
    chunk_id: str
    position: int
    chunk_count: int
    page_num: int | None
    page_end: int | None
    start_page: int | None
    end_page: int | None
    text: str
    metadata: dict[str, Any]


class ContextFacts(Result):
    name: str
    description: str
    document_count: int
    date_created: str | None


class ContextCreated(Success):
    context: ContextFacts
    message: str


class ContextList(Success):
    contexts: list[ContextFacts]
    total_count: int


class ContextShown(Success):
    context: ContextFacts
    documents: list[ListedDocument]
    total_count: int
    limit: int
    offset: int


class ContextDeleted(Success):
    name: str
    documents_unlinked: int
    documents_moved_to_default: int
    message: str


class ConfirmContextDeletion(Result):
    success: Literal[False] = False
    error: Literal["confirmation_required"] = "confirmation_required"
    message: str
    name: str
    documents_only_here: int
