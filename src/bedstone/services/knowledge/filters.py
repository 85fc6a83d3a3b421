"""The filters of a search: formats, when a document was added, and the user's metadata."""

import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, date, datetime, timedelta
from math import inf, nextafter
from typing import Any

from bedstone.errors import InvalidInput
from bedstone.ingest.detection import find_format, format_of, supported_formats
from bedstone.services.knowledge.collections import in_collection
from bedstone.services.knowledge.unfinished import unfinished_documents
from bedstone.store.engine import Store
from bedstone.store.filters import AttributeBetween, AttributeHas, AttributeIn, Condition

FORMAT = "format"
DATE_RANGE = "date_range"
ENDS = ("start", "end")
MAX_NAMES_LISTED = 30
# RFC 3339, and without seconds or a time zone, which is UTC then.
MOMENT = re.compile(r"\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d(:\d\d(?P<fraction>\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)?)?", re.ASCII)
DAY_LENGTH = len("2026-01-31")


def parse_filters(filters: Mapping[str, Any], store: Store) -> dict[str, Condition]:
    """Return a condition for each filter that has a value; raise `InvalidInput` for one that cannot match anything."""
    found: dict[str, Condition] = {}
    for key, wanted in filters.items():
        if wanted is None:
            continue
        if key == FORMAT:
            found[key] = AttributeIn("format", _formats(wanted, store))
        elif key == DATE_RANGE:
            if (between := _date_range(wanted)) is not None:
                found[key] = between
        else:
            found[key] = AttributeHas("user", tuple(_alternatives(key, wanted)), key)
    return found


def matching_documents(parsed: Mapping[str, Condition], collection: str | None, store: Store) -> list[str]:
    """Return the documents that meet every filter; raise if a key is in no document's metadata."""
    conditions = [*([in_collection(collection)] if collection is not None else []), *parsed.values()]
    found = store.document_ids(conditions)
    keys = [key for key in parsed if key not in (FORMAT, DATE_RANGE)]
    # Documents that match have all the keys, except those that may be missing.
    if keys and (not found or any(_matches_missing(parsed[key]) for key in keys)):
        _check_keys(keys, store)
    return found


def parse_format(name: str, list_stored: Callable[[], Collection[str]]) -> str:
    """Return the format that a name, a suffix or another spelling stands for."""
    plain = name.strip().lower().lstrip(".")
    declaration = find_format(plain)
    found = declaration.name if declaration is not None else format_of(f"file.{plain}")
    if found is None and plain in list_stored():  # the package that read it is not installed any more
        found = plain
    if found is None:
        known = ", ".join(item.name for item in supported_formats())
        raise _invalid(f"Unknown format {name!r}. Formats: {known}")
    return found


def stored_formats(store: Store) -> set[str]:
    """Return the formats of all documents."""
    return {name for (name,) in store.count_attributes(["format"])}


def _formats(wanted: Any, store: Store) -> tuple[str, ...]:
    names = _alternatives(FORMAT, wanted)
    if not all(isinstance(name, str) for name in names):
        raise _invalid("format must be a format such as pdf, or a list of formats")
    return tuple(dict.fromkeys(parse_format(name, lambda: stored_formats(store)) for name in names))


def _alternatives(key: str, wanted: Any) -> list[Any]:
    """Return a list of several values, or of one."""
    values = list(wanted) if isinstance(wanted, list) else [wanted]
    if not values:
        raise _invalid(f"{key} must have at least one value")
    return values


def _date_range(wanted: Any) -> AttributeBetween | None:
    """Return the condition for documents added between two moments; both ends belong to it, and are optional."""
    if not isinstance(wanted, dict) or set(wanted) - set(ENDS):
        raise _invalid('date_range must be an object with start and end: {"start": "2026-01-01", "end": "2026-12-31"}')
    start, end = (wanted.get(name) for name in ENDS)
    low = _first_moment("start", start) if start is not None else -inf
    high = _moment_after("end", end) if end is not None else inf
    if low >= high:
        raise _invalid(f"date_range begins after its end: start {start}, end {end}")
    return AttributeBetween("added", low, high) if start is not None or end is not None else None


def _first_moment(name: str, text: Any) -> float:
    return _parse_moment(name, text).timestamp()


def _moment_after(name: str, text: Any) -> float:
    """Return the end of the day, minute or second that a text names: times are shown without fractions."""
    moment = _parse_moment(name, text)
    if len(text) == DAY_LENGTH:
        return (moment + timedelta(days=1)).timestamp() if moment.date() < date.max else inf
    match = MOMENT.fullmatch(text)
    if match is not None and match["fraction"]:
        return nextafter(moment.timestamp(), inf)
    return moment.timestamp() + (1 if re.search(r"\d\d:\d\d:\d\d", text) else 60)


def _parse_moment(name: str, text: Any) -> datetime:
    moment = _read_moment(text) if isinstance(text, str) and MOMENT.fullmatch(text) else None
    if moment is None:
        example = "a date or a time such as 2026-01-31 or 2026-01-31T09:30:00Z"
        raise _invalid(f"{name} of date_range must be {example}, not {text!r}")
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _read_moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError:
        return None


def _matches_missing(condition: Condition) -> bool:
    return isinstance(condition, AttributeHas) and None in condition.values


def _check_keys(keys: Collection[str], store: Store) -> None:
    unfinished = {key for item in unfinished_documents(store) for key in item.metadata}
    known = sorted({*store.member_names("user"), *unfinished})
    unknown = [key for key in keys if key not in known]
    if unknown:
        names = [FORMAT, DATE_RANGE, *known]
        more = f" and {len(names) - MAX_NAMES_LISTED} more" if len(names) > MAX_NAMES_LISTED else ""
        listed = ", ".join(names[:MAX_NAMES_LISTED]) + more
        raise _invalid(f"Unknown filter {unknown[0]!r}. Filters: {listed}", known_filters=names[:MAX_NAMES_LISTED])


def _invalid(problem: str, **details: Any) -> InvalidInput:
    return InvalidInput(f"Invalid value for filters: {problem}", parameter="filters", **details)
