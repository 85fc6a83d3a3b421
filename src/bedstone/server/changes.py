"""List-changed notices in both protocol eras: listen streams for 2026, live sessions for the handshake."""

from weakref import WeakSet

import anyio
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from bedstone.server.context import Context

PATIENCE_SECONDS = 2


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
        """Tell every listener that the list of tools is another; nobody waits for one that does not read."""
        await self._bus.publish(ToolsListChanged())
        async with anyio.create_task_group() as tasks:
            for connection in list(self._connections):
                tasks.start_soon(_tell, connection)


async def _tell(connection: Connection) -> None:
    with anyio.move_on_after(PATIENCE_SECONDS):
        await connection.send_tool_list_changed()
