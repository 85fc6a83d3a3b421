"""The digests by which files are recognized."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import IO

COPY_BYTES = 2**20  # that are read at once


def hash_file(path: Path) -> str:
    """Return the digest of a file."""
    digest = sha256()
    with path.open("rb") as file:
        while part := file.read(COPY_BYTES):
            digest.update(part)
    return digest.hexdigest()


def copy_hashed(content: IO[bytes], target: IO[bytes], check_size: Callable[[int], None]) -> tuple[int, str]:
    """Copy a file, and return its size and digest; `check_size` gets the bytes so far."""
    digest, size = sha256(), 0
    while part := content.read(COPY_BYTES):
        size += len(part)
        check_size(size)
        digest.update(part)
        target.write(part)
    return size, digest.hexdigest()
