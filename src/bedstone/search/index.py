"""SearchIndex: what every search index does, and what callers can rely on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from bedstone.errors import InvalidInput, Unavailable
from bedstone.search.filters import Filter
from bedstone.search.fusion import Coverage
from bedstone.search.hits import Ranking
from bedstone.store.engine import Store

if TYPE_CHECKING:  # keyword search alone never loads numpy
    from pathlib import Path

    from bedstone.search.embedder import Embedder, Vectors

OnProgress = Callable[[int], None]
Access = Literal["write", "read", "memory"]


class IndexVersionMismatch(InvalidInput):
    """An index was built by another version and must be rebuilt."""

    code = "outdated_index"


class IndexDamaged(Unavailable):
    """The files of an index are damaged; the message says which. It is set aside and rebuilt from the store."""


class IndexUnwritable(Unavailable):
    """Changes cannot be written to an index now, for example to a full disk; it answers from what it has."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each signal counts; 1 is the fitted weight. `phrase_slop` is measured in words."""

    proximity: float = 1.0
    semantic: float = 1.0
    phrase_slop: int = 0
    max_versions: int | None = None  # of a section that keyword search proposes, for pages that exist in many
    in_stretches: bool = True  # whether a stretch of a long chunk counts like a chunk


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """Text, a vector, or both.

    `semantic_weight` is the weight of the cosine in the fused score where both take part. Each side proposes `depth`
    candidates; the best `limit` of them are returned. `coverage` tells how much of the query chunks have, which decides
    how far each side is trusted.
    """

    text: str = ""
    vector: "Vectors | None" = None
    semantic_weight: float = 0.5
    filter: Filter | None = None
    limit: int = 10
    depth: int = 100
    weights: Weights = field(default_factory=Weights)
    coverage: Coverage | None = None


class SearchIndex(Protocol):
    """Derived from a store: follows its changes, and can be deleted and rebuilt at any time.

    Methods block; several threads may search while another one catches up. Filters are evaluated inside the index.
    Opening, catching up and searching raise `IndexDamaged` if files of the index are damaged.
    """

    @property
    def applied_seq(self) -> int:
        """Sequence number of the last change that is searchable."""

    @property
    def has_vectors(self) -> bool:
        """Whether the index holds any vectors."""

    @property
    def chunk_count(self) -> int:
        """Number of chunks in the index."""

    def catch_up(self, on_progress: OnProgress | None = None, *, in_batches: bool = False) -> None:
        """Apply the changes of the store; `on_progress` receives sequence numbers.

        With `in_batches`, what was applied so far is found while the rest is applied.
        """

    def verify(self) -> None:
        """Read every file, and raise `IndexDamaged` if one is damaged or the index does not fit the store."""

    def problem(self) -> str | None:
        """Return what is wrong with a part of the index that is repaired while it answers."""

    def search(self, query: IndexQuery) -> Ranking:
        """Return the best candidates of both sides in order; ties in the order of their rowids."""

    def is_quotation(self, text: str) -> bool:
        """Return whether a query is a heading, an identifier or a stretch of text: keyword search finds it best."""

    def count_facets(self, text: str | None, filter: Filter | None) -> Mapping[str, Mapping[str, int]]:
        """Count the chunks with each value of each facet, among those that match a term and pass the filter."""

    def document_frequency(self, term: str) -> int:
        """Return how many chunks have a term."""

    def suggest_terms(self, word: str) -> list[str]:
        """Return indexed terms with a similar spelling, the nearest first."""

    def close(self) -> None:
        """Save what is unsaved and release files."""


class IndexFactory(Protocol):
    """What a search index registers under its name: usually its class."""

    def open(
        self, store: Store, folder: "Path | None", embedder: "Embedder | None", access: Access = "write"
    ) -> SearchIndex:
        """Return the index of a store, kept in a folder; without an embedder it holds no vectors.

        With access "read", another process writes it; opening fails until that process has built a usable one. With
        "memory", the index is built in this process and nothing is written.
        """
