"""Cursors of lists: how many rows the earlier answers had."""

import base64

from bedstone.errors import InvalidInput


def make_cursor(place: int) -> str:
    """Return the cursor for the rows after a place."""
    return base64.urlsafe_b64encode(f"o{place}".encode()).decode()


def parse_cursor(cursor: str | None) -> int:
    """Return the place that a cursor stands for, 0 without one."""
    if cursor is None:
        return 0
    try:
        text = base64.urlsafe_b64decode(cursor.encode()).decode()
        if text.startswith("o") and text[1:].isdigit():
            return int(text[1:])
    except (ValueError, UnicodeDecodeError):
        pass
    raise InvalidInput("Invalid cursor. Pass the nextCursor of an earlier answer.", parameter="cursor")
