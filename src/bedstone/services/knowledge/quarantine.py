"""Folders without a document: what interrupted processes leave, and what a store that was restored has forgotten."""

import logging
import math
import time
from collections.abc import Callable, Collection
from datetime import UTC, date, datetime, timedelta
from itertools import chain, count

from bedstone.services.knowledge.records import DOCUMENT_ID
from bedstone.services.knowledge.sidecar import SIDECAR
from bedstone.store.blobs import Blobs

logger = logging.getLogger(__name__)

ORPHANS = ".orphaned"
REMOVED = "removed"  # marks a document that is being removed: what is left of it is deleted
# In a place that other machines use, no lock tells whether a file is being added there.
MIN_AGE_SECONDS = 24 * 3600.0
KEPT_DAYS = 30  # there; in a folder of this machine what was moved aside stays until it is cleared


class Quarantine:
    """What was moved aside, where nothing uses it and `bedstone knowledge rebuild` finds it."""

    def __init__(self, blobs: Blobs, delete: Callable[[str], None], *, clock: Callable[[], float] = time.time) -> None:
        self._blobs = blobs
        self._delete = delete
        self._clock = clock

    def sort_out(self, folders: Collection[str], documents: Collection[str], drafts: Collection[str]) -> int:
        """Move the folders aside that have no document, and delete those that were to be removed, and drafts.

        Return how many were moved.
        """
        if not self._blobs.is_shared:
            for name in set(folders).intersection(documents):
                self._blobs.delete(f"{name}/{REMOVED}")
        moved = deleted = 0
        for name in sorted({*folders, *drafts}.difference(documents)):
            files = {blob.key.rpartition("/")[2]: blob.modified for blob in self._blobs.list(f"{name}/")}
            if self._blobs.is_shared and self._clock() - max(files.values(), default=math.inf) < MIN_AGE_SECONDS:
                continue  # it may be being added; some services list a folder for a while that has no files any more
            # No caller was told that a draft is stored, or a file about which nothing is known yet.
            is_unfinished = name in drafts or (self._blobs.is_shared and SIDECAR not in files)
            if is_unfinished or REMOVED in files:
                self._delete(name)
                deleted += 1
            else:
                self.add(name)
                moved += 1
        if self._blobs.is_shared:
            deleted += self._delete_old()
        if deleted:
            logger.info("Deleted %d folders that nothing needs", deleted, extra={"action": "orphans_deleted"})
        return moved

    def add(self, document_id: str) -> None:
        """Move the folder of a document aside."""
        if not self._blobs.has_folder(document_id):
            return
        today = datetime.now(UTC).strftime("%Y-%m-%d")
        days = chain([today], (f"{today}-{number}" for number in count(2)))  # it may have been there today already
        day = next(day for day in days if not self._blobs.has_folder(f"{ORPHANS}/{day}/{document_id}"))
        target = f"{ORPHANS}/{day}/{document_id}"
        self._blobs.move_folder(document_id, target)
        where = f"{self._blobs.place}/{target}"
        logger.warning("Moved %s, which has no document, to %s", document_id, where, extra={"action": "quarantined"})

    def folders(self) -> dict[str, str]:
        """Return the folders that were moved aside, by document."""
        return {
            name: f"{ORPHANS}/{day}/{name}"
            for day in self._blobs.folders(ORPHANS)
            for name in self._blobs.folders(f"{ORPHANS}/{day}")
            if DOCUMENT_ID.fullmatch(name)
        }

    def delete(self, document_ids: Collection[str]) -> None:
        """Delete what was moved aside of documents that are removed: a rebuild must not bring it back."""
        removed = set(document_ids)
        for day in list(self._blobs.folders(ORPHANS)):
            for name in removed.intersection(self._blobs.folders(f"{ORPHANS}/{day}")):
                self._blobs.delete_folder(f"{ORPHANS}/{day}/{name}")

    def clear(self) -> None:
        """Delete everything that was moved aside."""
        self._blobs.delete_folder(ORPHANS)

    def bring_back(self, document_id: str) -> None:
        """Move the folder of a document back, if it was moved aside; also what an interruption left half moved."""
        orphan = self.folders().get(document_id)
        if orphan is None:
            return
        here, aside = self._files(document_id), self._files(orphan)
        if not here.items() <= aside.items():
            return  # it has a folder of its own
        self._blobs.delete_folder(document_id)
        self._blobs.move_folder(orphan, document_id)

    def _files(self, folder: str) -> dict[str, int]:
        """Return the files of a folder, by name, with their sizes."""
        return {blob.key[len(folder) :]: blob.size for blob in self._blobs.list(f"{folder}/")}

    def _delete_old(self) -> int:
        """Delete what was moved aside long ago, and return how many folders that were."""
        limit = datetime.fromtimestamp(self._clock(), UTC).date() - timedelta(days=KEPT_DAYS)
        deleted = 0
        for day in list(self._blobs.folders(ORPHANS)):
            try:
                moved = date.fromisoformat(day[: len("2026-01-01")])
            except ValueError:  # made by another program
                continue
            if moved < limit:
                deleted += len(list(self._blobs.folders(f"{ORPHANS}/{day}")))
                self._blobs.delete_folder(f"{ORPHANS}/{day}")
        return deleted
