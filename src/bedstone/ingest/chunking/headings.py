"""Bound the headings that are stored with every chunk; the text of a chunk has them in full."""

from collections.abc import Sequence

from bedstone.ingest.left_out import ELLIPSIS

MAX_HEADING_CHARS = 300
MAX_TRAIL_CHARS = 400  # together, in chunks by size: some are no longer than that


def short_heading(text: str, limit: int = MAX_HEADING_CHARS) -> str:
    """Return a heading, or its beginning in one line if it has more than `limit` characters."""
    if len(text) <= limit:
        return text
    line = " ".join(text[: 2 * limit].split())
    return f"{line[: limit - 1].rstrip()}{ELLIPSIS}"


def short_trail(headings: Sequence[str]) -> tuple[str, ...]:
    """Return headings that together have at most `MAX_TRAIL_CHARS` characters; longer ones get an equal share."""
    trail = tuple(short_heading(text) for text in headings)
    if sum(map(len, trail)) <= MAX_TRAIL_CHARS:
        return trail
    return tuple(short_heading(text, MAX_TRAIL_CHARS // len(trail)) for text in trail)
