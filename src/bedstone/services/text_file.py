"""The knowledge base file in memory, read again when it changes on disk."""

import logging
import stat
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from anyio import to_thread

from bedstone.errors import Unavailable
from bedstone.services.service import Service, ServiceContext, Summary, format_count
from bedstone.settings.own_files import OwnFiles

if TYPE_CHECKING:  # the engine is imported when the text is first searched
    from bedstone.search.embedder import Embedder
    from bedstone.services.catalog import FetchedText, FindRequest, Found
    from bedstone.services.text_search import TextSearch

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
    schemes = ("kb",)

    def __init__(
        self,
        path: Path | None,
        *,
        reload: Reload = "on-change",
        is_own: Callable[[Path], bool] = lambda _: False,
        get_embedder: "Callable[[], Embedder | None]" = lambda: None,
    ) -> None:
        """Serve a file, unless it is one of the server itself."""
        self._path = path
        self._is_own = is_own
        self._reload = reload
        self._get_embedder = get_embedder
        self._snapshot: Snapshot | None = None
        self._search: tuple[Snapshot, TextSearch] | None = None
        self._searching = threading.Lock()

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._path.name if self._path is not None else ""

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

    async def summary(self) -> Summary:
        """Return the size of the text, and when it last changed."""
        file = await self.read()
        return Summary(format_count(len(file.text), "character"), changed_at=file.modified, is_empty=not file.text)

    async def find(self, request: "FindRequest") -> "Found":
        """Return the best sections for the search over everything."""
        from bedstone.services.text_finding import find_sections  # noqa: PLC0415 - loads the engine

        return await to_thread.run_sync(find_sections, self, await self.readable(), request, abandon_on_cancel=True)

    async def fetch(self, scheme: str, name: str) -> "FetchedText":
        """Return the whole text, or one of its sections."""
        from bedstone.services.text_finding import fetch_section  # noqa: PLC0415 - loads the engine

        return await to_thread.run_sync(fetch_section, self.name, await self.readable(), name)

    async def readable(self) -> Snapshot:
        """Return the file as it is now, or raise `KbUnreadable`."""
        file = await self.read()
        if file.problem is not None:
            raise KbUnreadable(file.problem)
        return file

    def search_of(self, snapshot: Snapshot) -> "TextSearch":
        """Return the index of a version of the text, built if it is another one than before; blocks."""
        from bedstone.services.text_search import TextSearch  # noqa: PLC0415 - loads the engine

        with self._searching:
            if self._search is None or self._search[0] is not snapshot:
                if self._search is not None:
                    self._search[1].close()
                self._search = (snapshot, TextSearch(self.name, snapshot.text, self._get_embedder))
            return self._search[1]

    async def aclose(self) -> None:
        """Stop making vectors."""
        if self._search is not None:
            self._search[1].close()

    def _log(self, snapshot: Snapshot) -> None:
        if snapshot.problem:
            place = f" ({self._path})" if self._path else ""
            logger.warning("kb: %s%s", snapshot.problem, place, extra={"action": "kb_unavailable"})
        else:
            logger.info("kb: loaded %s, %d bytes", self._path, snapshot.size_bytes, extra={"action": "kb_loaded"})


def open_text_file(context: ServiceContext) -> TextFile:
    """Return the configured knowledge base file, read once."""
    settings = context.settings
    file = TextFile(
        settings.kb.file_path,
        reload=settings.kb.reload,
        is_own=OwnFiles.of(settings).contain,
        get_embedder=context.embedders.get,
    )
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
