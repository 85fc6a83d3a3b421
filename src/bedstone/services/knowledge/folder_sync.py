"""Keeps a folder and a knowledge base in sync: added, changed, moved and removed files."""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.errors import BedstoneError, NotFound, Unavailable
from bedstone.ingest.detection import format_of
from bedstone.records import Task
from bedstone.services.knowledge.intake import storable
from bedstone.services.knowledge.records import AddFile, added_file
from bedstone.services.schedule import RunRecord, describe_changes
from bedstone.services.service import SyncFacts, format_count
from bedstone.store.engine import Store, StoreUnavailable

if TYPE_CHECKING:  # which opens folders
    from bedstone.services.knowledge.service import KnowledgeBase

logger = logging.getLogger(__name__)

PREFIX = "watch:"
DEVICE_PREFIX = "watch-device:"
ASKED_PREFIX = "watch-asked:"  # by another process than the one that keeps the folder in sync
RESULT_PREFIX = "watch-result:"  # of the last sync, for other processes
SEPARATOR = "|"
PENDING = ""  # the signature of a file that is being read
DEBOUNCE_MILLISECONDS = 400  # a program writes a file in several steps
RETRY_SECONDS = 10.0  # after a sync that the machine kept from its end
SCAN_MILLISECONDS = 1_000

OnFile = Callable[[str, int, int], None]


@dataclass(frozen=True)
class SyncedFile:
    """What is known of a file: its signature, and its document; None if it could not be read.

    `is_ours` says that the document came from here: it is removed when the file is. `source` is where a symbolic link
    leads to.
    """

    signature: str
    document_id: str | None
    is_ours: bool = True
    source: str = ""


