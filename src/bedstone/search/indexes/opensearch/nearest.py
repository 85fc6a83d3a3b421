"""The passages that are nearest to a query, and the exact products of those that keyword search found."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from bedstone.search.filters import Filter
from bedstone.search.indexes.opensearch import bodies

if TYPE_CHECKING:
    from bedstone.search.embedder import Vectors
    from bedstone.search.indexes.opensearch.connection import Connection

MIN_NEAREST = 400  # that each shard looks for: recall is that of the longest list
ROWIDS_PER_REQUEST = 500  # a passage of each is scored, not searched for


def fetch_size(limit: int, passages: int, chunks: int) -> int:
    """Return how many passages to read, so that they are of `limit` chunks."""
    return max(1, min(limit * passages // max(1, chunks) + limit // 2, bodies.MAX_HITS))


class Nearest:
    """The best product of each chunk that was seen, and the span of the passage it comes from."""

    def __init__(
        self, connection: "Connection", index: str, vector: "Vectors", filter: Filter | None, options: bodies.Body
    ) -> None:
        self._connection = connection
        self._header = {"index": index, **options}
        self._vector = vector
        self._filter = filter
        self._cosines: dict[int, float] = {}
        self._spans: dict[int, tuple[int, int]] = {}

    def body(self, size: int) -> bodies.Body:
        """Return the search for the nearest passages."""
        passes = bodies.filter_query(self._filter) if self._filter is not None else None
        return bodies.nearest_body(self._vector, passes, max(size, MIN_NEAREST), size)

    def add(self, answer: Any) -> None:
        """Take in what the cluster found."""
        for hit in answer.get("hits", {}).get("hits", []):
            rowid, cosine = hit["fields"]["rowid"][0], _to_product(hit["_score"])
            if cosine > self._cosines.get(rowid, -2.0):
                self._cosines[rowid] = cosine
                self._spans[rowid] = (hit["fields"]["start"][0], hit["fields"]["end"][0])

    def best(self, limit: int, also: Collection[int]) -> dict[int, float]:
        """Return the products of the nearest chunks and of some others."""
        nearest = sorted(self._cosines.items(), key=lambda item: (-item[1], item[0]))[:limit]
        missing = sorted(rowid for rowid in also if rowid not in self._cosines)
        parts = [missing[start : start + ROWIDS_PER_REQUEST] for start in range(0, len(missing), ROWIDS_PER_REQUEST)]
        requests = [
            (
                self._header,
                bodies.nearest_body(self._vector, bodies.passages_of(part), bodies.MAX_HITS, bodies.MAX_HITS),
            )
            for part in parts
        ]
        for answer in self._connection.search_all(requests) if requests else ():
            self.add(answer)
        found = dict(nearest)
        return found | {rowid: self._cosines[rowid] for rowid in also if rowid in self._cosines}

    def span(self, rowid: int) -> tuple[int, int] | None:
        """Return the nearest span of a chunk."""
        return self._spans.get(rowid)


def _to_product(score: float) -> float:
    """Return the product of two vectors behind a score, which is never negative."""
    return score - 1 if score >= 1 else 1 - 1 / score
