"""Progress of a call: on the caller's token until the call ends, under a task's id afterwards."""

import anyio
from mcp.server.connection import Connection

from bedstone.server.context import Context, connection_of, is_modern
from bedstone.toolkit import Progress

SEND_TIMEOUT_SECONDS = 2


class CallProgress(Progress):
    """Reports to a caller that sent a progress token."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def __call__(self, done: float, total: float | None = None, message: str | None = None, /) -> None:
        """Report progress."""
        await self._context.session.report_progress(done, total, message)

    def later(self, token: str) -> Progress | None:
        """Return a reporter only for callers with a progress token on a channel that stays open."""
        wants_progress = (self._context.meta or {}).get("progress_token") is not None
        stays_open = not is_modern(self._context.protocol_version)
        return LaterProgress(connection_of(self._context), token) if wants_progress and stays_open else None


class LaterProgress(Progress):
    """Reports on a connection's standing channel."""

    def __init__(self, connection: Connection, token: str) -> None:
        self._connection = connection
        self._token = token

    async def __call__(self, done: float, total: float | None = None, message: str | None = None, /) -> None:
        """Report progress, unless the client does not read in time."""
        params = {"progressToken": self._token, "progress": done, "total": total, "message": message}
        with anyio.move_on_after(SEND_TIMEOUT_SECONDS):
            await self._connection.notify(
                "notifications/progress", {name: value for name, value in params.items() if value is not None}
            )
