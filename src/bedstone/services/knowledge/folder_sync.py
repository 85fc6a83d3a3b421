"""Keeps a folder in step with a knowledge base: added, changed, moved and removed files."""

import json
import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from bedstone.errors import BedstoneError, Unavailable
from bedstone.ingest.detection import format_of
from bedstone.services.knowledge.file_storage import storable
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.tasks import Ownership

logger = logging.getLogger(__name__)

PREFIX, DEVICE, SEPARATOR = "watch:", "watch-device:", "|"
PENDING = ""  # how a file looks of which nothing is known yet but that it is being read
DEBOUNCE_MILLISECONDS = 400  # a program writes a file in several steps
LOOK_MILLISECONDS = 1_000


@dataclass(frozen=True)
class KeptFile:
    """What is known of a file: how it looked, and its document; none if it could not be read.

    `is_ours` says that the document came from here: it goes when the file goes.
    """

    signature: str
    document: str | None
    is_ours: bool = True


@dataclass
class FolderReport:
    """What one look at a folder led to; `failed` says why, by name."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(vars(self).values())


class FolderKeeper:
    """One folder; what is known of its files is kept in the store, so that a restart reads only what is new."""

    def __init__(self, base: KnowledgeBase, folder: Path, contexts: Sequence[str] = ()) -> None:
        self._base = base
        self._folder = folder.resolve()
        self._contexts = contexts
        self._key = f"{PREFIX}{_escaped(str(self._folder))}{SEPARATOR}"
        name = sha256(str(self._folder).encode(errors="surrogateescape")).hexdigest()[:16]
        self.ownership = Ownership(base.options.index_path / f".watch-{name}")

    def update(self, on_file: Callable[[str, int, int], None] = lambda *_: None) -> FolderReport:
        """Look once; `on_file` is told each file that is read, its number and how many there are."""
        report = FolderReport()
        known = self._known()
        seen, unseen = self._look()
        gone = {
            path: kept
            for path, kept in known.items()
            if path not in seen and not any(Path(path).is_relative_to(folder) for folder in unseen)
        }
        waiting = [path for path, signature in seen.items() if path not in known or known[path].signature != signature]
        tasks = {}
        for number, path in enumerate(waiting):
            on_file(path, number, len(waiting))
            before = known.get(path)
            try:
                task = self._base.add(Path(path), {}, contexts=self._contexts)
            except BedstoneError as error:
                self._fail(report, known, path, seen[path], error.message)
                continue
            tasks[path] = (task, before)
            if before is None and task.finished is None:  # whatever happens to us, it is known whose document it is
                self._keep(known, path, KeptFile(PENDING, str(task.details["document_id"])))
        moved: set[str] = set()
        for path, (task, before) in tasks.items():
            ended = self._base.tasks.wait(task.id)
            if ended.finished is None:  # we are asked to end; the next look goes on
                return report
            if ended.status != "completed":
                self._fail(report, known, path, seen[path], str(ended.details.get("message", "It was cancelled.")))
                continue
            document = str(ended.details["result"]["document_id"])
            is_new = not ended.details["result"].get("duplicate")
            is_ours = is_new or any(item.document == document and item.is_ours for item in known.values())
            origin = next((item for item in gone if gone[item].document == document and item not in moved), None)
            if origin is not None:
                self._rename(document, Path(path))
                moved.add(origin)
                report.moved.append(path)
            else:
                (report.changed if before else report.added).append(path)
            self._keep(known, path, KeptFile(seen[path], document, is_ours))
            if before is not None:
                self._forget(known, before)
        for path, kept in gone.items():
            del known[path]
            self._base.store.delete_setting(f"{self._key}{_escaped(path)}")
            if path not in moved:
                report.removed.append(path)
            self._forget(known, kept)
        return report

    def _fail(self, report: FolderReport, known: dict[str, KeptFile], path: str, signature: str, message: str) -> None:
        """A file that cannot be read; the document it was before stays until the file goes."""
        report.failed[path] = message
        before = known.get(path)
        document = before.document if before is not None and before.signature != PENDING else None
        self._keep(known, path, KeptFile(signature, document))

    def run(self, stop: threading.Event, on_report: Callable[[FolderReport], None]) -> None:
        """Look now and whenever something changes, as long as no other process does."""
        from watchfiles import watch  # noqa: PLC0415 - only who watches needs it

        changes = watch(
            self._folder,
            stop_event=stop,
            debounce=DEBOUNCE_MILLISECONDS,
            rust_timeout=LOOK_MILLISECONDS,
            yield_on_timeout=True,
            raise_interrupt=False,
        )
        is_due = True
        try:
            for found in changes:
                is_due = is_due or bool(found)
                if stop.is_set():
                    return
                if is_due and self.ownership.acquire():
                    is_due = False
                    self._update_and_tell(on_report)
        finally:
            self.ownership.release()

    def _update_and_tell(self, on_report: Callable[[FolderReport], None]) -> None:
        try:
            on_report(self.update())
        except BedstoneError as error:
            logger.warning("Cannot follow %s: %s", self._folder, error.message, extra={"action": "watch_failed"})
        except Exception:  # watching goes on: the next change may mend it
            logger.exception("Cannot follow %s", self._folder, extra={"action": "watch_failed"})

    def _look(self) -> tuple[dict[str, str], list[str]]:
        """Files of a kind we read with how they look, and folders that could not be looked into.

        Hidden files and those that programs leave beside open documents do not count.
        """
        self._check_there()
        unseen: list[str] = []
        found: dict[str, str] = {}
        for folder, folders, names in os.walk(self._folder, onerror=lambda error: unseen.append(str(error.filename))):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = Path(folder, name)
                if not name.startswith((".", "~$")) and format_of(name) and path.is_file():
                    found[str(path)] = _signature(str(path))
        return found, unseen

    def _check_there(self) -> None:
        """A folder that is gone, or empty on another device than before, is taken for unmounted, not for emptied."""
        key = f"{DEVICE}{storable(str(self._folder))}"
        try:
            device = str(self._folder.stat().st_dev)
            is_empty = not any(self._folder.iterdir())
        except OSError as error:
            raise Unavailable(f"{self._folder} cannot be looked into: {error.strerror}.") from None
        before = self._base.store.setting(key)
        if before not in (None, device) and is_empty:
            raise Unavailable(f"{self._folder} is empty and on another device than before; is it mounted?")
        if before != device:
            self._base.store.set_setting(key, device)

    def _known(self) -> dict[str, KeptFile]:
        found = self._base.store.settings(self._key)
        return {json.loads(f'"{path}"'): KeptFile(*json.loads(data)) for path, data in found.items()}

    def _keep(self, known: dict[str, KeptFile], path: str, kept: KeptFile) -> None:
        known[path] = kept
        data = json.dumps((kept.signature, kept.document, kept.is_ours))
        self._base.store.set_setting(f"{self._key}{_escaped(path)}", data)

    def _rename(self, document_id: str, path: Path) -> None:
        document = self._base.document(document_id)
        before = document.metadata["filename"]
        title = path.name if document.title == before else document.title
        metadata = {**document.metadata, "filename": path.name, "source": str(path)}
        self._base.store.update_documents([replace(document, title=title, metadata=metadata)])

    def _forget(self, known: dict[str, KeptFile], kept: KeptFile) -> None:
        """Remove a document that no file stands for any more, in this folder or in another one."""
        if kept.document is None or not kept.is_ours or any(item.document == kept.document for item in known.values()):
            return
        for key, data in self._base.store.settings(PREFIX).items():
            other = KeptFile(*json.loads(data))
            if other.document == kept.document:  # from now on it is theirs
                self._base.store.set_setting(f"{PREFIX}{key}", json.dumps((other.signature, other.document, True)))
                return
        if self._base.store.document(kept.document) is not None:
            self._base.remove(kept.document)


class FolderKeepers:
    """The folders a server keeps in step, each in a thread of its own."""

    def __init__(self, base: KnowledgeBase, folders: Sequence[Path]) -> None:
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._run, args=(FolderKeeper(base, folder), folder), name=f"watch-{folder.name}", daemon=True
            )
            for folder in folders
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End soon; what was begun is picked up the next time."""
        self._stop.set()

    def _run(self, keeper: FolderKeeper, folder: Path) -> None:
        try:
            keeper.run(self._stop, lambda report: _log(folder, report))
        except Exception:
            logger.exception("The folder %s is no longer watched", folder, extra={"action": "watch_failed"})


def _log(folder: Path, report: FolderReport) -> None:
    if report:
        logger.info(
            "%s: %d added, %d changed, %d moved, %d removed",
            folder,
            len(report.added),
            len(report.changed),
            len(report.moved),
            len(report.removed),
            extra={"action": "folder_followed"},
        )
    for path, message in report.failed.items():
        logger.warning("Cannot read %s: %s", path, message, extra={"action": "file_refused"})


def _signature(path: str) -> str:
    try:
        status = Path(path).stat()
    except OSError:  # gone since it was listed
        return ""
    return f"{status.st_size}:{status.st_mtime_ns}"


def _escaped(path: str) -> str:
    """A path as the store can keep it, whatever bytes it has."""
    return json.dumps(path)[1:-1]
