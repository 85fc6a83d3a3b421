"""Conditions on the attributes of documents, and the order of a list; each store evaluates them where the data is."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from bedstone.records import Document


@dataclass(frozen=True, slots=True)
class AttributeIn:
    """The attribute has one of these values."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttributeBetween:
    """The attribute is a number, at least `low` and below `high`."""

    name: str
    low: float = -inf
    high: float = inf


@dataclass(frozen=True, slots=True)
class AttributeContains:
    """The attribute contains a text; case does not matter."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class AttributeHas:
    """The attribute is JSON, and one of its items is one of these values; what is missing counts as null.

    With a key, the attribute is an object, and the items are those of that member: a list, or a single value.
    Objects and lists among the items are compared by their text.
    """

    name: str
    values: tuple[Any, ...]
    key: str | None = None


Condition = AttributeIn | AttributeBetween | AttributeContains | AttributeHas


@dataclass(frozen=True, slots=True)
class Order:
    """By an attribute, as a number or as text in lower case; ties in the order of the ids."""

    name: str
    is_number: bool = False
    descending: bool = False


def matches(document: Document, conditions: Iterable[Condition]) -> bool:
    """Return whether a document meets every condition."""
    return all(_meets(document.attributes.get(item.name), item) for item in conditions)


def sort_documents(documents: Iterable[Document], order: Order) -> list[Document]:
    """Sort documents as a store does."""

    def key(document: Document) -> Any:
        value = document.attributes.get(order.name, "")
        return float(value or 0) if order.is_number else value.lower()

    return sorted(sorted(documents, key=lambda item: item.id), key=key, reverse=order.descending)


def _meets(value: str | None, condition: Condition) -> bool:
    match condition:
        case AttributeIn(_, values):
            return value in values
        case AttributeBetween(_, low, high):
            return value is not None and low <= float(value) < high
        case AttributeContains(_, text):
            return text.lower() in (value or "").lower()
        case AttributeHas(_, values, key):
            wanted = [_comparable(item) for item in values]
            return any(_comparable(item) in wanted for item in _items(value, key))


def _items(value: str | None, key: str | None) -> Sequence[Any]:
    data = json.loads(value or "null")
    member = data if key is None else (data or {}).get(key)
    return member if isinstance(member, list) else [member]


def _comparable(item: Any) -> Any:
    return json.dumps([item], ensure_ascii=False) if isinstance(item, list | dict) else item
