"""Background work that outlives its process."""

from bedstone.tasks.runner import Progress, TaskRunner, Work

__all__ = ["Progress", "TaskRunner", "Work"]
