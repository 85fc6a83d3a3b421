"""Opaque cursors over lists that fit in memory."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import TypeVar

import mcp_types as wire
from mcp.shared.exceptions import MCPError

Item = TypeVar("Item")

PAGE_SIZE = 500  # above any list of tools, since many clients read only the first page


def page(items: Sequence[Item], cursor: str | None) -> tuple[Sequence[Item], str | None]:
    """Return the page a cursor points at, and the cursor of the next page, if any."""
    start = _offset(cursor) if cursor is not None else 0
    end = start + PAGE_SIZE
    return items[start:end], _cursor(end) if end < len(items) else None


def _cursor(offset: int) -> str:
    return urlsafe_b64encode(str(offset).encode()).decode().rstrip("=")


def _offset(cursor: str) -> int:
    try:
        offset = int(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError:
        offset = 0
    if offset <= 0:
        raise MCPError(wire.INVALID_PARAMS, "Invalid cursor: use the nextCursor of the page before")
    return offset
