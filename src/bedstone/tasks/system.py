"""What background work asks of the operating system."""

import ctypes
import os
import threading
from contextlib import suppress

NICENESS = 10


def lower_priority() -> None:
    """Let other threads of the process run first, where the system has priorities for threads."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def trim_memory() -> None:
    """Return freed memory to the system, which glibc would keep."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
