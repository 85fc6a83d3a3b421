"""Fetch a published corpus into an index folder of this machine, and newer states of it while a server runs."""

import json
import logging
import os
import shutil
import threading
from hashlib import sha256
from pathlib import Path

from bedstone.errors import BedstoneError, NotFound, explain
from bedstone.services.docs.index_folder import LOCK, METADATA, IndexFolder, link_or_copy
from bedstone.services.docs.metadata import CorpusMetadata
from bedstone.services.docs.publishing import ORIGIN, Published, PublishedFile, read_published
from bedstone.services.schedule import RunRecord
from bedstone.services.service import SyncFacts, format_count
from bedstone.store.blobs import BlobDamaged, Blobs
from bedstone.store.locks import FileLock

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 10.0  # between two looks for a newer state: each is one request
WORK = "fetching.tmp"  # removed with other drafts of an index folder


class PublishedCorpus:
    """A corpus in a bucket or a shared folder, with its copy on this machine, from which it is served."""

    def __init__(self, blobs: Blobs, index: Path, *, interval: float = INTERVAL_SECONDS) -> None:
        self.name = index.name
        self._blobs = blobs
        self.index = index
        self._interval = interval
        self._stop = threading.Event()
        self._asked = threading.Event()
        self._record = RunRecord()
        self._thread = threading.Thread(target=self._run, name=f"docs-{index.name}", daemon=True)

    def ensure_copy(self) -> None:
        """Fetch the corpus if this machine has no copy of it; raise an error if that fails."""
        if self._read_state():
            return
        self.index.mkdir(parents=True, exist_ok=True)
        with FileLock(self.index / LOCK):  # another process may be fetching it
            self._fetch_newer()

    def start(self) -> None:
        """Look for newer states from now on."""
        self.ensure_copy()
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to stop."""
        self._stop.set()
        self._asked.set()

    def build_now(self) -> None:
        """Look for a newer state soon."""
        self._asked.set()

    def facts(self) -> SyncFacts:
        """Return how the last look went."""
        rhythm = f"every {self._interval:.0f} seconds"
        return self._record.facts("Documentation", self._blobs.place, name=self.name, rhythm=rhythm, verb="Look now")

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._fetch()
            except (BedstoneError, OSError) as error:  # the copy is served meanwhile
                logger.warning(
                    "Cannot fetch %s: %s", self._blobs.place, explain(error), extra={"action": "not_fetched"}
                )
            except Exception:
                logger.exception("Cannot fetch %s", self._blobs.place, extra={"action": "not_fetched"})
            self._asked.wait(self._interval)
            self._asked.clear()

    def _fetch(self) -> None:
        """Fetch the published state unless this machine has it; another process that does so is left alone."""
        lock = FileLock(self.index / LOCK)
        self.index.mkdir(parents=True, exist_ok=True)
        if not lock.acquire():
            return
        try:
            self._fetch_newer()
        finally:
            lock.release()

    def _fetch_newer(self) -> None:
        with self._record.running():
            published = read_published(self._blobs)
            if published is None:
                raise NotFound(
                    f"No corpus is published in {self._blobs.place}. Publish one with: bedstone docs publish INDEX "
                    "--to ADDRESS"
                )
            if self._read_state() != published.files:
                self._replace(published)
            self._record.succeed(format_count(len(IndexFolder(self.index).existing_metadata.files), "file"))

    def _replace(self, published: Published) -> None:
        """Fetch what differs, compare it with its digest, and serve the new state when all of it is here."""
        folder, work, known = IndexFolder(self.index), self.index / WORK, self._read_state()
        current = folder.generation
        shutil.rmtree(work, ignore_errors=True)
        fetched = 0
        for name, file in published.files.items():
            target = work / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if current is not None and known.get(name) == file and name != METADATA and (current / name).is_file():
                link_or_copy(str(current / name), str(target))
            else:
                self._download(file, target)
                fetched += 1
        data = json.loads((work / METADATA).read_text(encoding="utf-8"))
        metadata = CorpusMetadata.from_json(data)
        (work / METADATA).unlink()
        files = {name: [file.size, file.digest] for name, file in published.files.items()}
        (work / ORIGIN).write_text(json.dumps({"place": self._blobs.place, "files": files}), encoding="utf-8")
        folder.publish(work, metadata, last=True)
        logger.info(
            "Fetched %s: %d of %d files are new",
            self._blobs.place,
            fetched,
            len(published.files),
            extra={"action": "docs_fetched"},
        )

    def _download(self, file: PublishedFile, target: Path) -> None:
        digest, size = sha256(), 0
        with target.open("wb") as copy:
            for part in self._blobs.stream(file.key):
                size += len(part)
                if size > file.size:
                    break
                digest.update(part)
                copy.write(part)
            copy.flush()
            os.fsync(copy.fileno())
        if (size, digest.hexdigest()) != (file.size, file.digest):
            raise BlobDamaged(f"{file.key} in {self._blobs.place} is damaged. Publish the corpus again.")

    def _read_state(self) -> dict[str, PublishedFile]:
        """Return the files of the state on this machine; none if it came from another place."""
        try:
            generation = IndexFolder(self.index).generation
            state = json.loads((generation / ORIGIN).read_text(encoding="utf-8")) if generation is not None else {}
            if state.get("place") != self._blobs.place:
                return {}
            return {name: PublishedFile(int(size), str(digest)) for name, (size, digest) in state["files"].items()}
        except (BedstoneError, OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}
