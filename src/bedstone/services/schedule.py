"""Work a toolset repeats while it is open."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from bedstone.errors import BedstoneError

logger = logging.getLogger(__name__)

FIRST_SECONDS = 1.0  # whatever starts with us listens by then


@asynccontextmanager
async def repeated(work: Callable[[], Awaitable[str]], minutes: int, what: str) -> AsyncIterator[None]:
    """Do some work at once and every so many minutes; the log hears what it says, or why it failed. 0 is never."""
    task = asyncio.create_task(_repeat(work, minutes, what)) if minutes else None
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            await asyncio.wait([task])


async def _repeat(work: Callable[[], Awaitable[str]], minutes: int, what: str) -> None:
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        try:
            logger.info("%s", await work(), extra={"action": "repeated"})
        except BedstoneError as error:
            logger.warning("%s failed: %s", what, error.message, extra={"action": "repeat_failed"})
        except Exception:  # the next time may be better
            logger.exception("%s failed", what, extra={"action": "repeat_failed"})
        await asyncio.sleep(minutes * 60)
