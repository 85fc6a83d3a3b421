"""Entries of reference documentation in reStructuredText: directives that describe one function, class or setting."""

import re
from collections.abc import Sequence

from bedstone.ingest.markdown_writer import escape

CLASSES = {"class", "exception", "struct", "enum", "union"}
CALLABLES = {
    *("function", "method", "classmethod", "staticmethod", "abstractmethod", "coroutinefunction", "coroutinemethod"),
    *("awaitablefunction", "awaitablemethod", "macro"),
}
DECORATORS = {"decorator", "decoratormethod"}
VALUES = {"attribute", "data", "property", "var", "member", "type", "enumerator", "alias", "concept"}
NAMED = {
    *("module", "setting", "confval", "option", "cmdoption", "envvar", "opcode", "pdbcommand", "directive", "role"),
    *("django-admin", "django-admin-option", "templatetag", "templatefilter", "fieldlookup", "command", "describe"),
}
ENTRIES = CLASSES | CALLABLES | DECORATORS | VALUES | NAMED
HTTP_METHODS = {"get", "post", "put", "patch", "delete", "head"}
FIRST_NAME = re.compile(r"^@?[\w.]+")
LAST_NAME = re.compile(r"[\w.:~]+(?=\W*$)")
NOT_IN_NAME = re.compile(r"[`*\\@~]")
MAX_NAME = 200  # characters: the time that LAST_NAME takes grows with their cube


def entry_kind(directive: str) -> str | None:
    """Return the kind of entry that a directive describes, without its domain (`py:class`, `c:function`)."""
    domain, _, kind = directive.rpartition(":")
    if domain.startswith("http") and kind in HTTP_METHODS:
        return f"http:{kind}"
    return kind if kind in ENTRIES else None


def entry_title(kind: str, signature: str) -> str:
    """Return the heading of an entry: its name, without the arguments."""
    if kind.startswith("http:"):
        return f"{kind.removeprefix('http:').upper()} {signature}"
    if kind in NAMED:
        return signature
    before = signature.partition("(")[0].partition(" = ")[0].strip()
    is_typed = " " in before  # C names the type first
    found = LAST_NAME.search(before[-MAX_NAME:]) if is_typed else FIRST_NAME.match(before)
    name = found[0] if found else before
    if kind in CLASSES:
        return f"{kind} {name}"
    return f"{name}()" if kind in CALLABLES else f"@{name.lstrip('@')}" if kind in DECORATORS else name


def write_heading(level: int, text: str, *, is_entry: bool) -> str:
    """Write a heading; closing signs tell entries from sections."""
    marks = "#" * level
    return f"{marks} {text} {marks}" if is_entry else f"{marks} {text}"


def write_entry(level: int, kind: str, signatures: Sequence[str]) -> str:
    """Write an entry as a heading, and its signatures as code."""
    title = entry_title(kind, signatures[0])
    return f"\n{write_heading(level, escape(title), is_entry=True)}\n{write_signatures(signatures, title)}"


def write_signatures(signatures: Sequence[str], title: str = "") -> str:
    """Write signatures as code, without those that the title already has."""
    lines = [f"`{signature}`" if "`" not in signature else escape(signature) for signature in signatures]
    return "".join(f"\n{line}\n" for line, text in zip(lines, signatures, strict=True) if text != title)


def is_same_name(heading: str, signature: str) -> bool:
    """Return whether a heading names the same thing as an entry, such as ``filter()`` and `filter(*args)`."""
    return bool(_key(heading)) and _key(heading) == _key(signature)


def _key(text: str) -> str:
    words = NOT_IN_NAME.sub("", text).partition("(")[0].split()
    return words[0].rpartition(".")[2].strip(",:").casefold() if words else ""
