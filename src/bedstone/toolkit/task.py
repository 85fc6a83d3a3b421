"""Background work as a protocol sees it: how far a call has come, and what it will have answered."""

from dataclasses import dataclass
from typing import Literal

from bedstone.toolkit.reply import Reply


class Progress:
    """Reports how far a call has come; this one tells nobody."""

    async def __call__(self, done: float, total: float | None = None, message: str | None = None, /) -> None:
        """Say how far."""

    def later(self, token: str) -> "Progress | None":
        """A way to report under a token of ours after the call was answered; None where nobody would hear it."""
        return None


@dataclass(frozen=True)
class TaskView:
    """A call that goes on in the background; `reply` is its answer once it is there. Times are seconds since 1970.

    A tool that explains why it failed has completed; `failed` is for what no reply can carry.
    """

    id: str
    status: Literal["working", "completed", "failed", "cancelled"]
    created: float
    updated: float
    message: str | None = None
    reply: Reply | None = None
