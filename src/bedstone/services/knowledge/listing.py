"""Documents of a knowledge base as people ask for them: filtered, in order, with what was said of them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from bedstone.records import Document


def passes(document: Document, filters: Mapping[str, Any]) -> bool:
    """Format, date added, and whatever the user said of it."""
    for key, wanted in filters.items():
        if key == "format":
            allowed = {str(item).lower() for item in (wanted if isinstance(wanted, list) else [wanted])}
            if document.metadata["format"] not in allowed:
                return False
        elif key == "date_range":
            day = datetime.fromtimestamp(float(document.metadata["added"]), UTC).date()
            if not _day(wanted.get("start"), date.min) <= day <= _day(wanted.get("end"), date.max):
                return False
        elif not _has(json.loads(document.metadata["user"]).get(key), wanted):
            return False
    return True


def _day(text: str | None, otherwise: date) -> date:
    return date.fromisoformat(text[:10]) if text else otherwise


def _has(value: Any, wanted: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    return any(item in values for item in (wanted if isinstance(wanted, list) else [wanted]))


def iso(seconds: float) -> str:
    """A time as agents see it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def user_metadata(document: Document) -> dict[str, Any]:
    """What was said of a document when it was added."""
    data: dict[str, Any] = json.loads(document.metadata["user"])
    return data


def ordered(documents: Sequence[Document], by: str, *, descending: bool) -> Iterator[Document]:
    """Documents by date, name or size; ties by id, so that pages are stable."""
    keys: dict[str, Callable[[Document], Any]] = {
        "date_added": lambda item: float(item.metadata["added"]),
        "filename": lambda item: item.metadata["filename"].lower(),
        "size": lambda item: int(item.metadata["size"]),
    }
    stable = sorted(documents, key=lambda item: item.id)
    yield from sorted(stable, key=keys[by], reverse=descending)
