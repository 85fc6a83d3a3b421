"""Blobs: what every place for files does, and what its callers can rely on.

A key is a path of names: `3f1c.../content.pdf`. What comes before a slash is a folder.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from bedstone.errors import InvalidInput, Unavailable

MAX_KEY_BYTES = 900  # S3 takes 1,024 with the prefix


class BlobsUnavailable(Unavailable):
    """The place for files does not answer, or refuses access; the message says why."""

    is_away = False  # whether no request was answered at all


class BlobDamaged(Unavailable):
    """What a place has, or returned, is not what was stored there."""


@dataclass(frozen=True)
class Blob:
    """A stored file. `digest` is the SHA-256 of its content, None where the place does not keep it."""

    key: str
    size: int
    modified: float
    digest: str | None = None


class Blobs(Protocol):
    """Files by key. A file appears when it is complete, and replaces the one with its key.

    Methods block; several threads may call them. They raise `FileNotFoundError` for a key without a file,
    `BlobsUnavailable` while the place does not answer, and another `OSError` if the disk of this machine fails.
    """

    @property
    def place(self) -> str:
        """Return where the files are, for messages: a folder, or an address without credentials."""

    @property
    def is_shared(self) -> bool:
        """Return whether other machines use the place, so that no lock of this one protects what they write."""

    def put(
        self,
        key: str,
        content: IO[bytes],
        check_size: Callable[[int], None] = lambda _: None,
        *,
        keeps_copy: bool = True,
    ) -> Blob:
        """Store a file of any size; it survives a power failure. `check_size` gets the bytes so far.

        With `keeps_copy`, a place elsewhere keeps a copy on this machine, which will need it next.
        """

    def write(self, key: str, data: bytes, *, durable: bool = True) -> None:
        """Store a small file; one that is not durable may be lost if the power fails."""

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        """Return a file, or the part of it from `start`; less than `size` at its end."""

    def stream(self, key: str) -> Iterator[bytes]:
        """Iterate over the content of a file as it is stored now, never as a cache has it."""

    def find(self, key: str) -> Blob | None:
        """Return what is known of a file; None if it does not exist."""

    def local(self, key: str, digest: str | None = None) -> Path:
        """Return a file of this machine with the content, for readers that need one; it must not be changed.

        It is checked against its digest, the given one if there is. It stays for an hour at least.
        """

    def list(self, prefix: str = "") -> Iterator[Blob]:
        """Iterate over all files whose keys begin with a prefix, by key; digests may be missing."""

    def folders(self, folder: str = "") -> Iterator[str]:
        """Iterate over the names of the folders in a folder."""

    def has_folder(self, folder: str) -> bool:
        """Return whether a folder exists; one without files need not."""

    def delete(self, key: str) -> None:
        """Delete a file; ignore a missing one."""

    def delete_folder(self, folder: str) -> None:
        """Delete all files of a folder, and what is kept for them on this machine; ignore a missing folder."""

    def move_folder(self, folder: str, target: str) -> None:
        """Move all files of a folder. If that is interrupted, either folder is complete."""

    def scratch(self, key: str) -> Path:
        """Return the path of a file of this machine for unfinished work, which may be lost."""

    def check_writable(self) -> None:
        """Raise an error if nothing can be stored now; undo what is stored to find out."""

    def close(self) -> None:
        """Close all connections."""


class BlobsFactory(Protocol):
    """What a place for files registers under its name: usually its class."""

    def open(self, address: str, cache: Path) -> Blobs:
        """Open the place at an address that begins with the registered name and a colon; `cache` is for its copies."""


def check_key(key: str) -> str:
    """Return a key; raise `InvalidInput` if one of its names leads elsewhere, or cannot be stored everywhere."""
    names = key.split("/")
    if "\0" in key or not all(name and name not in (".", "..") for name in names):
        raise InvalidInput(f"{key!r} is not a valid key of a file.")
    if len(key.encode(errors="replace")) > MAX_KEY_BYTES:
        raise InvalidInput(f"The key of a file is longer than {MAX_KEY_BYTES} bytes: {key[:80]}...")
    return key
