"""Resume an interrupted reading: the pages that were read, and what the reader noted with them."""

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from bedstone.ingest.extraction import Notes, Page
from bedstone.ingest.left_out import LeftOut

logger = logging.getLogger(__name__)

MAX_SPOOL_BYTES = 64 * 2**20
MIN_SECONDS = 2.0  # of reading, from which on pages are kept; recognized pages always are


@dataclass
class KnownPages:
    """The first pages of a file, the notes that belong to them, and how long they took."""

    pages: list[Page] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


class PageSpool:
    """A file that gets each page as it is read. `key` says of what: another file or other options start anew."""

    def __init__(self, path: Path, key: str) -> None:
        self._path = path
        self._key = key
        self._waiting: list[str] = []
        self._file: IO[bytes] | None = None
        self._size = 0
        self._has_failed = False

    def load(self) -> KnownPages:
        """Return the pages of an interrupted attempt; cut off what was not written completely."""
        known = KnownPages()
        try:
            data = self._path.read_bytes()
        except OSError:
            return known
        lines = data.splitlines(keepends=True)
        if not lines or not lines[0].endswith(b"\n") or _decode(lines[0]) != {"key": self._key}:
            self.discard()
            return known
        self._size = len(lines[0])
        for line in lines[1:]:
            row = _decode(line) if line.endswith(b"\n") else None
            if row is None or not _take(known, row):
                break
            self._size += len(line)
        return known

    def add(self, page: Page, notes: Mapping[str, Any], seconds: float) -> None:
        """Keep a page; until one was recognized or reading takes long, pages wait: reading them again is quick."""
        if page.number is None or self._has_failed:
            return
        row = json.dumps({"page": asdict(page), "notes": notes, "seconds": round(seconds, 3)})
        self._waiting.append(f"{row}\n")
        if self._file is None and (self._size or page.method == "ocr" or seconds >= MIN_SECONDS):
            self._open()
        if self._file is not None:
            self._write("".join(self._waiting))
            self._waiting.clear()

    def close(self) -> None:
        """Close the file, and keep it for the next attempt."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def discard(self) -> None:
        """Delete the file."""
        self.close()
        self._size = 0
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _open(self) -> None:
        try:
            self._file = self._path.open("r+b" if self._size else "wb")
            self._file.truncate(self._size)
            self._file.seek(self._size)
        except OSError as error:
            self._give_up(error)
            return
        if not self._size:
            self._write(json.dumps({"key": self._key}) + "\n")

    def _write(self, text: str) -> None:
        """Write, and let the system keep it even if this process is killed; a full disk costs the resuming only."""
        data = text.encode(errors="replace")
        if self._file is None or self._size + len(data) > MAX_SPOOL_BYTES:
            return
        try:
            self._file.write(data)
            self._file.flush()
            self._size += len(data)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        logger.warning("Cannot keep pages for a restart: %s", error.strerror, extra={"action": "spool_failed"})
        self._has_failed = True
        self._waiting.clear()
        self.close()


class NotesLog:
    """What a reader notes from one page to the next."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._seen: dict[str, Any] = {}
        self.changes()

    def changes(self) -> dict[str, Any]:
        """Return the entries that are new since the last call, by field."""
        found: dict[str, Any] = {}
        for name, value in vars(self._notes).items():
            if isinstance(value, LeftOut):
                value = value.state()  # noqa: PLW2901 - compared as a dictionary
            if isinstance(value, list):
                new: Any = value[self._seen.get(name, 0) :]
                self._seen[name] = len(value)
            elif isinstance(value, dict):
                before = self._seen.get(name, {})
                new = {key: item for key, item in value.items() if key not in before or before[key] != item}
                self._seen[name] = before | new
            else:
                continue
            if new:
                found[name] = new
        return found


def merge_notes(notes: Notes, changes: Mapping[str, Any]) -> Notes:
    """Add entries to notes."""
    for name, new in changes.items():
        known = getattr(notes, name, None)
        if isinstance(known, list):
            known.extend(item for item in new if item not in known)
        elif isinstance(known, dict):
            known.update(new)
        elif isinstance(known, LeftOut):
            known.restore(new)
    return notes


def _take(known: KnownPages, row: Mapping[str, Any]) -> bool:
    """Add a page that follows the others; return False if the row is not one."""
    try:
        page = Page(**row["page"])
        notes, seconds = dict(row["notes"]), float(row["seconds"])
    except (KeyError, TypeError, ValueError):
        return False
    if page.number != len(known.pages) + 1:
        return False
    known.pages.append(page)
    known.seconds = seconds
    for name, new in notes.items():
        if isinstance(new, list):
            known.notes.setdefault(name, []).extend(new)
        else:
            known.notes.setdefault(name, {}).update(new)
    return True


def _decode(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
