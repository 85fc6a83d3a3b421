"""Arguments and results of search, fetch and cite; `id`, `title`, `url`, `text`, `metadata` are as ChatGPT expects."""

from typing import Literal

from pydantic import Field

from bedstone.toolkit import Arguments, Result

MAX_QUERY_CHARACTERS = 500
MAX_QUOTE_CHARACTERS = 5_000
Detail = Literal["concise", "full"]
Band = Literal["strong", "good", "weak"]


class Search(Arguments):
    query: str = Field(max_length=MAX_QUERY_CHARACTERS, description="A question or keywords, in plain words")
    source: str | None = Field(
        None, description="Search one source only: documents, documentation, articles, knowledge file or schema"
    )
    limit: int = Field(8, ge=1, le=50, description="Maximum number of results")
    detail: Detail = Field("concise", description="concise: a snippet per result; full: the whole passage")


class Fetch(Arguments):
    id: str = Field(min_length=1, max_length=2_000, description="An id that search returned, with or without its #part")
    offset: int = Field(0, ge=0, description="Characters to skip: next_offset of the answer before")
    detail: Detail = Field("full", description="full: up to 20,000 characters at once; concise: up to 4,000")


class Cite(Arguments):
    id: str = Field(min_length=1, max_length=2_000, description="The id of the source, as search or fetch returned it")
    quote: str = Field(max_length=MAX_QUOTE_CHARACTERS, description="The words to check, as you mean to quote them")


class FoundResult(Result):
    id: str = Field(description="Pass it to fetch or cite")
    title: str
    url: str | None = Field(None, description="The page that shows the passage, highlighted in its document")
    source: str = Field(description="Documents, Documentation, Knowledge file, Articles or Schema")
    origin: str | None = Field(None, description="The path or URL it comes from")
    location: str | None = Field(None, description="Where in the source: file, section, page")
    page: int | None = None
    anchor: str | None = None
    start: int | None = Field(None, description="Where the passage begins in the text of the id without its #part")
    end: int | None = None
    score: float = Field(description="Relevance, 0 to 1")
    band: Band = Field(description="strong: probably the answer; good: related; weak: shares a few words")
    snippet: str
    text: str | None = Field(None, description="The whole passage, with detail=full")
    matched_by: str | None = None
    also: list[str] | None = Field(None, description="Ids of up to 5 further hits in the same section")
    copies: list[str] | None = Field(None, description="Ids of up to 5 places with nearly the same text")


class SearchResults(Result):
    results: list[FoundResult]
    message: str | None = None
    weak_results_left_out: int | None = Field(
        None, description="Weak hits that are not listed, because better ones are"
    )
    notice: str | None = Field(None, description="Why results may be missing")


class FetchedText(Result):
    id: str
    title: str
    text: str
    url: str | None = None
    metadata: dict[str, str]
    offset: int
    total_characters: int
    next_offset: int | None = Field(None, description="Pass it as offset to read on")
    next_id: str | None = Field(None, description="What comes after this part")


class QuoteDifference(Result):
    quote: str = Field(description="What the quote says")
    source: str = Field(description="What the source says instead")


class QuoteVerdict(Result):
    id: str
    confirmed: bool = Field(description="Whether the source has the quote: only then quote it")
    match: Literal["exact", "normalised", "nearest", "absent"] = Field(
        description="exact: letter by letter; normalised: but for white space, hyphens, markup and the like; "
        "nearest: the passage that comes closest; absent: nothing comparable"
    )
    distance: float = Field(description="0: the same, 1: nothing in common")
    passage: str | None = Field(None, description="What the source says there")
    differences: list[QuoteDifference] | None = None
    title: str
    url: str | None = None
    page: int | None = None
    start: int | None = None
    end: int | None = None
    message: str
