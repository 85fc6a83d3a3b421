"""The files of the server itself, which it never serves as content: its data, configuration, tokens and keys."""

import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bedstone.settings import layout
from bedstone.settings.sections import Settings

PROCESSES = Path("/proc")  # environment variables, open files and memory of processes
Identity = tuple[int, int]  # device and inode: the same through symbolic links, hard links and mounts


@dataclass(frozen=True)
class OwnFiles:
    """Folders with everything in them, files, and a file that names private keys of logins."""

    folders: Sequence[Path] = ()
    files: Sequence[Path] = ()
    logins: Path | None = None

    @classmethod
    def of(cls, settings: Settings) -> "OwnFiles":
        """Return the files of a server with these settings."""
        salesforce = layout.salesforce(settings)
        secrets_of_server = [file for file in (settings.mcp.token_file, settings.mcp.secret_file) if file]
        secrets = [salesforce / name for name in ("orgs.json", "secrets.json")]
        return cls(
            folders=[settings.data_folder, layout.knowledge_documents(settings), layout.knowledge_index(settings)],
            files=[*settings.config_files, *secrets_of_server, layout.page_sessions(settings), *secrets],
            logins=salesforce / "orgs.json",
        )

    def identities(self) -> frozenset[Identity]:
        """Return the files and folders as they are now: programs replace files when they write them."""
        found = (_identity(path) for path in (*self.folders, *self.files, *self._key_files()))
        return frozenset(item for item in found if item is not None)

    def contain(self, path: Path) -> bool:
        """Return whether a path leads to one of the files, or into one of the folders."""
        real = Path(os.path.realpath(path))
        own = self.identities()
        return real.is_relative_to(PROCESSES) or any(_identity(item) in own for item in (real, *real.parents))

    def entry_test(self) -> Callable[[str], bool]:
        """Return a test for what a walk through folders meets, which is cheaper for many paths."""
        own = self.identities()

        def is_own(path: str) -> bool:
            try:
                status = os.lstat(path)
            except OSError:
                return False
            if stat.S_ISLNK(status.st_mode):
                return self.contain(Path(path))
            return (status.st_dev, status.st_ino) in own

        return is_own

    def _key_files(self) -> Iterator[Path]:
        try:
            logins = json.loads(self.logins.read_bytes()) if self.logins is not None else {}
            yield from (Path(login["key_file"]) for login in logins.values() if login.get("key_file"))
        except (OSError, ValueError, AttributeError, TypeError):  # none yet, or corrupt: the salesforce tools report it
            return


def _identity(path: Path) -> Identity | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
