"""Permissions of files: what the server stores is for its own user only."""

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

logger = logging.getLogger(__name__)

FOLDER_MODE = 0o700
FILE_MODE = 0o600
OTHERS = 0o077  # the permissions of the group and of everyone else
CACHE = "embeddings.sqlite"
# What Bedstone creates in the data folder and the cache. A folder with anything else belongs to the user as well.
OWN_NAMES = frozenset(
    {"index", "documents", "uploads", "docs", "served", "published", "salesforce", "evaluations", "sessions.json"}
    | {CACHE, f"{CACHE}-wal", f"{CACHE}-shm"}
)


def create_private_files() -> None:
    """Keep the group and others from all files that this process creates from now on."""
    os.umask(OTHERS)


@contextmanager
def user_permissions() -> Iterator[None]:
    """Create files as other programs of the user do: for a file that the user asks for by name."""
    private = os.umask(_USER_UMASK)
    try:
        yield
    finally:
        os.umask(private)


def _read_umask() -> int:
    current = os.umask(OTHERS)
    os.umask(current)
    return current


_USER_UMASK = _read_umask()


def is_exposed(file: Path) -> bool:
    """Return whether other users can read a file of this user; files of other owners are theirs to protect."""
    if os.name == "nt":
        return False
    status = file.stat()
    return status.st_uid == os.getuid() and bool(status.st_mode & OTHERS)


def make_private_folder(folder: Path) -> None:
    """Create a folder, and those above it that do not exist, for this user only; existing ones stay as they are."""
    if not folder.parent.exists():
        make_private_folder(folder.parent)
    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)


def create_private_file(file: Path) -> None:
    """Create an empty file for this user only; an existing one stays as it is."""
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))
    except FileExistsError:
        return


def write_private_file(file: Path, text: str) -> None:
    """Write a file atomically; only its owner can ever read it."""
    make_private_folder(file.parent)
    draft = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(handle, "w", encoding="utf-8") as target:
        target.write(text)
    draft.replace(file)


def protect_folder(folder: Path, *, is_ours: bool) -> None:
    """Take away what other users may do in a data or cache folder that an earlier version created.

    Everything below is changed once: afterwards the folder itself is closed. A folder that the user chose and that
    holds other things too keeps its permissions; only what Bedstone stored in it is protected.
    """
    if os.name == "nt" or not folder.is_dir():
        return
    entries = list(folder.iterdir())
    is_ours = is_ours or all(entry.name in OWN_NAMES for entry in entries)
    for path in [folder] if is_ours else [entry for entry in entries if entry.name in OWN_NAMES]:
        try:
            if not path.is_symlink() and is_exposed(path):
                _protect_tree(path)
                logger.warning("Other users had access to %s: now only you have", path, extra={"action": "protected"})
        except OSError as error:
            logger.warning("Other users may have access to %s: %s", path, error, extra={"action": "not_protected"})


def _protect_tree(top: Path) -> None:
    """Close a folder and everything in it, the folder first, without following symbolic links."""
    _protect(top)
    for place, folders, files in os.walk(top):
        for name in (*folders, *files):
            _protect(Path(place, name))


def _protect(path: Path) -> None:
    status = path.lstat()
    if not stat.S_ISLNK(status.st_mode) and status.st_uid == os.getuid() and status.st_mode & OTHERS:
        path.chmod(stat.S_IMODE(status.st_mode) & ~OTHERS)
