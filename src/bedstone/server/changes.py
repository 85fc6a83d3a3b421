"""List-changed notifications in both protocol eras: listen streams for 2026, open sessions for the handshake."""

from collections.abc import Awaitable, Callable
from weakref import WeakSet

import anyio
import mcp_types as wire
from mcp.server.connection import Connection
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ServerEvent,
    ToolsListChanged,
)

from bedstone.server.context import Context, connection_of

SEND_TIMEOUT_SECONDS = 2
Send = Callable[[Connection], Awaitable[None]]


class ListChanges:
    """Keeps track of open connections and notifies them."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._connections: WeakSet[Connection] = WeakSet()
        self.listen = ListenHandler(self._bus)

    async def track_connection(self, ctx: Context, _: wire.NotificationParams) -> None:
        """Handle notifications/initialized: notify this connection for as long as it exists."""
        self._connections.add(connection_of(ctx))

    async def tools_changed(self) -> None:
        """Notify every client that the list of tools changed."""
        await self._notify_all(ToolsListChanged(), Connection.send_tool_list_changed)

    async def prompts_changed(self) -> None:
        """Notify every client that the list of prompts changed."""
        await self._notify_all(PromptsListChanged(), Connection.send_prompt_list_changed)

    async def _notify_all(self, event: ServerEvent, send: Send) -> None:
        """Publish an event to listen streams and send it to open sessions; skip those that do not read in time."""
        await self._bus.publish(event)
        async with anyio.create_task_group() as tasks:
            for connection in list(self._connections):
                tasks.start_soon(_notify, connection, send)


async def _notify(connection: Connection, send: Send) -> None:
    with anyio.move_on_after(SEND_TIMEOUT_SECONDS):
        await send(connection)
