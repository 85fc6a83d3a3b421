"""How pages write times, sizes, numbers, and texts with words marked."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from bedstone.search.hits import Snippet
from bedstone.services.service import format_count, parse_time

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR
# From the first limit that is not reached: the unit, and how many seconds it has.
UNITS = ((HOUR, "minute", MINUTE), (DAY, "hour", HOUR), (14 * DAY, "day", DAY), (60 * DAY, "week", 7 * DAY))
MONTH = 30 * DAY
YEAR = 365 * DAY
Moment = datetime | float | str | None


def ago(moment: Moment) -> Markup:
    """Return a time as people say it, with the exact one on hover."""
    at = _parse(moment)
    if at is None:
        return Markup("")
    exact = f"{at.day} {at:%B %Y, %H:%M:%S} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        f"{at:%Y-%m-%dT%H:%M:%SZ}", exact, describe_age(time.time() - at.timestamp())
    )


def describe_age(seconds: float) -> str:
    """Return how long ago something was; `in 5 minutes` for what is still to come."""
    if seconds <= -MINUTE:
        return f"in {describe_length(-seconds)}"
    return "just now" if seconds < MINUTE else f"{describe_length(seconds)} ago"


def describe_length(seconds: float) -> str:
    """Return a length of time in its largest unit."""
    if seconds < MINUTE:
        return format_count(round(seconds), "second")
    for limit, unit, size in UNITS:
        if seconds < limit:
            return format_count(int(seconds // size), unit)
    return (
        format_count(int(seconds // MONTH), "month") if seconds < YEAR else format_count(int(seconds // YEAR), "year")
    )


def describe_bytes(size: int) -> str:
    """Return a size in its largest unit: 835 B, 2.6 kB, 18.4 MB."""
    amount = float(size)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:  # noqa: PLR2004 - a kilobyte
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"  # noqa: PLR2004
        amount /= 1000
    return f"{amount:.1f} GB"


def _parse(moment: Moment) -> datetime | None:
    if isinstance(moment, str):
        moment = parse_time(moment)
    if isinstance(moment, int | float):
        moment = datetime.fromtimestamp(moment, UTC)
    if moment is None:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def highlight(snippet: Snippet) -> Markup:
    """Return a snippet with the words of the query marked and everything else escaped."""
    marked, last = Markup(""), 0
    for start, end in snippet.highlights:
        marked += escape(snippet.text[last:start]) + Markup("<mark>{}</mark>").format(snippet.text[start:end])
        last = end
    return marked + escape(snippet.text[last:])


FILTERS: Mapping[str, Callable[..., Any]] = {
    "ago": ago,
    "bytes": describe_bytes,
    "counted": format_count,
    "length_of_time": describe_length,
    "number": lambda value: f"{value:,}",
}
