"""The context of a request."""

from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp_types.version import is_version_at_least

Context = ServerRequestContext[Any, Any]


def is_modern(protocol_version: str | None) -> bool:
    """Return whether a protocol version belongs to the era without handshakes."""
    return protocol_version is not None and is_version_at_least(protocol_version, "2026-07-28")


def connection_of(context: Context) -> Connection:
    """Return the connection of a request, for which the SDK has no public accessor."""
    return context.session._connection  # noqa: SLF001
