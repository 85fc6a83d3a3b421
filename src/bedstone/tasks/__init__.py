"""Background work that outlives its process."""

from bedstone.tasks.handler import TaskHandler
from bedstone.tasks.progress import Cancelled, Progress, TaskDeferred
from bedstone.tasks.runner import TaskRunner

__all__ = ["Cancelled", "Progress", "TaskDeferred", "TaskHandler", "TaskRunner"]
