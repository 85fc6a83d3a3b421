"""List-changed notices in both protocol eras: listen streams for 2026, live sessions for the handshake."""

from typing import Any
from weakref import WeakSet

from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

Context = ServerRequestContext[Any, Any]


class ListChanges:
    """Remembers who is listening, and tells them."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._connections: WeakSet[Connection] = WeakSet()
        self.listen = ListenHandler(self._bus)

    async def remember(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware: note each connection that finishes the handshake; it is forgotten when it is gone."""
        if ctx.method == "notifications/initialized":
            # The SDK offers no public way from a request to its connection.
            self._connections.add(ctx.session._connection)  # noqa: SLF001
        return await call_next(ctx)

    async def tools_changed(self) -> None:
        """Tell every listener that the list of tools is another."""
        await self._bus.publish(ToolsListChanged())
        for connection in list(self._connections):
            await connection.send_tool_list_changed()
