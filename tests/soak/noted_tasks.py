"""`bedstone work` that writes down when it begins and ends each task: `noted_tasks.py work ...`, file in TASK_NOTES.

A line is appended at once, so what a killed process noted is there. The clock is that of all processes of a machine.
"""

import os
import time
from collections.abc import Mapping
from typing import Any

from bedstone.cli.main import main
from bedstone.records import Task
from bedstone.services.knowledge.add_file import AddFileHandler
from bedstone.tasks import Progress

if __name__ == "__main__":
    notes = os.open(os.environ["TASK_NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    run = AddFileHandler.run

    def note(event: str, task: Task) -> None:
        os.write(notes, f"{event} {task.id} {os.getpid()} {time.monotonic()}\n".encode())

    def noted(self: AddFileHandler, task: Task, progress: Progress) -> Mapping[str, Any]:
        note("begin", task)
        try:
            return run(self, task, progress)
        finally:
            note("end", task)

    AddFileHandler.run = noted  # type: ignore[method-assign]
    main()
