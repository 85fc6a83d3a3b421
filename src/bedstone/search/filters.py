"""Filters on the facets of chunks."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class OneOf:
    """The facet has one of these values."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """The chunk does not have the facet."""

    key: str


@dataclass(frozen=True, slots=True)
class AllOf:
    filters: "tuple[Filter, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    filters: "tuple[Filter, ...]"


Filter = OneOf | Missing | AllOf | AnyOf


def matches(filter: Filter, facets: Mapping[str, str]) -> bool:
    """Return whether a chunk with these facets passes a filter."""
    match filter:
        case OneOf(key, values):
            return facets.get(key) in _to_set(values)
        case Missing(key):
            return key not in facets
        case AllOf(filters):
            return all(matches(item, facets) for item in filters)
        case AnyOf(filters):
            return any(matches(item, facets) for item in filters)


@lru_cache(maxsize=8)
def _to_set(values: tuple[str, ...]) -> frozenset[str]:
    """Return the values as a set: a filter can name thousands of documents, and is evaluated for each of them."""
    return frozenset(values)
