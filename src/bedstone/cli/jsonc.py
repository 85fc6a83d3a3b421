"""Edit JSON with comments: set one member and keep every other byte."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SPACE = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
LITERAL = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
MAX_DEPTH = 200
DEFAULT_INDENT = "  "


@dataclass(frozen=True)
class Member:
    """One `"key": value` of an object, by its positions in the text."""

    key: str
    start: int
    value_start: int
    value_end: int


def set_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return a document with the value at a path of keys; missing objects are added. Raises ValueError."""
    if not text.strip("\ufeff \t\r\n"):
        return json.dumps(_nest(path, value), indent=2, ensure_ascii=False) + "\n"
    root = _skip_space(text, 0)
    if _skip_space(text, _skip_value(text, root)) != len(text):
        raise ValueError(f"text after the end of the document, {_place(text, _skip_value(text, root))}")
    at = root
    found: Member | None = None
    for depth, key in enumerate(path):
        if text[at : at + 1] != "{":
            raise ValueError(f"{path[depth - 1]!r} is not an object" if depth else "the document is not an object")
        members, _ = _read_object(text, at)
        found = next((member for member in reversed(members) if member.key == key), None)
        if found is None:
            return _insert(text, at, members, key, _nest(path[depth + 1 :], value))
        at = found.value_start
    return _replace(text, found, value) if found is not None else text


def _nest(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _replace(text: str, member: Member, value: Any) -> str:
    indent = _indent_at(text, member.start)
    printed = _print(text, value, indent, indent[:1] if indent[:1] == "\t" else DEFAULT_INDENT)
    return text[: member.value_start] + printed + text[member.value_end :]


def _insert(text: str, at: int, members: Sequence[Member], key: str, value: Any) -> str:
    """Insert a first member: what follows, trailing commas and comments included, stays as it is."""
    outer = _indent_at(text, at)
    inner = _indent_at(text, members[0].start) if members and _is_first_on_line(text, members[0].start) else ""
    if len(inner) <= len(outer):
        inner = outer + DEFAULT_INDENT
    newline = _newline(text)
    entry = f"{json.dumps(key)}: {_print(text, value, inner, inner[len(outer) :])}"
    is_empty = not members and text[at + 1 :].lstrip().startswith("}")
    end = newline + outer if is_empty else "," if members else ""
    rest = text[at + 1 :].lstrip() if is_empty else text[at + 1 :]
    return f"{text[: at + 1]}{newline}{inner}{entry}{end}{rest}"


def _print(text: str, value: Any, indent: str, step: str) -> str:
    lines = json.dumps(value, indent=step, ensure_ascii=False).split("\n")
    return f"{_newline(text)}{indent}".join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_at(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _is_first_on_line(text: str, position: int) -> bool:
    return not text[text.rfind("\n", 0, position) + 1 : position].strip()


def _read_object(text: str, at: int, depth: int = 0) -> tuple[list[Member], int]:
    """Return the members of the object at a position, and the position after it."""
    members: list[Member] = []
    at = _skip_space(text, at + 1)
    while text[at : at + 1] != "}":
        if not (key := STRING.match(text, at)):
            raise ValueError(f"a key is expected, {_place(text, at)}")
        colon = _skip_space(text, key.end())
        if text[colon : colon + 1] != ":":
            raise ValueError(f"':' is expected, {_place(text, colon)}")
        start = _skip_space(text, colon + 1)
        end = _skip_value(text, start, depth + 1)
        members.append(Member(json.loads(key[0]), key.start(), start, end))
        at = _next_item(text, end, "}")
    return members, at + 1


def _skip_value(text: str, at: int, depth: int = 0) -> int:
    """Return the position after the value at a position."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nested too deeply, {_place(text, at)}")
    if text[at : at + 1] == "{":
        return _read_object(text, at, depth)[1]
    if text[at : at + 1] == "[":
        at = _skip_space(text, at + 1)
        while text[at : at + 1] != "]":
            at = _next_item(text, _skip_value(text, at, depth + 1), "]")
        return at + 1
    if not (literal := STRING.match(text, at) or LITERAL.match(text, at)):
        raise ValueError(f"a value is expected, {_place(text, at)}")
    return literal.end()


def _next_item(text: str, at: int, closing: str) -> int:
    """Return the position of the next item, or of the closing bracket; a trailing comma is fine."""
    at = _skip_space(text, at)
    if text[at : at + 1] == ",":
        return _skip_space(text, at + 1)
    if text[at : at + 1] != closing:
        raise ValueError(f"',' or '{closing}' is expected, {_place(text, at)}")
    return at


def _skip_space(text: str, at: int) -> int:
    match = SPACE.match(text, at)
    assert match is not None  # it matches nothing, too
    return match.end()


def _place(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}"
