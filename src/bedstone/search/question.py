"""How much of a question chunks have: it decides which side of a search to trust."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from bedstone.search.fusion import MIN_REPEATED_TERMS
from bedstone.search.matching import Matcher
from bedstone.search.relevance import QueryTerms

# The plain text of each chunk that still exists, and its context: headings and other text that counts as its own.
ReadTexts = Callable[[Sequence[int]], Iterable[tuple[str, str]]]


class QuestionCoverage:
    """Looks for the words of a question in chunks; reads nothing until it is asked."""

    def __init__(
        self, matcher: Matcher, chunk_count: int, document_frequency: Callable[[str], int], read: ReadTexts
    ) -> None:
        self._matcher = matcher
        self._chunk_count = chunk_count
        self._document_frequency = document_frequency
        self._read = read

    def mean(self, rowids: Sequence[int]) -> float:
        """Return the share of the question's weight that chunks have anywhere, on average; 1 if all are gone."""
        shares = [
            self._terms.share(self._matcher.find_terms(f"{plain}\n{context}")) for plain, context in self._read(rowids)
        ]
        return sum(shares) / len(shares) if shares else 1.0

    def together(self, rowid: int) -> float:
        """Return the share that stands together in a chunk or its context; 0 for a short question."""
        if len(self._matcher.terms) < MIN_REPEATED_TERMS:
            return 0.0
        return max(
            (
                self._terms.weigh(self._matcher.find(f"{plain}\n{context}"), len(plain)).covered
                for plain, context in self._read([rowid])
            ),
            default=0.0,
        )

    @cached_property
    def _terms(self) -> QueryTerms:
        return QueryTerms(self._matcher.terms, self._chunk_count, self._document_frequency)
