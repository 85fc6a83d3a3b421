"""Limits on connections: how many there are, how long a client may take, and which one is closed for a newcomer."""

import logging
import socket
from asyncio import TimerHandle
from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from ipaddress import ip_address
from typing import Any, Protocol

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from bedstone.settings import LimitSettings

logger = logging.getLogger(__name__)

MAX_ACCEPTED = 128  # connections at once, before the oldest are closed
MAX_QUEUED = 1024  # connections that the system holds until they are accepted
TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Stage(IntEnum):
    """What a connection does, in the order in which connections are closed for newcomers."""

    WAITING = 0  # for the headers of a request
    READING = 1  # the body of a request
    STREAMING = 2  # events, or a WebSocket
    CALLING = 3  # a request in progress, which is never closed


class Client(Protocol):
    """One connection."""

    address: str

    def drop(self) -> None:
        """Close the connection."""


class Connections:
    """All connections of a server, each stage in the order of the last activity."""

    def __init__(self, limits: LimitSettings) -> None:
        self.limits = limits
        self._max = min(limits.max_connections, max(_max_open_files() // 2, 8))
        self._stages: dict[Stage, dict[Client, None]] = {stage: {} for stage in Stage}
        self._stage_of: dict[Client, Stage] = {}
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._stage_of)

    def add(self, client: Client, stage: Stage) -> None:
        """Register a newcomer, and close another connection if there are too many; the newcomer if none can go."""
        self._stage_of[client] = stage
        self._stages[stage][client] = None
        self._counts[client.address] += 1
        if self._counts[client.address] > self.limits.max_connections_per_address and not is_local(client.address):
            self._drop(self._oldest(client.address, client) or client)
        if len(self) > self._max:
            self._drop(self._oldest(None, client) or client)

    def move(self, client: Client, stage: Stage) -> None:
        """Record the activity of a connection."""
        known = self._stage_of.get(client)
        if known is not None:
            del self._stages[known][client]
            self._stages[stage][client] = None
            self._stage_of[client] = stage

    def remove(self, client: Client) -> None:
        """Forget a closed connection."""
        stage = self._stage_of.pop(client, None)
        if stage is not None:
            del self._stages[stage][client]
            self._counts[client.address] -= 1
            if not self._counts[client.address]:
                del self._counts[client.address]

    def _oldest(self, address: str | None, newcomer: Client) -> Client | None:
        """Return the connection that can go: of one address, or of all."""
        for stage in (Stage.WAITING, Stage.READING, Stage.STREAMING):
            clients = (item for item in self._stages[stage] if item is not newcomer)
            if address is not None:
                clients = (item for item in clients if item.address == address)
            elif stage == Stage.STREAMING:  # of the address with the most connections: streams have no time limit
                return max(clients, key=lambda item: self._counts[item.address], default=None)
            if (found := next(clients, None)) is not None:
                return found
        return None

    def _drop(self, client: Client) -> None:
        logger.debug("Closed a connection of %s to make room", client.address)
        self.remove(client)
        client.drop()


class Deadline:
    """One timer of a connection."""

    def __init__(self, call_later: Callable[..., TimerHandle], on_expiry: Callable[[], None]) -> None:
        self._call_later = call_later
        self._on_expiry = on_expiry
        self._timer: TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        """Whether the timer runs."""
        return self._timer is not None

    def start(self, seconds: float) -> None:
        """Start the timer, or start it again."""
        self.stop()
        self._timer = self._call_later(seconds, self._expire)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        self._on_expiry()


class LimitedHttp(H11Protocol):
    """An HTTP connection with time limits for the client."""

    def __init__(self, *arguments: Any, connections: Connections, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.address = ""
        self._all = connections
        self._limits = connections.limits
        self._incoming = Deadline(self.loop.call_later, self._end_incoming)
        self._outgoing = Deadline(self.loop.call_later, self._abort)
        self._has_received = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._incoming.start(self._limits.header_seconds)
        self._all.add(self, Stage.WAITING)

    def connection_lost(self, exc: Exception | None) -> None:
        self._incoming.stop()
        self._outgoing.stop()
        self._all.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._has_received = True
        super().data_received(data)
        self._update()

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._incoming.stop()
        self._all.remove(self)
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        self._has_received = False
        self._incoming.stop()
        super().on_response_complete()
        self._update()

    def pause_writing(self) -> None:
        self._outgoing.start(self._limits.stall_seconds)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._outgoing.stop()
        super().resume_writing()

    def drop(self) -> None:
        """Close the connection for another one."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and not self.transport.get_write_buffer_size():
            self.transport.close()
        else:
            self._abort()

    def _update(self) -> None:
        """Move to the stage of the request, and start the time limit of the stage."""
        cycle = self.cycle
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        if cycle is None or cycle.response_complete:
            if self._has_received and not self._incoming.is_set:  # the whole header counts, not each part of it
                self._incoming.start(self._limits.header_seconds)
            self._all.move(self, Stage.WAITING)
        elif cycle.more_body:
            self._incoming.start(self._limits.stall_seconds)
            self._all.move(self, Stage.READING)
        else:
            self._incoming.stop()
            self._all.move(self, Stage.STREAMING if self.scope["method"] == "GET" else Stage.CALLING)

    def _end_incoming(self) -> None:
        if self.flow.read_paused:  # the client waits for us
            self._incoming.start(self._limits.stall_seconds)
            return
        if self._has_received and (self.cycle is None or self.cycle.response_complete):
            self.transport.write(TIMED_OUT)
            self.transport.close()
        else:
            self._abort()

    def _abort(self) -> None:
        self.transport.abort()


class LimitedWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket that can be closed for newcomers, or because its client does not read."""

    def __init__(self, *arguments: Any, connections: Connections, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.address = ""
        self._all = connections
        self._outgoing = Deadline(self.loop.call_later, self._abort)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._all.add(self, Stage.STREAMING)

    def connection_lost(self, exc: Exception | None) -> None:
        self._outgoing.stop()
        self._all.remove(self)
        super().connection_lost(exc)

    def handle_text(self, event: Frame) -> None:
        self._all.move(self, Stage.STREAMING)
        super().handle_text(event)

    def pause_writing(self) -> None:
        self._outgoing.start(self._all.limits.stall_seconds)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._outgoing.stop()
        super().resume_writing()

    def drop(self) -> None:
        """Close the connection for another one."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.shutdown()

    def _abort(self) -> None:
        self.transport.abort()


class LimitedServer(uvicorn.Server):
    """A server that accepts few connections at once, so that old ones can be closed between, but lets many queue."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(MAX_QUEUED)  # asyncio has used the other number for both


def protocol_options(limits: LimitSettings) -> dict[str, Any]:
    """Return the options of uvicorn that apply the limits to all connections of one server."""
    connections = Connections(limits)
    return {
        "http": partial(LimitedHttp, connections=connections),
        "ws": partial(LimitedWebSocket, connections=connections),
        "timeout_keep_alive": limits.keep_alive_seconds,
        "backlog": MAX_ACCEPTED,
    }


def is_local(address: str) -> bool:
    """Return whether a client is on this machine, where it may be a reverse proxy for many others."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _max_open_files() -> int:
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return 2**20
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
