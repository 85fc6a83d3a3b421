"""The documents of an export as its manifest describes them: every field is checked before it is stored."""

import json
import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, get_args

from bedstone.ingest.detection import find_format
from bedstone.ingest.extraction import Page
from bedstone.ingest.left_out import LeftOut
from bedstone.records import Document
from bedstone.services.knowledge.archive_reader import RefusedEntry
from bedstone.services.knowledge.collections import NAME
from bedstone.services.knowledge.records import FileDocument, Method

DOCUMENT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DIGEST = re.compile(r"[0-9a-f]{64}")
MAX_TITLE = 10_000  # characters
MAX_NAME = 1_000
MAX_SOURCE = 10_000
MAX_JSON = 2**20
MAX_DESCRIPTION = 1_000
MAX_NUMBER = 2**53
MAX_PAGES = 1_000_000
LAST_TIME = 253_402_300_799  # the end of the year 9999
REQUIRED = ("filename", "format", "size", "added")
OCR_FACTS = ("ocr_pages", "ocr_confidence")
MAX_DEPTH = 50  # of lists and objects in the user's metadata
MAX_CONTEXTS = 1_000


def check_document(record: Any) -> FileDocument:
    """Return a document, or raise `RefusedEntry` that names the field."""
    if not isinstance(record, dict):
        raise RefusedEntry("a document is not an object")
    known = {name: _check(name, CHECKS[name], record.get(name)) for name in ("id", "title", "digest")}
    metadata = record.get("metadata")
    if not isinstance(metadata, dict):
        raise RefusedEntry(f"document {known['id']}: metadata is not an object")
    try:
        facts = _check_facts(metadata)
    except RefusedEntry as error:
        raise RefusedEntry(f"document {known['id']}: {error}") from None
    return FileDocument.from_stored(Document(**known, attributes=facts | {"status": "processing"}))


def _check_facts(metadata: Mapping[str, Any]) -> dict[str, str]:
    facts = {name: _check(name, check, metadata[name]) for name, check in FACTS.items() if name in metadata}
    required = [*REQUIRED, *(OCR_FACTS if not facts.keys().isdisjoint(OCR_FACTS) else ())]
    if missing := [name for name in required if name not in facts]:
        raise RefusedEntry(f"{missing[0]} is missing")
    return facts


def check_collections(contexts: Any) -> Mapping[str, str]:
    """Return the descriptions of collections by name."""
    if not isinstance(contexts, dict) or len(contexts) > MAX_CONTEXTS:
        raise RefusedEntry(f"contexts is not an object with up to {MAX_CONTEXTS:,} members")
    for name, description in contexts.items():
        _check("the name of a context", _context, name)
        _check(f"the description of context {name}", _text(MAX_DESCRIPTION), description)
    return contexts


def check_pages(data: bytes) -> list[Page]:
    """Return the pages of a text."""
    try:
        rows = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RefusedEntry(f"the text is not valid JSON ({error})") from None
    if not isinstance(rows, list) or len(rows) > MAX_PAGES:
        raise RefusedEntry("the text is not a list of pages")
    return [_check_page(row, len(data)) for row in rows]


def _check_page(row: Any, limit: int) -> Page:
    try:
        number, text = row
    except (TypeError, ValueError):
        raise RefusedEntry("a page is not a pair of number and text") from None
    if number is not None and not _is_page_number(number):
        raise RefusedEntry(f"the page number {str(number)[:20]!r} is not a positive integer")
    return Page(_check("the text of a page", _text(limit), text), number)


def _is_page_number(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 < number <= MAX_PAGES


def _check(name: str, check: "Check", value: Any) -> str:
    try:
        return check(value)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise RefusedEntry(f"{name}: {error}") from None


Check = Callable[[Any], str]


def _text(limit: int) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError("not a text")
        if len(value) > limit:
            raise ValueError(f"longer than {limit:,} characters")
        if "\0" in value:
            raise ValueError("it has a null character")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("it has half of a surrogate pair") from None
        return value

    return check


def _pattern(pattern: re.Pattern[str], what: str) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(f"{str(value)[:80]!r} is not {what}")
        return value

    return check


def _number(low: float, high: float, kind: Callable[[str], float] = float, *, or_empty: bool = False) -> Check:
    def check(value: Any) -> str:
        text = str(value)[:80]
        if or_empty and not text:
            return text
        number = kind(text)
        if not isfinite(number) or not low <= number <= high:
            raise ValueError(f"{text} is not between {low} and {high}")
        return text

    return check


def _json(is_valid: Callable[[Any], object], what: str) -> Check:
    def check(value: Any) -> str:
        content = json.loads(_text(MAX_JSON)(value))
        if not is_valid(content) or _depth(content) > MAX_DEPTH:
            raise ValueError(f"not {what}")
        return _text(MAX_JSON)(json.dumps(content, ensure_ascii=False, allow_nan=False))

    return check


def _depth(content: Any) -> int:
    items = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    return 1 + max(map(_depth, items), default=0)


def _filename(value: Any) -> str:
    name = _text(MAX_NAME)(value)
    if not name or "/" in name:
        raise ValueError(f"{name[:80]!r} is not the name of a file")
    return name


def _format(value: Any) -> str:
    if not isinstance(value, str) or find_format(value) is None:
        raise ValueError(f"{str(value)[:80]!r} is not a known format")
    return value


def _method(value: Any) -> str:
    if value not in get_args(Method):
        raise ValueError(f"{str(value)[:80]!r} is not one of {', '.join(get_args(Method))}")
    return str(value)


def _flag(value: Any) -> str:
    if value != str(True):
        raise ValueError(f"{str(value)[:80]!r} is not {True}")
    return str(value)


def _is_texts(content: Any) -> bool:
    return isinstance(content, list) and all(isinstance(item, str) for item in content)


def _is_names(content: Any) -> bool:
    return _is_texts(content) and all(NAME.fullmatch(name) for name in content)


def _is_properties(content: Any) -> bool:
    return isinstance(content, dict) and _is_texts(list(content.values()))


def _is_left_out(content: Any) -> bool:
    found = LeftOut.from_dict(content)
    return all(count >= 0 for count in found.counts.values()) and _is_texts([item.text for item in found.items])


def _is_object(content: Any) -> bool:
    return isinstance(content, dict)


_context = _pattern(NAME, "1 to 64 letters, digits, _ or -")
CHECKS: Mapping[str, Check] = {
    "id": _pattern(DOCUMENT_ID, "the id of a document"),
    "title": _text(MAX_TITLE),
    "digest": _pattern(DIGEST, "a SHA-256 digest"),
}
FACTS: Mapping[str, Check] = {
    "filename": _filename,
    "source": _text(MAX_SOURCE),
    "format": _format,
    "size": _number(0, MAX_NUMBER, int),
    "added": _number(0, LAST_TIME),
    "method": _method,
    "pages": _number(0, MAX_PAGES, int, or_empty=True),
    "user": _json(_is_object, "an object"),
    "facts": _json(_is_properties, "an object with texts"),
    "warnings": _json(_is_texts, "a list of texts"),
    "ocr_pages": _number(0, MAX_PAGES, int),
    "ocr_confidence": _number(0, 1),
    "ocr_forced": _flag,
    "contexts": _json(_is_names, "a list of names"),
    "other_sources": _json(_is_texts, "a list of paths"),
    "submitted": _number(0, LAST_TIME),
    "left_out": _json(_is_left_out, "a list of what was left out"),
}
