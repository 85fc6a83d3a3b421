"""Lists of documents: filtered and sorted by the store, with the files that are in process or failed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bedstone.services.knowledge.collections import in_collection
from bedstone.services.knowledge.records import FileDocument
from bedstone.services.knowledge.unfinished import unfinished_documents
from bedstone.store.engine import Store
from bedstone.store.filters import AttributeContains, AttributeIn, Condition, Order, matches, sort_documents

SortKey = Literal["date_added", "filename", "size"]
FilterKey = Literal["format", "status", "method"]
FILTER_KEYS: tuple[FilterKey, ...] = ("format", "status", "method")
# What a list is sorted by: the attribute, and whether it is a number.
SORT_ATTRIBUTES: Mapping[str, tuple[str, bool]] = {
    "date_added": ("added", True),
    "filename": ("filename", False),
    "size": ("size", True),
}


@dataclass(frozen=True)
class ListQuery:
    """Which documents to list, and in which order; ties are in the order of the ids, so that pages are stable."""

    sort_by: SortKey = "date_added"
    descending: bool = True
    offset: int = 0
    limit: int = 100
    collection: str | None = None
    filename: str = ""  # a part of it; case does not matter
    values: Mapping[FilterKey, str] = field(default_factory=dict)  # several of one key are separated by commas

    def conditions(self) -> list[Condition]:
        """Return the conditions that documents of the list meet."""
        found: list[Condition] = [AttributeIn(name, tuple(value.split(","))) for name, value in self.values.items()]
        if self.filename:
            found.append(AttributeContains("filename", self.filename))
        if self.collection is not None:
            found.append(in_collection(self.collection))
        return found


@dataclass(frozen=True)
class DocumentCounts:
    """How many documents the list has, and how many of them are still being read or could not be read."""

    total: int
    pending: int
    failed: int

    @property
    def completed_count(self) -> int:
        """Return how many can be searched by keywords and meaning."""
        return self.total - self.pending - self.failed


@dataclass(frozen=True)
class DocumentPage:
    """A page of a list, and how many documents the whole list has."""

    documents: list[FileDocument]
    total: int


def list_documents(store: Store, query: ListQuery, unfinished: Sequence[FileDocument]) -> DocumentPage:
    """Return a page of documents, with the unfinished files: those that are in process or failed."""
    conditions, end = query.conditions(), query.offset + query.limit
    order = Order(*SORT_ATTRIBUTES[query.sort_by], descending=query.descending)
    others = [item for item in (file.to_stored() for file in unfinished) if matches(item, conditions)]
    total = store.count_documents(conditions) + len(others)
    # The others move a stored document down by at most their number: no earlier one can be on the page.
    start = max(0, query.offset - len(others))
    stored = store.documents(conditions, order=order, offset=start, limit=end - start)
    page = sort_documents([*stored, *others], order)[query.offset - start : end - start] if others else stored
    return DocumentPage([FileDocument.from_stored(item) for item in page], total)


def count_documents(store: Store, unfinished: Sequence[FileDocument]) -> DocumentCounts:
    """Return how many documents the whole list has, with the unfinished files."""
    failed = sum(item.status == "failed" for item in unfinished)
    pending = len(unfinished) - failed + store.count_documents([AttributeIn("status", ("processing",))])
    return DocumentCounts(store.count_documents() + len(unfinished), pending, failed)


def count_values(store: Store) -> dict[FilterKey, Counter[str]]:
    """Return how many documents have each value that lists are filtered by."""
    rows = Counter(store.count_attributes(FILTER_KEYS))
    unfinished = [item.to_stored() for item in unfinished_documents(store)]
    rows.update(tuple(item.attributes.get(key, "") for key in FILTER_KEYS) for item in unfinished)
    counts: dict[FilterKey, Counter[str]] = {key: Counter() for key in FILTER_KEYS}
    for values, count in rows.items():
        for key, value in zip(FILTER_KEYS, values, strict=True):
            if value:
                counts[key][value] += count
    return counts
