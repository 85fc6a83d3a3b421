"""Conditions on documents and their order as SQL, and what is stored of the attributes to evaluate them."""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from bedstone.store.filters import AttributeBetween, AttributeContains, AttributeHas, AttributeIn, Condition, Order
from bedstone.store.postgres.adapting import escape

TEXT_COLUMNS = ("status", "format", "method", "filename", "source", "contexts")
NUMBER_COLUMNS = ("added", "size")
NULL = "n"  # the key of null among items


def derive_columns(attributes: Mapping[str, str]) -> tuple[str, str, str]:
    """Return what conditions are evaluated on: the attributes, those that differ in lower case, and the JSON items."""
    lowered = {name: text.lower() for name, text in attributes.items() if text.lower() != text}
    items = {escape(name): found for name, text in attributes.items() if (found := _items(text)) is not None}
    texts = ({escape(name): escape(text) for name, text in values.items()} for values in (attributes, lowered))
    columns, lower = map(json.dumps, texts)
    return columns, lower, json.dumps(items)


def _items(text: str) -> dict[str, Any] | None:
    """Return the items of an attribute that is JSON, and those of its members."""
    try:
        data = json.loads(text or "null")
    except ValueError:
        return None
    found: dict[str, Any] = {"items": [item_key(item) for item in _as_list(data)]}
    if isinstance(data, dict):
        members = {escape(name): [item_key(item) for item in _as_list(value)] for name, value in data.items()}
        found["members"] = members
    return found


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def item_key(item: Any) -> str:
    """Return a text that is the same for items that are equal: true is 1, and 2020.0 is 2020."""
    match item:
        case None:
            return NULL
        case str():
            return f"s{escape(item)}"
        case int():
            return f"#{int(item)}"
        case float():
            if not isfinite(item):
                return NULL
            return f"#{int(item)}" if item.is_integer() else f"#{item!r}"
        case _:
            return f"t{escape(json.dumps(item, ensure_ascii=False))}"


def where_clause(conditions: Sequence[Condition]) -> tuple[str, list[Any]]:
    """Return the clause for documents that meet every condition, and its parameters."""
    pairs = [_condition(item) for item in conditions]
    text = " AND ".join(f"({text})" for text, _ in pairs)
    return f"WHERE {text}" if pairs else "", [value for _, values in pairs for value in values]


def order_clause(order: Order | None) -> str:
    """Return the clause that sorts documents."""
    if order is None:
        return "ORDER BY id"
    key = number(order.name) if order.is_number else f"coalesce({_lower_case(order.name)}, '') COLLATE \"C\""
    return f"ORDER BY {key} {'DESC NULLS LAST' if order.descending else 'ASC NULLS FIRST'}, id"


def attribute(name: str) -> str:
    """Return the expression for an attribute of a document."""
    assert name.isidentifier(), name
    return name if name in TEXT_COLUMNS else f"(attributes ->> '{name}')"


def number(name: str) -> str:
    """Return the expression for an attribute that is a number."""
    assert name.isidentifier(), name
    return name if name in NUMBER_COLUMNS else f"as_number(attributes ->> '{name}')"


def _lower_case(name: str) -> str:
    return f"coalesce(lowered ->> '{name}', {attribute(name)})"


def _condition(condition: Condition) -> tuple[str, list[Any]]:
    match condition:
        case AttributeIn(name, values):
            return f"{attribute(name)} = ANY(%s::text[])", [list(values)]
        case AttributeBetween(name, low, high):
            return f"{number(name)} >= %s::float8 AND {number(name)} < %s::float8", [low, high]
        case AttributeContains(name, text):
            return f"strpos(coalesce({_lower_case(name)}, ''), %s::text) > 0", [text.lower()]
        case AttributeHas(name, values, key):
            return _has(name, values, key)


def _has(name: str, values: Sequence[Any], key: str | None) -> tuple[str, list[Any]]:
    """Return the condition for an item; null is also what is missing."""
    finite = [value for value in values if not isinstance(value, float) or isfinite(value)]
    keys = list(dict.fromkeys(map(item_key, finite)))
    path = [name, "items"] if key is None else [name, "members", key]
    tests = ["items @> %s::jsonb"] * len(keys)
    parameters: list[Any] = [_containment([*path[:2], *map(escape, path[2:])], item) for item in keys]
    if NULL in keys:
        tests.append("items #> %s::text[] IS NULL")
        parameters.append(path)
    return " OR ".join(tests) or "false", parameters


def _containment(path: Sequence[str], item: str) -> str:
    found: Any = [item]
    for name in reversed(path):
        found = {name: found}
    return json.dumps(found)