@dataclass
class FolderReport:
    """What one sync of a folder did; `failed` has the reasons by name. `delayed` are those to be tried again."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    delayed: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(vars(self).values())

    def summary(self) -> str:
        """Return in words what changed."""
        counts = {name: len(getattr(self, name)) for name in ("added", "changed", "moved", "removed")}
        unread = f"{format_count(len(self.failed), 'file')} could not be read" if self.failed else ""
        changes = describe_changes(**counts)
        return f"{unread}, {changes}" if unread and any(counts.values()) else unread or changes


@dataclass
class _Sync:
    """One sync: the files as they are now, those known before, and those that are gone."""

    seen: dict[str, str]
    known: dict[str, SyncedFile]
    gone: dict[str, SyncedFile]
    report: FolderReport = field(default_factory=FolderReport)
    moved_from: set[str] = field(default_factory=set)


class FolderSync:
    """One folder; what is known of its files is in the store, so that a restart reads only new files."""

    def __init__(self, base: "KnowledgeBase", store: Store, folder: Path, collections: Sequence[str] = ()) -> None:
        self._base = base
        self._store = store
        self._folder = folder.resolve()
        self._collections = collections
        self._key = f"{PREFIX}{_escape(str(self._folder))}{SEPARATOR}"
        self.name = sha256(str(self._folder).encode(errors="surrogateescape")).hexdigest()[:16]
        self.lock = store.lock(f"watch-{self.name}")
        self.record = RunRecord()
        self._asked = threading.Event()
        self._is_elsewhere = False  # another process keeps it in sync

    def sync(self, on_file: OnFile = lambda *_: None) -> FolderReport:
        """Sync once; `on_file` gets each file that is read, its number and how many there are."""
        known = self._synced_files()
        seen, unseen = self._scan()
        gone = {
            path: file
            for path, file in known.items()
            if path not in seen and not any(Path(path).is_relative_to(folder) for folder in unseen)
        }
        sync = _Sync(seen, known, gone)
        if self._finish(sync, self._submit(sync, on_file)):
            self._remove(sync)
        return sync.report

    def _submit(self, sync: _Sync, on_file: OnFile) -> dict[str, tuple[Task, SyncedFile | None]]:
        """Add new and changed files; return their tasks, and what was known of each file before."""
        known, tasks = sync.known, {}
        waiting = [path for path, text in sync.seen.items() if path not in known or known[path].signature != text]
        for number, path in enumerate(waiting):
            on_file(path, number, len(waiting))
            before = known.get(path)
            try:
                task = self._base.add(Path(path), collections=self._collections)
            except Unavailable as error:  # the machine fails, not the file: the next sync tries again
                sync.report.failed[path] = error.message
                sync.report.delayed.append(path)
                continue
            except BedstoneError as error:
                self._fail(sync, path, error.message)
                continue
            tasks[path] = (task, before)
            if before is None and task.finished_at is None:  # a restart knows whose document it is
                file = AddFile.from_payload(task.payload)
                self._save(known, path, SyncedFile(PENDING, file.document_id, source=file.source))
        return tasks

    def _finish(self, sync: _Sync, tasks: dict[str, tuple[Task, SyncedFile | None]]) -> bool:
        """Wait for the tasks; return False if the process ends first: the next sync continues."""
        for path, (task, before) in tasks.items():
            ended = self._base.wait(task.id)
            if ended.finished_at is None:
                return False
            if ended.status != "completed":
                self._fail(sync, path, ended.error.message if ended.error else "It was cancelled.")
                continue
            added = added_file(ended)
            document_id, known = added.document_id, sync.known
            is_known = any(item.document_id == document_id and item.is_ours for item in known.values())
            is_ours, source = not added.is_duplicate or is_known, AddFile.from_payload(task.payload).source
            self._report_added(sync, path, source, document_id, before)
            self._save(known, path, SyncedFile(sync.seen[path], document_id, is_ours, source))
            if before is not None and before.document_id != document_id:
                self._forget(known, path, before)
        return True

    def _report_added(self, sync: _Sync, path: str, source: str, document_id: str, before: SyncedFile | None) -> None:
        """Report a file as moved if one with the same content is gone, otherwise as changed or added."""
        gone = (item for item, file in sync.gone.items() if file.document_id == document_id)
        origin = next((item for item in gone if item not in sync.moved_from), None)
        if origin is not None:
            self._base.versions.rename(document_id, sync.gone[origin].source or origin, source)
            sync.moved_from.add(origin)
            sync.report.moved.append(path)
        else:
            (sync.report.changed if before else sync.report.added).append(path)

    def _remove(self, sync: _Sync) -> None:
        for path, file in sync.gone.items():
            del sync.known[path]
            self._store.delete_value(f"{self._key}{_escape(path)}")
            if path not in sync.moved_from:
                sync.report.removed.append(path)
            self._forget(sync.known, path, file)

    def _fail(self, sync: _Sync, path: str, message: str) -> None:
        """Report a file that cannot be read; its earlier document stays until the file is removed."""
        sync.report.failed[path] = message
        before = sync.known.get(path)
        known = before if before is not None and before.signature != PENDING else SyncedFile(PENDING, None)
        self._save(sync.known, path, replace(known, signature=sync.seen[path]))

    def run(self, stop: threading.Event, on_report: Callable[[FolderReport], None]) -> None:
        """Sync now and after every change, unless another process does."""
        from watchfiles import watch  # noqa: PLC0415 - needed to watch only

        changes = watch(
            self._folder,
            stop_event=stop,
            debounce=DEBOUNCE_MILLISECONDS,
            rust_timeout=SCAN_MILLISECONDS,
            yield_on_timeout=True,
            raise_interrupt=False,
        )
        is_due, retry_at = True, 0.0
        try:
            for found in changes:
                is_due = is_due or bool(found)
                if stop.is_set():
                    return
                is_wanted = self._is_asked() or (is_due and time.monotonic() >= retry_at)
                if is_wanted and self._take_lock():
                    self._take_request()
                    is_due = not self._sync_and_report(on_report)
                    retry_at = time.monotonic() + RETRY_SECONDS if is_due else 0.0
        finally:
            self.lock.release()

    def _take_lock(self) -> bool:
        """Return whether this process may sync; another one may have the lock, or the store may not answer."""
        try:
            is_taken = self.lock.acquire()
        except StoreUnavailable:  # the task runner logs that, once
            return False
        self._is_elsewhere = not is_taken
        return is_taken

    def look_now(self) -> None:
        """Let `run` sync at its next look at the folder, within a second: here, or in the process with the lock."""
        self._asked.set()
        if self._is_elsewhere:
            self._store.set_value(f"{ASKED_PREFIX}{self.name}", str(time.time()))

    def _is_asked(self) -> bool:
        if self._asked.is_set():
            return True
        try:
            return self.lock.is_held and self._store.get_value(f"{ASKED_PREFIX}{self.name}") is not None
        except StoreUnavailable:
            return False

    def _take_request(self) -> None:
        self._asked.clear()
        with suppress(BedstoneError):  # it is asked again then
            if self._store.get_value(f"{ASKED_PREFIX}{self.name}") is not None:
                self._store.delete_value(f"{ASKED_PREFIX}{self.name}")

    def facts(self) -> SyncFacts:
        """Return how the last sync went, here or in the process that keeps the folder in sync."""
        record = self._read_result() if self._is_elsewhere else self.record
        facts = record.facts(
            "Watched folder",
            storable(str(self._folder)),
            name=self.name,
            rhythm="when files change",
            verb="Look now",
            known="another server keeps it in sync" if self._is_elsewhere else "",
        )
        is_asked = self._asked.is_set() and not self._is_elsewhere
        return replace(facts, is_running=facts.is_running or is_asked)

    def _sync_and_report(self, on_report: Callable[[FolderReport], None]) -> bool:
        """Return whether every file could be looked at; otherwise the sync is repeated."""
        try:
            with self.record.running():
                report = self.sync(lambda _, number, total: self.record.tell(number, total))
                self.record.succeed(report.summary())
            on_report(report)
        except BedstoneError as error:
            logger.warning("Cannot sync %s: %s", self._folder, error.message, extra={"action": "watch_failed"})
        except Exception:  # the next sync may succeed
            logger.exception("Cannot sync %s", self._folder, extra={"action": "watch_failed"})
        else:
            return not report.delayed
        finally:
            self._save_result()
        return False

    def _save_result(self) -> None:
        """Let other processes show how the last sync went; where that fails, they show the one before."""
        record = self.record
        result = [record.succeeded_at, record.failed_at, record.result, record.problem]
        try:
            self._store.set_value(f"{RESULT_PREFIX}{self.name}", json.dumps(result))
        except Exception as error:  # noqa: BLE001 - the store fails, or was closed because the process ends
            logger.debug("Cannot keep how the sync of %s went: %s", self._folder, error)

    def _read_result(self) -> RunRecord:
        try:
            saved = self._store.get_value(f"{RESULT_PREFIX}{self.name}")
        except StoreUnavailable:
            saved = None
        return RunRecord(*json.loads(saved)) if saved else RunRecord()

    def _scan(self) -> tuple[dict[str, str], list[str]]:
        """Return supported files with their signatures, and folders that cannot be read.

        Hidden files, the lock files of office programs and the files of the server itself are ignored.
        """
        self._check_mounted()
        is_own = self._base.places.own_files.entry_test()
        unseen: list[str] = []
        found: dict[str, str] = {}
        for folder, folders, names in os.walk(self._folder, onerror=lambda error: unseen.append(str(error.filename))):
            folders[:] = sorted(
                name for name in folders if not name.startswith(".") and not is_own(str(Path(folder, name)))
            )
            for name in sorted(names):
                path = Path(folder, name)
                is_wanted = not name.startswith((".", "~$")) and format_of(name)
                if is_wanted and path.is_file() and not is_own(str(path)):
                    found[str(path)] = _signature(str(path))
        return found, unseen

    def _check_mounted(self) -> None:
        """Raise if the folder is gone, or empty on another device than before: then it is not mounted."""
        key = f"{DEVICE_PREFIX}{storable(str(self._folder))}"
        try:
            device = str(self._folder.stat().st_dev)
            is_empty = not any(self._folder.iterdir())
        except OSError as error:
            raise Unavailable(f"Cannot read {self._folder}: {error.strerror}.") from None
        before = self._store.get_value(key)
        if before not in (None, device) and is_empty:
            raise Unavailable(f"{self._folder} is empty and on another device than before; is it mounted?")
        if before != device:
            self._store.set_value(key, device)

    def _synced_files(self) -> dict[str, SyncedFile]:
        found = self._store.list_values(self._key)
        return {json.loads(f'"{path}"'): SyncedFile(*json.loads(data)) for path, data in found.items()}

    def _save(self, known: dict[str, SyncedFile], path: str, file: SyncedFile) -> None:
        known[path] = file
        self._store.set_value(f"{self._key}{_escape(path)}", _encode(file))

    def _forget(self, known: dict[str, SyncedFile], path: str, file: SyncedFile) -> None:
        """Remove a document that has no file any more, in this folder or elsewhere."""
        document_id = file.document_id
        if document_id is None:
            return
        is_last = self._base.versions.forget_source(document_id, file.source or storable(path))
        if not file.is_ours or any(item.document_id == document_id for item in known.values()):
            return
        for key, data in self._store.list_values(PREFIX).items():
            other = SyncedFile(*json.loads(data))
            if other.document_id == document_id:  # the other folder owns it from now on
                self._store.set_value(f"{PREFIX}{key}", _encode(replace(other, is_ours=True)))
                return
        if is_last:
            self._base.remove(document_id)


class FolderSyncs:
    """The folders that a server keeps in sync, each in a thread of its own."""

    def __init__(self, base: "KnowledgeBase", folders: Sequence[Path]) -> None:
        self._stop = threading.Event()
        self._syncs = {folder: base.folder_sync(folder) for folder in folders}
        self._threads = [
            threading.Thread(target=self._run, args=(sync, folder), name=f"watch-{folder.name}", daemon=True)
            for folder, sync in self._syncs.items()
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop soon; the next start continues."""
        self._stop.set()

    def held_folders(self) -> list[str]:
        """Return the folders that this process keeps in sync for all."""
        return [f"watch {storable(str(folder))}" for folder, sync in self._syncs.items() if sync.lock.is_held]

    def facts(self) -> list[SyncFacts]:
        """Return how the last sync of each folder went."""
        return [sync.facts() for sync in self._syncs.values()]

    def look_now(self, name: str) -> None:
        """Sync a folder soon."""
        found = next((sync for sync in self._syncs.values() if sync.name == name), None)
        if found is None:
            raise NotFound("This folder is not watched.")
        found.look_now()

    def _run(self, sync: FolderSync, folder: Path) -> None:
        try:
            sync.run(self._stop, lambda report: _log(folder, report))
        except Exception:
            sync.record.fail("The folder is no longer watched; see the server log. Restart the server to watch it.")
            logger.exception("No longer watching %s", folder, extra={"action": "watch_failed"})


def _log(folder: Path, report: FolderReport) -> None:
    if report:
        logger.info(
            "%s: %d added, %d changed, %d moved, %d removed",
            folder,
            len(report.added),
            len(report.changed),
            len(report.moved),
            len(report.removed),
            extra={"action": "folder_synced"},
        )
    for path, message in report.failed.items():
        logger.warning("Cannot read %s: %s", path, message, extra={"action": "file_rejected"})


def _signature(path: str) -> str:
    try:
        status = Path(path).stat()
    except OSError:  # deleted since the scan
        return ""
    return f"{status.st_size}:{status.st_mtime_ns}"


def _escape(path: str) -> str:
    """Return a path as text that the store can keep, even with bytes that are not UTF-8."""
    return json.dumps(path)[1:-1]


def _encode(file: SyncedFile) -> str:
    return json.dumps((file.signature, file.document_id, file.is_ours, file.source))
