"""Which failures are the machine's and not the task's, and when the task runs again."""

from bedstone.errors import BedstoneError, find_machine_error
from bedstone.records import TaskRetry
from bedstone.store.blobs import BlobsUnavailable
from bedstone.store.engine import StoreUnavailable

FIRST_WAIT_SECONDS = 1.0
MAX_WAIT_SECONDS = 60.0


class MachineFailure(Exception):
    """Raised inside the work when the machine fails, not the task: it runs again later.

    With `is_suspect`, the task may be the cause after all, so the attempt is counted.
    """

    def __init__(self, reason: str, *, is_suspect: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_suspect = is_suspect


def machine_failure(error: Exception) -> MachineFailure | None:
    """Return what is wrong with the machine, or None if the task itself failed."""
    if isinstance(error, MachineFailure):
        return error
    if isinstance(error, StoreUnavailable):
        return MachineFailure(f"The store does not answer: {error.message}")
    if isinstance(error, BlobsUnavailable):
        return MachineFailure(error.message)
    if isinstance(error, BedstoneError):
        return None
    if isinstance(error, MemoryError):
        return MachineFailure("Out of memory")
    reason = find_machine_error(error)
    return MachineFailure(reason) if reason is not None else None


def next_attempt(reason: str, before: TaskRetry | None, now: float) -> TaskRetry:
    """Return when to run a task again: the wait doubles with each failure in a row, up to a limit."""
    count = before.count + 1 if before is not None else 1
    return TaskRetry(reason, count, now + wait_seconds(count))


def wait_seconds(count: int) -> float:
    """Return how long to wait after a number of failures in a row."""
    return float(min(MAX_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** min(count - 1, 16)))
