"""Background work that outlives its process."""

from bedstone.store.locks import Ownership
from bedstone.tasks.runner import Cancelled, Duties, Postponed, Progress, TaskRunner, Work

__all__ = ["Cancelled", "Duties", "Ownership", "Postponed", "Progress", "TaskRunner", "Work"]
