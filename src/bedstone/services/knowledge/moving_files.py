"""Move the files of a base to another place: copy what is missing there, and read each of them back."""

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any

from bedstone.errors import InvalidInput, Unavailable
from bedstone.services.knowledge.errors import StoreMismatch
from bedstone.services.knowledge.file_storage import OWNER, SPOOL, UNFINISHED, incomplete_message, read_owner
from bedstone.services.knowledge.quarantine import ORPHANS
from bedstone.services.knowledge.records import DOCUMENT_ID
from bedstone.store.blobs import Blob, BlobDamaged, Blobs
from bedstone.store.digests import COPY_BYTES

if TYPE_CHECKING:
    from bedstone.store.moving.move import OnProgress

AT_ONCE = 4  # each may have parts of a large file in memory
BATCH = 32
OWN = (OWNER, f"{OWNER}.lock")  # of the place itself


@dataclass(frozen=True)
class MovedFiles:
    """What was moved; the digest covers each key with its content."""

    source: str
    target: str
    count: int
    size: int
    digest: str
    left: int  # files of the source that are unfinished work, or not a part of the base
    left_example: str


class FileMove:
    """A move of files. Until it is finished, its target names the base in a way that no server accepts."""

    def __init__(self, source: Blobs, target: Blobs, base: str, *, has_documents: bool) -> None:
        """Check both places, and write nothing; `base` is the id of the store, `has_documents` what it knows."""
        self._source = source
        self._target = target
        self._base = base
        self._marker = f"{UNFINISHED}{base}"
        self._check_source(has_documents=has_documents)
        self._is_complete = self._check_target()

    def copy(self, on_progress: "OnProgress") -> MovedFiles:
        """Copy what is missing or differs, and compare everything; repeated, it resumes."""
        if not self._is_complete:
            self._target.write(OWNER, f"{self._marker}\n".encode())
        total, left, example = self._survey()
        whole, count, size = sha256(), 0, 0
        with ThreadPoolExecutor(AT_ONCE) as pool:
            files = _base_files(self._source)
            while batch := list(islice(files, BATCH)):
                for blob, digest in zip(batch, pool.map(self._transfer, batch), strict=True):
                    whole.update(f"{digest} {blob.key}\n".encode(errors="surrogatepass"))
                    count, size = count + 1, size + blob.size
                on_progress("Copying and comparing files", count, max(total, count))
        self._compare_counts(count)
        return MovedFiles(self._source.place, self._target.place, count, size, whole.hexdigest(), left, example)

    def finish(self) -> None:
        """Let servers use the target."""
        if read_owner(self._target) not in (self._marker, self._base):
            raise StoreMismatch(f"Another base was stored in {self._target.place} meanwhile. Name a new place.")
        self._target.write(OWNER, f"{self._base}\n".encode())

    def _check_source(self, *, has_documents: bool) -> None:
        owner = read_owner(self._source)
        if owner == self._base:
            return
        if owner is not None and owner.startswith(UNFINISHED):
            raise StoreMismatch(incomplete_message(self._source.place))
        if has_documents or owner is not None or next(_base_files(self._source), None) is not None:
            raise StoreMismatch(
                f"The files in {self._source.place} do not belong to this store, so nothing was moved. Check "
                "storage.database, storage.vector_db_path, storage.documents_path and storage.blobs."
            )

    def _check_target(self) -> bool:
        """Return whether the files of the base are there already, and must be equal; raise for what is foreign."""
        place, owner = self._target.place, read_owner(self._target)
        if owner == self._marker:
            return False
        if owner == self._base:
            return next(_base_files(self._target), None) is not None
        if owner is not None:
            part = "a part of" if owner.startswith(UNFINISHED) else "the files of"
            raise InvalidInput(f"{place} has {part} another base. Nothing was changed. Name a new place.")
        found = next((blob.key for blob in self._target.list() if blob.key not in OWN), None)
        if found is not None:
            raise InvalidInput(f"{place} is not empty: it has {found}. Nothing was changed. Name a new place.")
        return False

    def _survey(self) -> tuple[int, int, str]:
        """Return how many files there are to copy, how many others, and one of those."""
        total, left, example = 0, 0, ""
        for blob in self._source.list():
            if _is_kept(blob.key):
                total += 1
            elif blob.key not in OWN:
                left, example = left + 1, example or blob.key
        return total, left, example

    def _transfer(self, blob: Blob) -> str:
        """Copy a file unless an equal one is there, and return its digest, which both ends have."""
        key = blob.key
        try:
            known = self._source.find(key)  # a list has no digests
            expected = known.digest if known is not None else None
            there = self._target.find(key)
            if there is not None and there.size == blob.size:
                digest = _hash(self._source, key)
                if there.digest in (digest, None) and _hash(self._target, key) == digest:
                    return self._check(key, digest, expected)
            if self._is_complete:
                raise self._make_difference(f"{key} {'is missing' if there is None else 'differs'}")
            with closing(_open(self._source, key)) as content:
                stored = self._target.put(key, content, keeps_copy=False)
            if _hash(self._target, key) != stored.digest:
                raise BlobDamaged(f"{key} did not arrive completely in {self._target.place}. Run the command again.")
            return self._check(key, stored.digest, expected)
        except OSError as error:
            raise Unavailable(
                f"Cannot copy {key} from {self._source.place} to {self._target.place}: {error.strerror}. What was "
                "copied stays; run the command again."
            ) from error

    def _check(self, key: str, digest: str, expected: str | None) -> str:
        if expected not in (digest, None):
            raise BlobDamaged(
                f"{key} in {self._source.place} is not what was stored there: its digest differs. Remove that "
                "document, or restore the file from a backup, and run the command again."
            )
        return digest

    def _compare_counts(self, count: int) -> None:
        """Compare how many files there are: all of the source were compared, so equal numbers mean equal keys."""
        if (there := sum(1 for _ in _base_files(self._target))) != count and not self._is_complete:
            for blob in _base_files(self._target):  # the source has lost it since an earlier attempt copied it
                if self._source.find(blob.key) is None:
                    self._target.delete(blob.key)
            there = sum(1 for _ in _base_files(self._target))
        if there != count:
            raise self._make_difference(f"it has {there:,} files instead of {count:,}")

    def _make_difference(self, what: str) -> StoreMismatch:
        if self._is_complete:
            return StoreMismatch(
                f"{self._target.place} has files of this base already, and they differ from {self._source.place}: "
                f"{what}. Nothing was changed. Name a new place."
            )
        return StoreMismatch(
            f"{self._target.place} differs from {self._source.place}: {what}. The source is as it was. Run the command "
            "again."
        )


class _Content(io.RawIOBase):
    """The parts of a file, to be read as one."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            if (part := next(self._parts, None)) is None:
                return 0
            self._rest = memoryview(part)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _open(blobs: Blobs, key: str) -> io.BufferedReader:
    return io.BufferedReader(_Content(blobs.stream(key)), COPY_BYTES)


def _hash(blobs: Blobs, key: str) -> str:
    digest = sha256()
    for part in blobs.stream(key):
        digest.update(part)
    return digest.hexdigest()


def _base_files(blobs: Blobs) -> Iterator[Blob]:
    """Iterate over the files of a base: those of documents, and those that were moved aside."""
    return (blob for blob in blobs.list() if _is_kept(blob.key))


def _is_kept(key: str) -> bool:
    folder, _, rest = key.partition("/")
    is_file = bool(rest) and key.rpartition("/")[2] != SPOOL
    return is_file and (folder == ORPHANS or DOCUMENT_ID.fullmatch(folder) is not None)
