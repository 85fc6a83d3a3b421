"""Progress of a call: on the caller's token while it waits, under a task's name afterwards."""

import anyio
from mcp.server.connection import Connection

from bedstone.server.context import Context, is_modern
from bedstone.toolkit import Progress

PATIENCE_SECONDS = 2


class CallProgress(Progress):
    """Reports to whoever called, if they asked for it."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def __call__(self, done: float, total: float | None = None, message: str | None = None, /) -> None:
        """Say how far."""
        await self._context.session.report_progress(done, total, message)

    def later(self, token: str) -> Progress | None:
        """Only where they asked, and where a channel stays open: the handshake eras."""
        asked = (self._context.meta or {}).get("progress_token") is not None
        # The SDK offers no public way from a request to its connection.
        connection = self._context.session._connection  # noqa: SLF001
        stays_open = not is_modern(self._context.protocol_version)
        return LaterProgress(connection, token) if asked and stays_open else None


class LaterProgress(Progress):
    """Reports on a connection's standing channel."""

    def __init__(self, connection: Connection, token: str) -> None:
        self._connection = connection
        self._token = token

    async def __call__(self, done: float, total: float | None = None, message: str | None = None, /) -> None:
        """Say how far; nobody waits for a client that does not read."""
        said = {"progressToken": self._token, "progress": done, "total": total, "message": message}
        with anyio.move_on_after(PATIENCE_SECONDS):
            await self._connection.notify(
                "notifications/progress", {name: value for name, value in said.items() if value is not None}
            )
