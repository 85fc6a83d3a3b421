"""Tasks as people follow them: how many there are in each state, and those that finished."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bedstone.records import Task, TaskStatus
from bedstone.services.knowledge.records import FileDocument
from bedstone.store.engine import Store

FINISHED: frozenset[TaskStatus] = frozenset({"completed", "failed", "cancelled"})
FAILED: frozenset[TaskStatus] = frozenset({"failed"})


@dataclass(frozen=True)
class TaskCounts:
    """How many tasks are running, queued and finished, and how many failed and were not dismissed."""

    running: int
    queued: int
    finished: int
    failed: int


class TaskHistory:
    """The tasks of a store; each list and count costs about the same with ten tasks and with ten thousand."""

    def __init__(self, store: Store, find: Callable[[str], Task | None]) -> None:
        """`find` returns a task with its current progress."""
        self._store = store
        self._find = find

    def counts(self) -> TaskCounts:
        """Return how many tasks there are in each state."""
        return TaskCounts(
            self._store.count_tasks({"running"}),
            self._store.count_tasks({"queued"}),
            self._store.count_tasks(FINISHED),
            self._store.count_tasks(FAILED, dismissed=False),
        )

    def active(self, limit: int) -> list[Task]:
        """Return the tasks that are running with their progress, then those that are queued, the oldest first."""
        stored = [*self._store.tasks({"running"}, limit=limit), *self._store.tasks({"queued"}, limit=limit)][:limit]
        current = (self._find(task.id) if task.status == "running" else task for task in stored)
        return [task for task in current if task is not None and task.finished_at is None]

    def list_finished(self, offset: int, limit: int, *, failed_only: bool = False) -> list[Task]:
        """Return finished tasks, the last to finish first; on request those that failed and were not dismissed."""
        statuses = FAILED if failed_only else FINISHED
        return self._store.finished_tasks(statuses, dismissed=not failed_only, offset=offset, limit=limit)

    def documents(self, tasks: Sequence[Task]) -> dict[str, FileDocument]:
        """Return the documents that tasks added or should have added, by task; those that are gone are missing."""
        found = {}
        for task in tasks:
            document_id = task.result["document_id"] if task.result is not None else task.payload["document_id"]
            if (document := self._store.document(document_id)) is not None:
                found[task.id] = FileDocument.from_stored(document)
        return found
