"""The knowledge base file in memory, read again when it changes on disk."""

import logging
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from anyio import to_thread

from bedstone.errors import Unavailable
from bedstone.services.service import Service, ServiceContext
from bedstone.settings.own_files import OwnFiles

logger = logging.getLogger(__name__)

Reload = Literal["on-change", "never"]


class KbUnreadable(Unavailable):
    """The text cannot be served; the message says why."""

    code = "kb_unreadable"


@dataclass(frozen=True)
class Snapshot:
    """The file at one moment: its text, or the problem that prevents reading it."""

    text: str = ""
    size_bytes: int = 0
    modified: datetime | None = None
    problem: str | None = None
    version: tuple[int, int, int] | None = None


class TextFile(Service):
    """Serves the newest readable state of one file without reading it twice."""

    is_fast = True

    def __init__(
        self, path: Path | None, *, reload: Reload = "on-change", is_own: Callable[[Path], bool] = lambda _: False
    ) -> None:
        """Serve a file, unless it is one of the server itself."""
        self._path = path
        self._is_own = is_own
        self._reload = reload
        self._snapshot: Snapshot | None = None

    @property
    def current(self) -> Snapshot | None:
        """What was read, if the file on disk is still the same; one `stat`, which is cheaper than a thread."""
        if self._snapshot is None or self._reload == "never":
            return self._snapshot
        # A file that could not be read is tried again: the reason may have been a passing one.
        unchanged = self._snapshot.problem is None and self._snapshot.version == _version(self._path)
        return self._snapshot if unchanged else None

    def load(self) -> Snapshot:
        """Read the file, blocking; the log hears of it unless it failed in the same way before."""
        before, self._snapshot = self._snapshot, self._read()
        if before is None or self._snapshot.problem != before.problem or not self._snapshot.problem:
            self._log(self._snapshot)
        return self._snapshot

    def _read(self) -> Snapshot:
        if self._path is not None and self._is_own(self._path):
            return Snapshot(problem=f"The knowledge base is a file of the server itself: {self._path.name}")
        return _read(self._path)

    async def read(self) -> Snapshot:
        """Return the file as it is now, reading it again only if it changed."""
        current = self.current
        return current if current is not None else await to_thread.run_sync(self.load)

    def problems(self) -> Sequence[str]:
        """Return why the file cannot be read now."""
        snapshot = self.current or self.load()
        return [snapshot.problem] if snapshot.problem else []

    async def figures(self) -> Sequence[tuple[str, str]]:
        """Return the state and the size of the text, and when it last changed."""
        file = await self.read()
        changed = [("changed", file.modified.date().isoformat())] if file.modified else []
        state = "available" if file.problem is None else "unavailable"
        return [("state", state), ("characters", f"{len(file.text):,}"), *changed]

    def _log(self, snapshot: Snapshot) -> None:
        if snapshot.problem:
            place = f" ({self._path})" if self._path else ""
            logger.warning("kb: %s%s", snapshot.problem, place, extra={"action": "kb_unavailable"})
        else:
            logger.info("kb: loaded %s, %d bytes", self._path, snapshot.size_bytes, extra={"action": "kb_loaded"})


def open_text_file(context: ServiceContext) -> TextFile:
    """Return the configured knowledge base file, read once."""
    settings = context.settings
    file = TextFile(settings.kb.file_path, reload=settings.kb.reload, is_own=OwnFiles.of(settings).contain)
    file.load()
    return file


def _version(path: Path | None) -> tuple[int, int, int] | None:
    try:
        found = path.stat() if path else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found else None


def _read(path: Path | None) -> Snapshot:
    if path is None:
        return Snapshot(problem="No knowledge base file is configured. Set it with --kb-file.")
    modified = None
    try:
        found = path.stat()
        modified = datetime.fromtimestamp(found.st_mtime, UTC)
        if not stat.S_ISREG(found.st_mode):  # opening a named pipe would wait for a writer for ever
            return Snapshot(problem=f"The knowledge base is not a file: {path.name}", modified=modified)
        content = path.read_bytes()
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"The knowledge base file is not valid UTF-8 (byte {error.start}): {path.name}"
        return Snapshot(problem=problem, modified=modified)
    except FileNotFoundError:
        return Snapshot(problem=f"The knowledge base file does not exist: {path.name}")
    except OSError as error:
        problem = f"The knowledge base file cannot be read ({error.strerror or 'I/O error'}): {path.name}"
        return Snapshot(problem=problem, modified=modified)
    version = (found.st_mtime_ns, found.st_size, found.st_ino)
    return Snapshot(text=text, size_bytes=len(content), modified=modified, version=version)
