"""Publish a docs index to a bucket or a shared folder, from where servers fetch it.

corpus.json        names every file of the published state with size and digest; written last, so that it is complete
files/DIGEST       their content; what did not change since the last time is not uploaded again
"""

import json
import time
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from bedstone.errors import InvalidInput, Unavailable
from bedstone.services.docs.index_folder import LOCK, METADATA, IndexFolder
from bedstone.store.blobs import Blobs, check_key
from bedstone.store.digests import hash_file
from bedstone.store.locks import FileLock

MANIFEST = "corpus.json"
FILES = "files"
ORIGIN = "published.json"  # in a state that was fetched: from where, and the digests of its files
VERSION = 1
# What nothing names is deleted after this time: another publisher may have uploaded it for its own manifest.
KEPT_SECONDS = 24 * 3600.0
MAX_MANIFEST_BYTES = 2**24
OnProgress = Callable[[str, int, int], None]  # step, done, total


@dataclass(frozen=True)
class PublishedFile:
    """A file of a published state."""

    size: int
    digest: str

    @property
    def key(self) -> str:
        """Return where its content is."""
        return f"{FILES}/{self.digest}"


@dataclass(frozen=True)
class Published:
    """A published state: its files by path, and the digests of the state before, which servers may be fetching."""

    files: Mapping[str, PublishedFile]
    before: frozenset[str] = field(default_factory=frozenset)

    @property
    def digests(self) -> frozenset[str]:
        """Return the digests of all files."""
        return frozenset(file.digest for file in self.files.values())

    @classmethod
    def from_json(cls, data: Any, place: str) -> "Published":
        """Restore a state; raise `InvalidInput` if it is not one, or names files outside its folder."""
        version = data.get("version") if isinstance(data, dict) else None
        if version != VERSION:
            raise InvalidInput(f"{place} has no corpus that this version of Bedstone can read. Publish it again.")
        try:
            files = {
                _check_path(path, data["files"]): PublishedFile(int(size), _check_digest(digest))
                for path, (size, digest) in data["files"].items()
            }
            before = frozenset(map(_check_digest, data.get("before", ())))
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            raise InvalidInput(f"{MANIFEST} in {place} is damaged. Publish the corpus again.") from None
        if METADATA not in files:
            raise InvalidInput(f"{MANIFEST} in {place} is not complete. Publish the corpus again.")
        return cls(files, before)

    def to_json(self) -> dict[str, Any]:
        """Return what is written last."""
        files = {path: [file.size, file.digest] for path, file in sorted(self.files.items())}
        return {"version": VERSION, "files": files, "before": sorted(self.before)}


@dataclass(frozen=True)
class PublishReport:
    """What was published, and how much of it had to be uploaded."""

    files: int
    uploaded: int
    uploaded_bytes: int
    deleted: int
    is_new: bool


def read_published(blobs: Blobs) -> Published | None:
    """Return what is published in a place; None if nothing is."""
    try:
        data = blobs.read(MANIFEST)
    except FileNotFoundError:
        return None
    try:
        return Published.from_json(json.loads(data[: MAX_MANIFEST_BYTES + 1]), blobs.place)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{MANIFEST} in {blobs.place} is damaged. Publish the corpus again.") from None


def publish(index: Path, blobs: Blobs, on_progress: OnProgress = lambda step, done, total: None) -> PublishReport:
    """Publish the state of an index; servers fetch this one or the one before, never a part of both."""
    folder = IndexFolder(index)
    metadata = folder.existing_metadata
    lock = FileLock(index / LOCK)
    if not lock.acquire():  # a build would delete the state that is being read
        raise Unavailable(f"Another build is writing to {index}. Wait until it has finished.")
    try:
        metadata = folder.existing_metadata
        top = index / metadata.generation
        found = (path for path in sorted(top.rglob("*")) if path.is_file() and path != top / ORIGIN)
        paths = {path.relative_to(top).as_posix(): path for path in found}
        paths[METADATA] = index / METADATA
        files = {}
        for number, (name, path) in enumerate(paths.items(), 1):
            on_progress("Reading", number, len(paths))
            files[name] = PublishedFile(path.stat().st_size, hash_file(path))
        known = read_published(blobs)
        before = known.digests if known is not None else frozenset()
        published = Published(files, before)
        uploaded = _upload(published, paths, blobs, on_progress)
        if known is not None and known.files == published.files:
            return PublishReport(len(files), len(uploaded), sum(uploaded.values()), 0, is_new=False)
        blobs.write(MANIFEST, json.dumps(published.to_json(), indent=1).encode())
        uploaded |= _upload(published, paths, blobs, on_progress)  # another publisher may have deleted some
        deleted = _prune(published, blobs)
    finally:
        lock.release()
    return PublishReport(len(files), len(uploaded), sum(uploaded.values()), deleted, is_new=True)


def _upload(published: Published, paths: Mapping[str, Path], blobs: Blobs, on_progress: OnProgress) -> dict[str, int]:
    """Upload the files that the place does not have, and return their sizes by digest."""
    there = {blob.key: blob.size for blob in blobs.list(f"{FILES}/")}
    missing = {file.digest: name for name, file in published.files.items() if there.get(file.key) != file.size}
    done: dict[str, int] = {}
    for number, (digest, name) in enumerate(missing.items(), 1):
        on_progress("Publishing", number, len(missing))
        with paths[name].open("rb") as content:
            stored = blobs.put(published.files[name].key, content)
        if stored.digest != digest:
            raise Unavailable(f"{paths[name]} changed while it was published. Try again.")
        done[digest] = stored.size
    return done


def _prune(published: Published, blobs: Blobs) -> int:
    """Delete what neither this state nor the one before has, unless it is new; return how many files that were."""
    kept = {f"{FILES}/{digest}" for digest in published.digests | published.before}
    old = [
        blob.key
        for blob in blobs.list(f"{FILES}/")
        if blob.key not in kept and time.time() - blob.modified > KEPT_SECONDS
    ]
    for key in old:
        blobs.delete(key)
    return len(old)


def _check_path(path: str, others: Container[str]) -> str:
    """Return a path; raise an error if it leads elsewhere, on any system, or through another file."""
    if "\\" in path or ":" in path or any(str(folder) in others for folder in PurePosixPath(path).parents):
        raise ValueError(path)
    return check_key(path)


def _check_digest(value: object) -> str:
    text = str(value)
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):  # noqa: PLR2004 - of SHA-256
        raise ValueError(text)
    return text
