"""Background work that outlives its process."""

from bedstone.tasks.handler import TaskHandler
from bedstone.tasks.progress import Cancelled, Progress, TaskDeferred
from bedstone.tasks.retrying import MachineFailure
from bedstone.tasks.runner import INTERRUPTED, TaskRunner

__all__ = ["INTERRUPTED", "Cancelled", "MachineFailure", "Progress", "TaskDeferred", "TaskHandler", "TaskRunner"]
