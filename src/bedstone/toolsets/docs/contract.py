"""Arguments and results of the docs tools, as in the contract."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, create_model
from pydantic_core import ErrorDetails

from bedstone.errors import InvalidInput
from bedstone.services.docs.metadata import Facet
from bedstone.toolkit import Arguments, Citation, Result

SEARCH_DESCRIPTION = "Search the {}. Use this to find relevant documentation, guides, or API references."
GET_DESCRIPTION = (
    "Retrieve the full content of a specific documentation chunk using its chunk_id. "
    "You can optionally request surrounding context within the same file."
)


def _require_text(text: str) -> str:
    if not text.strip():
        raise ValueError("blank")
    return text


NotBlank = Annotated[str, AfterValidator(_require_text)]


class DocsArguments(Arguments):
    """Arguments with the error messages of the contract."""

    closed = True

    @classmethod
    def parse(cls, arguments: dict[str, Any]) -> Self:
        """Validate the arguments; null stands for the default."""
        defaults = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return super().parse({k: value for k, value in arguments.items() if value is not None or k not in defaults})

    @classmethod
    def _explain(cls, problems: list[ErrorDetails]) -> InvalidInput:
        problem = min(problems, key=lambda item: item["type"] != "extra_forbidden")
        name = str(problem["loc"][0])
        match problem["type"]:
            case "extra_forbidden":
                return InvalidInput(f"Unexpected field '{name}'")
            case "greater_than_equal" | "less_than_equal":
                low, high = {"limit": (1, 50), "context": (0, 5)}[name]
                return InvalidInput(f"{name} must be between {low} and {high}")
            case "int_type" | "int_from_float" | "int_parsing":
                return InvalidInput(f"{name} must be an integer")
            case "literal_error":
                values = ", ".join(get_args(get_args(cls.model_fields[name].annotation)[0]))
                given = problem["input"]
                return InvalidInput(f"Invalid taxonomy value for '{name}': '{given}'. Allowed values: {values}")
            case _ if name in ("query", "chunk_id"):
                return InvalidInput(f"{name} must be a non-empty string")
            case _:
                return InvalidInput(f"{name} must be a string")


class SearchDocs(DocsArguments):
    query: NotBlank = Field(description="The search query (e.g., 'how to paginate', 'RateLimitError').")
    limit: int = Field(10, ge=1, le=50, description="Maximum number of results to return. Default is 10.")
    cursor: str | None = Field(
        None,
        description="Opaque pagination token returned from a previous search. Omit for the first page. "
        "Returns an error if invalid or malformed.",
    )


class GetDoc(DocsArguments):
    chunk_id: NotBlank = Field(
        description="The exact ID of the chunk to retrieve, as returned by search_docs "
        "(e.g., 'guides/retries.md#backoff-strategy')."
    )
    context: int = Field(
        0,
        ge=0,
        le=5,
        description="Number of adjacent chunks to include before and after the target chunk. Default is 0. "
        "Use this to read the surrounding file context.",
    )


def search_arguments(taxonomy: Mapping[str, Facet]) -> type[SearchDocs]:
    """Return the arguments of search_docs with one optional enum per facet."""
    facets: dict[str, Any] = {
        key: (Literal[facet.values] | None, Field(None, description=facet.description))
        for key, facet in taxonomy.items()
    }
    return create_model("SearchDocs", __base__=SearchDocs, **facets)


class SearchHit(Result):
    chunk_id: str = Field(description="Use this ID with get_doc")
    score: float = Field(description="Relevance, 0 to 1")
    heading: str
    breadcrumb: str
    snippet: str
    filepath: str
    metadata: dict[str, str]
    highlights: list[tuple[int, int]] = Field(description="Positions of the matching terms in the snippet")
    citation: Citation | None = None
    variants: list[str] | None = Field(
        None, description="Chunks that say the same: copies, or this section in other versions or ports of the page"
    )
    more_variants: int | None = Field(None, description="Number of variants that are not listed")


class SearchHint(Result):
    message: str
    suggested_filters: dict[str, list[str]]


class SearchResult(Result):
    hits: list[SearchHit]
    next_cursor: str | None
    hint: SearchHint | None
    notice: str | None = None
