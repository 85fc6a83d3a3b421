"""TaskHandler: what a task runner calls to do the work."""

from collections.abc import Mapping
from typing import Any, Protocol

from bedstone.records import Task
from bedstone.tasks.progress import Progress


class TaskHandler(Protocol):
    """Does the work of tasks, in threads of the process that owns them. Only `run` has to do something."""

    def run(self, task: Task, progress: Progress) -> Mapping[str, Any]:
        """Do the work and return its result.

        Raise a `BedstoneError` to fail, `TaskDeferred` to wait for another task, `MachineFailure` to run again later
        because the machine fails; errors of the store, a full disk and the like count as that. `progress.update` raises
        `Cancelled` when the work must end. A task whose process ended runs again from the start.
        """

    def clean_up(self, task: Task) -> None:
        """Remove what a task that failed or was cancelled left behind."""
        return

    def on_start(self) -> None:
        """Prepare: this process owns the tasks from now on."""
        return

    def on_tick(self) -> None:
        """Apply what other processes wrote; called several times a second after a change, and after the last task."""
        return
