"""Limits on MCP sessions over HTTP: a newcomer replaces the session that was idle for the longest time."""

import logging
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bedstone.settings import LimitSettings
from bedstone.transports.connections import is_local

logger = logging.getLogger(__name__)

SESSION_ID = "mcp-session-id"
NOT_FOUND = 404


@dataclass
class _Session:
    app: ASGIApp  # that serves it
    address: str
    used: float = field(default_factory=time.monotonic)
    calls: int = 0
    streams: int = 0


class SessionLimits:
    """The sessions of all servers, in the order of their last use."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._opening: Counter[str] = Counter()

    async def open(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> bool:
        """Serve the request that opens a session; return False if all sessions are busy."""
        address = scope["client"][0] if scope.get("client") else ""
        if not await self._make_room(address):
            return False
        self._opening[address] += 1

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start" and (name := Headers(scope=message).get(SESSION_ID)):
                self._sessions.setdefault(name, _Session(app, address))
            await send(message)

        try:
            await app(scope, receive, watch)
        finally:
            self._opening[address] -= 1
            if not self._opening[address]:
                del self._opening[address]
        return True

    async def serve(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request in a session, or one that needs none."""
        name = Headers(scope=scope).get(SESSION_ID, "")

        async def watch(message: Message) -> None:
            if message.get("status") == NOT_FOUND:
                self._sessions.pop(name, None)
            await send(message)

        async with self._using(name, is_stream=scope["method"] == "GET"):
            await app(scope, receive, watch)
        if scope["method"] == "DELETE":
            self._sessions.pop(name, None)

    @asynccontextmanager
    async def _using(self, name: str, *, is_stream: bool) -> AsyncIterator[None]:
        session = self._sessions.get(name)
        if session is None:
            yield
            return
        session.streams += is_stream
        session.calls += not is_stream
        try:
            yield
        finally:
            session.streams -= is_stream
            session.calls -= not is_stream
            session.used = time.monotonic()
            if name in self._sessions:
                self._sessions.move_to_end(name)

    async def _make_room(self, address: str) -> bool:
        self._forget_expired()
        if not is_local(address):
            own = sum(session.address == address for session in self._sessions.values()) + self._opening[address]
            if own >= self._limits.max_sessions_per_address and not await self._end_oldest(address):
                return False
        total = len(self._sessions) + self._opening.total()
        return total < self._limits.max_sessions or await self._end_oldest(None)

    def _forget_expired(self) -> None:
        """Forget sessions that the SDK has ended."""
        oldest = time.monotonic() - self._limits.session_idle_seconds
        while self._sessions:
            name, session = next(iter(self._sessions.items()))
            if session.used > oldest or session.calls or session.streams:
                return
            del self._sessions[name]

    async def _end_oldest(self, address: str | None) -> bool:
        """End an idle session; or else one that only listens, whose client opens a new one when it needs it."""
        candidates = [
            (name, session)
            for name, session in self._sessions.items()
            if not session.calls and address in (None, session.address)
        ]
        if not candidates:
            return False
        name, session = min(candidates, key=lambda item: item[1].streams > 0)
        del self._sessions[name]
        logger.info("Ended an idle session to make room", extra={"action": "session_ended"})
        await _delete(session.app, name)
        return True


async def _delete(app: ASGIApp, name: str) -> None:
    """End a session as its client would."""
    headers = [(SESSION_ID.encode(), name.encode()), (b"accept", b"application/json, text/event-stream")]
    scope = {"type": "http", "method": "DELETE", "path": "/mcp", "query_string": b"", "headers": headers}

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: Message) -> None:
        return

    await app(scope, receive, send)
