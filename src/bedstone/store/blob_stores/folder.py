"""Files in a folder of this machine: each key is a path in it."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Self
from uuid import uuid4

from bedstone.permissions import make_private_folder
from bedstone.store.blobs import Blob, BlobsUnavailable, check_key
from bedstone.store.digests import COPY_BYTES, copy_hashed
from bedstone.store.durability import sync_folder

PROBE_BYTES = 2**16
DRAFT = ".tmp"  # the suffix of files that are not complete; their names begin with a dot


class FolderBlobs:
    """A folder; it needs no copies, and its files can be used as they are."""

    def __init__(self, folder: Path, *, is_shared: bool = False) -> None:
        """Use a folder, created if it is missing."""
        self.folder = folder
        self.is_shared = is_shared
        make_private_folder(folder)

    @classmethod
    def open(cls, address: str, cache: Path) -> Self:
        """Use the folder at an address such as `folder:/mnt/team/documents`, which other machines may use too."""
        return cls(Path(address.partition(":")[2]), is_shared=True)

    @property
    def place(self) -> str:
        """Return the folder."""
        return str(self.folder)

    def put(
        self,
        key: str,
        content: IO[bytes],
        check_size: Callable[[int], None] = lambda _: None,
        *,
        keeps_copy: bool = True,
    ) -> Blob:
        """Copy a file; it survives a power failure."""
        target = self._path(key)
        with _replacing(target, durable=True) as copy:
            size, digest = copy_hashed(content, copy, check_size)
        return Blob(key, size, target.stat().st_mtime, digest)

    def write(self, key: str, data: bytes, *, durable: bool = True) -> None:
        """Write a file at once."""
        with _replacing(self._path(key), durable=durable) as copy:
            copy.write(data)

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        """Return a file, or a part of it."""
        with self._path(key).open("rb") as file:
            file.seek(start)
            return file.read(-1 if size is None else size)

    def stream(self, key: str) -> Iterator[bytes]:
        """Iterate over the content of a file."""
        with self._path(key).open("rb") as file:
            while part := file.read(COPY_BYTES):
                yield part

    def find(self, key: str) -> Blob | None:
        """Return the size of a file, and when it was written."""
        path = self._path(key)
        try:
            return _describe(key, path) if not path.is_dir() else None
        except (FileNotFoundError, NotADirectoryError):
            if not self.folder.is_dir():  # a disk that is not mounted, and may be later
                raise BlobsUnavailable(f"The folder {self.folder} does not exist") from None
            return None

    def local(self, key: str, digest: str | None = None) -> Path:
        """Return the file itself."""
        path = self._path(key)
        path.stat()
        return path

    def list(self, prefix: str = "") -> Iterator[Blob]:
        """Iterate over the files whose keys begin with a prefix."""
        folder = prefix.rpartition("/")[0]
        for key in self._walk(f"{folder}/" if folder else ""):
            path = self.folder / key
            is_draft = path.suffix == DRAFT and path.name.startswith(".")
            if key.startswith(prefix) and not is_draft:
                try:
                    yield _describe(key, path)
                except FileNotFoundError:  # deleted meanwhile
                    continue

    def _walk(self, folder: str) -> Iterator[str]:
        """Iterate over all keys in a folder, by key; the names of one folder at each level are in memory."""
        try:
            with os.scandir(self.folder / folder) as entries:
                found = sorted(
                    f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False) or entry.is_file()
                )
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in found:
            if name.endswith("/"):
                yield from self._walk(f"{folder}{name}")
            else:
                yield f"{folder}{name}"

    def folders(self, folder: str = "") -> Iterator[str]:
        """Iterate over the names of the folders in a folder."""
        try:
            with os.scandir(self.folder / folder) as entries:
                yield from sorted(entry.name for entry in entries if entry.is_dir())
        except FileNotFoundError:
            return

    def has_folder(self, folder: str) -> bool:
        """Return whether a folder exists."""
        return self._path(folder).is_dir()

    def delete(self, key: str) -> None:
        """Delete a file."""
        self._path(key).unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with everything in it."""
        shutil.rmtree(self._path(folder), ignore_errors=True)

    def move_folder(self, folder: str, target: str) -> None:
        """Rename a folder."""
        destination = self._path(target)
        make_private_folder(destination.parent)
        source = self._path(folder)
        source.rename(destination)
        sync_folder(destination.parent)
        if source.parent != self.folder:
            with suppress(OSError):  # others are still there
                source.parent.rmdir()

    def scratch(self, key: str) -> Path:
        """Return a path beside the finished files."""
        return self._path(key)

    def check_writable(self) -> None:
        """Write a file that has no name."""
        probe_folder(self.folder)

    def close(self) -> None:
        """Nothing is open."""

    def _path(self, key: str) -> Path:
        return self.folder / check_key(key)


def probe_folder(folder: Path) -> None:
    """Write to a folder and undo it; raise `OSError` if that fails."""
    with TemporaryFile(dir=folder) as probe:
        probe.write(bytes(PROBE_BYTES))
        probe.flush()


def _describe(key: str, path: Path) -> Blob:
    status = path.stat()
    return Blob(key, status.st_size, status.st_mtime)


@contextmanager
def _replacing(target: Path, *, durable: bool) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of another one when it is complete."""
    folder = target.parent
    is_new = not folder.is_dir()
    make_private_folder(folder)
    draft = target.with_name(f".{uuid4().hex}{DRAFT}")
    try:
        with draft.open("wb") as copy:
            yield copy
            copy.flush()
            if durable:
                os.fsync(copy.fileno())  # an acknowledged file survives a power failure
        draft.replace(target)
        if durable:  # and so do its name, and that of its folder
            sync_folder(folder)
            if is_new:
                sync_folder(folder.parent)
    finally:
        draft.unlink(missing_ok=True)
