"""The context of a request, whatever the SDK attaches to it."""

from typing import Any

from mcp.server.context import ServerRequestContext

Context = ServerRequestContext[Any, Any]
