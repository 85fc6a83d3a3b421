"""List-changed notifications in both protocol eras: listen streams for 2026, open sessions for the handshake."""

from collections.abc import Awaitable, Callable
from typing import Protocol
from weakref import WeakSet

import anyio
import mcp_types as wire
from mcp.server.connection import Connection
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from bedstone.server.context import Context, connection_of

SEND_TIMEOUT_SECONDS = 2
RESOURCE = "resource "  # the address of the resource follows
LISTS: dict[str, ServerEvent] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}
Deliver = Callable[[ServerEvent], Awaitable[None]]


class Relay(Protocol):
    """Tells other servers, which share a store with this one, and hears what they tell."""

    def subscribe(self, topic: str, listener: Callable[[str], Awaitable[None]]) -> None:
        """Call a listener with what other servers publish under a topic."""

    async def publish(self, topic: str, text: str) -> None:
        """Tell the other servers."""


class RelayedBus:
    """A bus whose events reach the clients of all servers. `deliver` gets those of other servers.

    Servers with the same toolsets have the same topic.
    """

    def __init__(self, relay: Relay | None, topic: str, deliver: Deliver) -> None:
        self._local = InMemorySubscriptionBus()
        self._relay = relay
        self._topic = topic
        self.subscribe = self._local.subscribe
        self.publish_here = self._local.publish

        async def hear(text: str) -> None:
            if event := parse_event(text):
                await deliver(event)

        if relay is not None:
            relay.subscribe(topic, hear)

    async def publish(self, event: ServerEvent) -> None:
        """Deliver an event to the listeners of this server, and of the others."""
        await self._local.publish(event)
        if self._relay is not None:
            await self._relay.publish(self._topic, describe_event(event))


def describe_event(event: ServerEvent) -> str:
    """Return an event as text."""
    if isinstance(event, ResourceUpdated):
        return f"{RESOURCE}{event.uri}"
    return next(name for name, known in LISTS.items() if known == event)


def parse_event(text: str) -> ServerEvent | None:
    """Return the event of a text; None for one that only a newer version knows."""
    return ResourceUpdated(text.removeprefix(RESOURCE)) if text.startswith(RESOURCE) else LISTS.get(text)


class ListChanges:
    """Keeps track of open connections and notifies them."""

    def __init__(self, relay: Relay | None = None, topic: str = "") -> None:
        self._bus = RelayedBus(relay, topic, self._hear)
        self._connections: WeakSet[Connection] = WeakSet()
        self.listen = ListenHandler(self._bus)
        self.on_tools_changed_elsewhere: Callable[[], None] = lambda: None

    async def track_connection(self, ctx: Context, _: wire.NotificationParams) -> None:
        """Handle notifications/initialized: notify this connection for as long as it exists."""
        self._connections.add(connection_of(ctx))

    async def tools_changed(self) -> None:
        """Notify every client that the list of tools changed."""
        await self._tell(ToolsListChanged())

    async def prompts_changed(self) -> None:
        """Notify every client that the list of prompts changed."""
        await self._tell(PromptsListChanged())

    async def _tell(self, event: ServerEvent) -> None:
        await self._bus.publish(event)
        await self._notify_sessions(event)

    async def _hear(self, event: ServerEvent) -> None:
        """Pass on what happened on another server."""
        if isinstance(event, ToolsListChanged):
            self.on_tools_changed_elsewhere()
        await self._bus.publish_here(event)
        await self._notify_sessions(event)

    async def _notify_sessions(self, event: ServerEvent) -> None:
        """Send an event to the open sessions of the handshake era; skip those that do not read in time."""
        async with anyio.create_task_group() as tasks:
            for connection in list(self._connections):
                tasks.start_soon(_notify, connection, event)


async def _notify(connection: Connection, event: ServerEvent) -> None:
    with anyio.move_on_after(SEND_TIMEOUT_SECONDS):
        if isinstance(event, ToolsListChanged):
            await connection.send_tool_list_changed()
        elif isinstance(event, PromptsListChanged):
            await connection.send_prompt_list_changed()
