"""The index folder of a docs corpus: builds publish to it atomically, servers only read it.

metadata.json      describes the corpus and names the current generation; replaced atomically
generation-7/      store.sqlite, words/ and, with vectors, vectors/: one complete state
building/          an unfinished build; the next build resumes it
progress.json      how far the build is that is going on, or that was interrupted
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bedstone.errors import InvalidInput, NotFound, Unavailable, explain
from bedstone.services.docs.metadata import METADATA_VERSION, CorpusMetadata
from bedstone.store.locks import FileLock

BUILDING = "building"
METADATA = "metadata.json"
LOCK = ".lock"
SOURCE = ".source"
PROGRESS = "progress.json"
SILENT_SECONDS = 60.0  # a build that says nothing for so long was probably killed
VECTORS = "vectors"
FILE_BITS = 0o666
FOLDER_BITS = 0o777
MUTABLE_FILES = {".sqlite", ".sqlite-wal", ".sqlite-shm", "meta.json", ".managed.json", "version.json", ".lock"}


@dataclass(frozen=True)
class BuildProgress:
    """How far a build is with its current step; an interrupted one is not running, and the next one resumes it."""

    step: str
    done: int
    total: int
    is_running: bool = True

    def __str__(self) -> str:
        return f"{self.step.lower()} {self.done:,} of {self.total:,}"


class IndexFolder:
    """A folder that builds publish to and servers read from."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def metadata(self) -> CorpusMetadata | None:
        """Return the metadata of the last build, or None before the first."""
        try:
            data = json.loads((self.path / METADATA).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise InvalidInput(f"Cannot read the index in {self.path}: {explain(error)}. Build it again.") from error
        version = str(data.get("metadata_version")) if isinstance(data, dict) else "none"
        if version.partition(".")[0] != METADATA_VERSION.partition(".")[0]:
            raise InvalidInput(f"Unsupported metadata_version major: expected 1.x.x, got {version}")
        try:
            return CorpusMetadata.from_json(data)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"Cannot read {self.path / METADATA}: it is not complete ({error!r}).") from error

    @property
    def existing_metadata(self) -> CorpusMetadata:
        """Return the metadata of the last build; raise NotFound before the first."""
        if (metadata := self.metadata) is None:
            raise NotFound(
                f"No docs index found in {self.path}. Build it with: bedstone docs build DIR --out {self.path}"
            )
        return metadata

    @property
    def source(self) -> str | None:
        """Return the documents folder that this index was built from, if known on this machine."""
        try:
            return (self.path / SOURCE).read_text(encoding="utf-8")
        except OSError:
            return None

    @property
    def progress(self) -> BuildProgress | None:
        """Return how far a build is that is going on or was interrupted; None if the last one was completed."""
        try:
            progress = BuildProgress(**json.loads((self.path / PROGRESS).read_text(encoding="utf-8")))
            silence = time.time() - (self.path / PROGRESS).stat().st_mtime
        except (OSError, ValueError, TypeError):
            return None
        return progress if silence < SILENT_SECONDS else replace(progress, is_running=False)

    def record_progress(self, progress: BuildProgress | None) -> None:
        """Let other processes see how far a build is; None when it is complete. A full disk does not end the build."""
        path = self.path / PROGRESS
        with suppress(OSError):
            if progress is None:
                path.unlink(missing_ok=True)
                return
            draft = path.with_suffix(".tmp")
            draft.write_text(json.dumps(asdict(progress)), encoding="utf-8")
            self._share(draft)
            draft.replace(path)

    def claim(self, docs: Path) -> None:
        """Record the documents folder of this index."""
        self._require_index_folder()
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / SOURCE).write_text(str(docs.resolve()), encoding="utf-8")

    def _require_index_folder(self) -> None:
        """Raise InvalidInput if the folder holds anything but an index."""
        names = {item.name for item in self.path.iterdir()} - {LOCK} if self.path.is_dir() else set()
        if self.path.exists() and not self.path.is_dir():
            raise InvalidInput(f"{self.path} is a file. Choose a folder for the index.")
        if names and names.isdisjoint({METADATA, BUILDING, SOURCE}):
            raise InvalidInput(f"{self.path} holds other files. Choose an empty folder for the index.")

    @property
    def generation(self) -> Path | None:
        """Return the folder of the published state."""
        metadata = self.metadata
        return self.path / metadata.generation if metadata else None

    @contextmanager
    def building(self, docs: Path, *, fresh: bool) -> Iterator[Path]:
        """Lock the index and yield a working folder that starts from the unfinished or the published state."""
        self._require_index_folder()
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / LOCK)
        if not lock.acquire():
            raise Unavailable(f"Another build is writing to {self.path}. Wait until it has finished.")
        try:
            self.claim(docs)
            work = self.path / BUILDING
            if fresh:
                shutil.rmtree(work, ignore_errors=True)
            if not work.exists():
                self._prepare(work, None if fresh else self.generation)
            yield work
        finally:
            lock.release()

    def discard(self, work: Path) -> None:
        """Delete the working folder; the published state stays."""
        shutil.rmtree(work, ignore_errors=True)

    def publish(self, work: Path, metadata: CorpusMetadata, *, last: bool) -> None:
        """Publish the state in `work`: a copy of it, or with `last` the folder itself."""
        number = self._next_number()
        target = self.path / f"generation-{number}"
        if last:
            work.rename(target)
        else:
            draft = self.path / f"{target.name}.tmp"
            shutil.rmtree(draft, ignore_errors=True)
            _copy_state(work, draft)
            draft.rename(target)
        self._share(target, *target.rglob("*"), self.path / SOURCE)
        data = replace(metadata, generation=target.name).to_json()
        draft_file = self.path / "metadata.json.tmp"
        # One line per key: `indent` would use the slow Python encoder for thousands of files.
        lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in data.items()]
        draft_file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        self._share(draft_file)
        draft_file.replace(self.path / METADATA)
        self._delete_old_generations(keep=target)

    def _share(self, *paths: Path) -> None:
        """Let those read an index who can enter its folder: in the data folder its owner, elsewhere others too."""
        mode = self.path.stat().st_mode
        for path in filter(Path.exists, paths):
            path.chmod(mode & (FOLDER_BITS if path.is_dir() else FILE_BITS))

    def _prepare(self, work: Path, source: Path | None) -> None:
        draft = self.path / f"{BUILDING}.tmp"
        shutil.rmtree(draft, ignore_errors=True)
        if source is not None and source.is_dir():
            _copy_state(source, draft)
        else:
            draft.mkdir()
        draft.rename(work)  # an interrupted copy keeps the name of the draft

    def _next_number(self) -> int:
        return max((int(path.name.rpartition("-")[2]) for path in self._generations()), default=0) + 1

    def _generations(self) -> list[Path]:
        return [path for path in self.path.glob("generation-*") if path.name.rpartition("-")[2].isdigit()]

    def _delete_old_generations(self, keep: Path) -> None:
        """Delete all other generations; a server with one open keeps reading its deleted files."""
        for path in (*self._generations(), *self.path.glob("*.tmp")):
            if path != keep and path.is_dir():
                shutil.rmtree(path, ignore_errors=True)


def _copy_state(source: Path, target: Path) -> None:
    """Copy a state; files that never change are hard-linked."""
    shutil.copytree(source, target, copy_function=link_or_copy)


def link_or_copy(source: str, target: str) -> str:
    """Give a file of a state a second name, or copy it if its content may change."""
    if Path(source).suffix in MUTABLE_FILES or Path(source).name in MUTABLE_FILES:
        return str(shutil.copy2(source, target))
    try:
        os.link(source, target)
    except OSError:  # the file system has no hard links
        shutil.copy2(source, target)
    return target
