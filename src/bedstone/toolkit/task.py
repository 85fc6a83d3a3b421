"""Background work as a protocol sees it: the progress of a call, and its reply."""

from dataclasses import dataclass
from typing import Literal

from bedstone.toolkit.reply import Reply


class Progress:
    """Reports the progress of a call; this base class discards it."""

    async def __call__(self, done: float, total: float | None = None, message: str | None = None, /) -> None:
        """Report progress."""

    def later(self, token: str) -> "Progress | None":
        """Return a reporter for the time after the call was answered, or None if the client cannot receive it."""
        return None


@dataclass(frozen=True)
class TaskView:
    """A call that runs in the background, and its reply once completed. Times are seconds since 1970.

    A tool that replies with an error has completed; `failed` means that it cannot reply.
    """

    id: str
    status: Literal["working", "completed", "failed", "cancelled"]
    created: float
    updated: float
    message: str | None = None
    reply: Reply | None = None
