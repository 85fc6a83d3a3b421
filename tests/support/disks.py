"""A disk that can be full: a small file system in memory."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class SmallDisk:
    """A mounted file system of a few megabytes."""

    folder: Path

    @property
    def _filler(self) -> Path:
        return self.folder / "filler"

    def fill(self, but: int = 0) -> None:
        """Leave a number of bytes free, or none."""
        with self._filler.open("ab", buffering=0) as file:
            for size in (2**20, 2**12, 1):
                with suppress(OSError):
                    while shutil.disk_usage(self.folder).free >= but + size:
                        file.write(bytes(size))

    def free(self) -> None:
        """Give back what was filled."""
        self._filler.unlink()

    def remount(self, mode: str) -> None:
        """Make it read-only ("ro") or writable ("rw")."""
        subprocess.run(["mount", "-o", f"remount,{mode}", self.folder], check=True)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount a small file system; CI can, another machine may skip the test."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
        problem = mounted.stderr if mounted.returncode else None
    except OSError as error:
        problem = str(error)
    if problem is not None:
        if os.environ.get("CI"):
            pytest.fail(f"Cannot mount a small disk: {problem}")
        pytest.skip(f"Cannot mount a small disk: {problem}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
