"""What callers ask of a search, and what every stage of it passes on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:  # commands import this module before they need the engine
    from bedstone.records import ChunkHead, Document, Place, StoredChunk
    from bedstone.search.filters import Filter

Mode = Literal["keyword", "semantic", "hybrid"]
MODES_BY_NAME: Mapping[str, Mode] = {
    "hybrid": "hybrid",
    "keyword": "keyword",
    "semantic": "semantic",
    "words": "keyword",  # earlier names, still accepted
    "vectors": "semantic",
}


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A query, and the page of hits to return for it; `collapsed_facets` are those whose variants count as one hit."""

    query: str
    filter: "Filter | None" = None
    collapsed_facets: tuple[str, ...] = ()
    mode: Mode = "hybrid"
    offset: int = 0
    limit: int = 10
    min_score: float = 0.0


class Candidate(NamedTuple):  # every search makes hundreds: a frozen dataclass takes three times as long
    """A chunk that an index proposes: the score to rank by, and the scores it is made of."""

    rowid: int
    score: float
    keyword_score: float | None = None
    cosine: float | None = None

    def is_match(self, min_similarity: float) -> bool:
        """Return whether a term matched, or the chunk is near enough in meaning."""
        return self.keyword_score is not None or (self.cosine or 0.0) >= min_similarity

    def matched_by(self, min_similarity: float) -> str:
        """Return which kind of search speaks for the chunk: keyword, semantic, or both."""
        if self.keyword_score is None:
            return "semantic"
        is_near = self.cosine is not None and self.cosine >= min_similarity
        return "keyword and semantic" if is_near else "keyword"


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates in order, out of `considered` ones; `signals` names the kinds of search that took part."""

    candidates: list[Candidate]
    considered: int = 0
    signals: tuple[str, ...] = ()
    nearest_span: Callable[[int], tuple[int, int] | None] | None = None

    def passage(self, rowid: int) -> tuple[int, int] | None:
        """Return the span of a chunk's plain text that is nearest in meaning, if vectors took part."""
        return self.nearest_span(rowid) if self.nearest_span else None


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text to show, and the spans in it that match the query."""

    text: str
    highlights: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that is returned; `score` is its relevance from 0 to 1.

    The profile of the search says whether it has a snippet or its own texts, and whether it has its document. A hit
    with its own texts has the place in them that matched; `plain` is the text without markup of any hit.
    """

    head: "ChunkHead"
    score: float
    matched_by: str
    snippet: Snippet = Snippet("")
    plain: str = ""
    chunk: "StoredChunk | None" = None
    document: "Document | None" = None
    place: "Place | None" = None
    variants: tuple[str, ...] = ()  # the ids of chunks that were found too, and say the same


@dataclass(frozen=True, slots=True)
class SearchResponse:
    """A page of hits; `matched` is how many matched in all, at least if `is_lower_bound`."""

    hits: tuple[Hit, ...]
    has_more: bool
    matched: int
    is_lower_bound: bool
    signals: tuple[str, ...]
