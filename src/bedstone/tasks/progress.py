"""How far a running task has come, and whether it must end."""

from collections.abc import Callable
from dataclasses import replace

from bedstone.records import ProgressSnapshot


class Cancelled(BaseException):
    """Raised inside the work when the task is cancelled, or when the process ends."""


class TaskDeferred(Exception):
    """Raised inside the work when it has to wait for another task: it moves to the end of the queue."""


class Progress:
    """The progress of a running task, which never decreases."""

    def __init__(self, on_change: Callable[[], None] = lambda: None, before: ProgressSnapshot | None = None) -> None:
        """Begin at the progress of an interrupted attempt, if there was one."""
        self.snapshot = replace(before, ends_at=None) if before is not None else ProgressSnapshot()
        self.on_cancel: Callable[[], None] | None = None
        self.is_cancelled = False
        self.is_interrupted = False  # by the end of the process; the task runs again
        self._on_change = on_change

    @property
    def is_ending(self) -> bool:
        """Return whether the work must end."""
        return self.is_cancelled or self.is_interrupted

    def update(self, step: str, done: float, total: float, ends_at: float | None = None) -> None:
        """Report the current step and the probable end; raise `Cancelled` if the work must end."""
        self.check()
        self.snapshot = ProgressSnapshot(step, max(done, self.snapshot.share * total), total, ends_at)
        self._on_change()

    def check(self) -> None:
        """Raise `Cancelled` if the work must end."""
        if self.is_ending:
            raise Cancelled

    def cancel(self) -> None:
        """End the work at its next step, or at once if it can."""
        self.is_cancelled = True
        self._end()

    def interrupt(self) -> None:
        """End the work in the same way, but let it run again at the next start."""
        self.is_interrupted = True
        self._end()

    def _end(self) -> None:
        if self.on_cancel is not None:
            self.on_cancel()
