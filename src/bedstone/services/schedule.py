"""Work that a service repeats while a server runs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bedstone.errors import BedstoneError

logger = logging.getLogger(__name__)

FIRST_SECONDS = 1.0  # by then everything that starts with the server is listening


class PeriodicTask:
    """Runs a coroutine soon after the start and then every few minutes; logs what it reports or why it failed."""

    def __init__(self, work: Callable[[], Awaitable[str]], minutes: int, name: str) -> None:
        self._work = work
        self._minutes = minutes
        self._name = name
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; 0 minutes means never."""
        if self._minutes:
            self._task = asyncio.create_task(self._repeat())

    async def stop(self) -> None:
        """Cancel the work and wait until it has ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _repeat(self) -> None:
        await asyncio.sleep(FIRST_SECONDS)
        while True:
            try:
                logger.info("%s", await self._work(), extra={"action": "repeated"})
            except BedstoneError as error:
                logger.warning("%s failed: %s", self._name, error.message, extra={"action": "repeat_failed"})
            except Exception:  # the next run may succeed
                logger.exception("%s failed", self._name, extra={"action": "repeat_failed"})
            await asyncio.sleep(self._minutes * 60)
