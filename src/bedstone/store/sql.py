"""The SQL of the SQLite engine: how a connection is set up, and conditions on documents."""

import json
import re
import secrets
import sqlite3
from collections.abc import Sequence
from math import isfinite
from typing import Any

from bedstone.store.filters import AttributeBetween, AttributeContains, AttributeHas, AttributeIn, Condition, Order

PRAGMAS = """
PRAGMA synchronous = NORMAL;
PRAGMA foreign_keys = ON;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -16000;
"""

# Items of a JSON text that are among the wanted ones.
WANTED_ITEMS = """
SELECT 1 FROM json_each({items}) AS item, json_each(?) AS wanted WHERE item.value IS wanted.value
AND (item.type IN ('array', 'object')) = (wanted.type IN ('array', 'object'))
"""
PLAIN_WORDS = re.compile(r"[A-Za-z0-9 _.-]+")  # the same in every JSON text
MEMBER_ITEMS = """
coalesce((
    SELECT CASE type WHEN 'array' THEN value WHEN 'object' THEN json_array(json(value)) ELSE json_array(value) END
    FROM json_each({data}) WHERE key = ?
), '[null]')
"""


def add_functions(connection: sqlite3.Connection) -> None:
    """Add the functions that conditions and orders use."""
    connection.create_function("fold_case", 1, _fold_case, deterministic=True)  # SQLite's own knows ASCII only
    connection.create_function("repair_json", 1, _repair_json, deterministic=True)


def _fold_case(text: str | None) -> str | None:
    return None if text is None else text.lower()


def _repair_json(text: str | None) -> str:
    """Return JSON that SQLite can parse: null for a missing text, and for the NaN that Python writes."""
    return json.dumps(json.loads(text or "null", parse_constant=lambda _: None))


def record_change(connection: sqlite3.Connection, kind: str, came: tuple[int, int], gone: tuple[int, int]) -> None:
    """Add a row to the list of changes: which chunks appeared, which disappeared."""
    connection.execute(
        "INSERT INTO change(stamp, kind, first, last, gone_first, gone_last) VALUES (?, ?, ?, ?, ?, ?)",
        (secrets.randbits(62), kind, *came, *gone),
    )


def attribute(name: str) -> str:
    """Return the expression for an attribute of a document."""
    assert name.isidentifier(), name
    return f"json_extract(metadata, '$.{name}')"


def readable_json(value: str) -> str:
    """Return the expression for a JSON text that SQLite can parse."""
    return f"iif(json_valid({value}), {value}, repair_json({value}))"


def where_clause(conditions: Sequence[Condition], *, in_order: bool = False) -> tuple[str, list[Any]]:
    """Return the clause for documents that meet every condition, and its parameters.

    A list `in_order` walks the documents, mostly along an index of its order, and stops after a page; everything else
    looks up the documents in the indexes of its conditions.
    """
    pairs = [_condition(item, in_order=in_order) for item in conditions]
    text = " AND ".join(text for text, _ in pairs)
    return f"WHERE {text}" if pairs else "", [value for _, values in pairs for value in values]


def order_clause(order: Order | None) -> str:
    """Return the clause that sorts documents."""
    if order is None:
        return "ORDER BY id"
    value = attribute(order.name)
    key = f"CAST({value} AS REAL)" if order.is_number else f"fold_case(coalesce({value}, ''))"
    return f"ORDER BY {key} {'DESC' if order.descending else 'ASC'}, id"


def _condition(condition: Condition, *, in_order: bool) -> tuple[str, list[Any]]:
    value = attribute(condition.name)
    match condition:
        case AttributeIn(_, values):
            return f"{'+' * in_order}{value} IN (SELECT value FROM json_each(?))", [json.dumps(values)]
        case AttributeBetween(_, low, high):
            return f"CAST({value} AS REAL) >= ? AND CAST({value} AS REAL) < ?", [low, high]
        case AttributeContains(_, text):
            return _contains(value, text, in_order=in_order)
        case AttributeHas(_, values, key):
            return _has_whole(value, values) if key is None else _has_member(value, key, values)


def _contains(value: str, text: str, *, in_order: bool) -> tuple[str, list[Any]]:
    """Return the condition for a part of a text."""
    if in_order:
        return f"instr(fold_case(coalesce({value}, '')), ?)", [text.lower()]
    found = f"SELECT text FROM (SELECT DISTINCT {value} AS text FROM document) WHERE instr(fold_case(text), ?)"
    missing = "" if text else f" OR {value} IS NULL"
    return f"({value} IN ({found}){missing})", [text.lower()]


def _has_whole(value: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the condition for a list; there are few different ones, so each is parsed once, not in each document."""
    items = WANTED_ITEMS.format(items="repair_json(text)")
    found = f"SELECT text FROM (SELECT DISTINCT {value} AS text FROM document) WHERE EXISTS ({items})"
    missing = f" OR {value} IS NULL" if None in values else ""
    return f"({value} IN ({found}){missing})", [_encode_values(values)]


def _has_member(value: str, key: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the condition for the member of an object."""
    items = WANTED_ITEMS.format(items=MEMBER_ITEMS.format(data=readable_json(value)))
    quick, words = _quick_check(values)
    return f"{quick}EXISTS ({items})", [*words, _bindable(key), _encode_values(values)]


def _encode_values(values: Sequence[Any]) -> str:
    """Return values as JSON, without NaN and infinity, which no JSON has."""
    finite = [value for value in values if not isinstance(value, float) or isfinite(value)]
    return _bindable(json.dumps(finite, ensure_ascii=False))


def _bindable(text: str) -> str:
    """Return a text without lone surrogates, which SQLite cannot take."""
    return text.encode(errors="replace").decode()


def _quick_check(values: Sequence[Any]) -> tuple[str, list[str]]:
    """Return a condition that skips most documents without parsing them, where the values are plain words."""
    if len(values) == 1 and isinstance(values[0], str) and PLAIN_WORDS.fullmatch(values[0]):
        return "instr(metadata, ?) AND ", [values[0]]
    return "", []
