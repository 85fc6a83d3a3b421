"""Let files survive a power failure."""

import os
from errno import EINVAL, ENOTSUP
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Let the names of a folder survive a power failure, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (EINVAL, ENOTSUP):  # of file systems in a network
                raise
        finally:
            os.close(descriptor)
