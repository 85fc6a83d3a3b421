"""The context of a request, whatever the SDK attaches to it."""

from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types.version import is_version_at_least

Context = ServerRequestContext[Any, Any]


def is_modern(protocol_version: str | None) -> bool:
    """Whether a version is of the era without handshakes."""
    return protocol_version is not None and is_version_at_least(protocol_version, "2026-07-28")
