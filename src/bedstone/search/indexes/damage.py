"""Find damage in the files of a keyword index, and set a damaged index aside."""

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bedstone.search.index import IndexDamaged

TRAILER = struct.Struct("<II")  # the length of the footer, and a magic number
MAGIC = 1337
READ_BYTES = 2**20
PARTS = (".term", ".idx", ".pos", ".fast", ".fieldnorm", ".store")  # of a segment
KEPT = 2  # indexes that were set aside
# Of tantivy, usearch and the JSON of their files; errors of the store have other classes.
LIBRARY_ERRORS = (OSError, ValueError, LookupError, TypeError, RuntimeError)


@contextmanager
def translate_damage(explain: Callable[[], str | None]) -> Iterator[None]:
    """Raise `IndexDamaged` for an error of a library, if `explain` confirms that its files are damaged.

    A panic of the library, which no handler of `Exception` would stop, becomes a `RuntimeError`.
    """
    try:
        yield
    except BaseException as error:
        is_panic = type(error).__name__ == "PanicException"
        if not is_panic and not isinstance(error, LIBRARY_ERRORS):
            raise
        if reason := explain():
            raise IndexDamaged(reason) from error
        if is_panic:
            raise RuntimeError(str(error)) from error
        raise


def find_damage(folder: Path, *, reads_all: bool = True) -> str | None:
    """Return what is wrong with the files of a keyword index; None if they are whole.

    Without `reads_all`, checksums are not compared. Another process may replace files meanwhile: what is missing then
    is not needed any more.
    """
    try:
        json.loads((folder / "version.json").read_text())
        files = _files(folder)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        return f"{folder.name}: {error}"
    for path in files:
        try:
            reason = _check_file(path, reads_all=reads_all)
        except OSError as error:
            reason = error.strerror or str(error)
        if reason and path in _files_now(folder):
            return f"{folder.name}/{path.name}: {reason}"
    return None


def _files(folder: Path) -> list[Path]:
    """Return the files of every committed segment."""
    meta: Any = json.loads((folder / "meta.json").read_text())
    paths = []
    for segment in meta["segments"]:
        name = segment["segment_id"].replace("-", "")
        paths += [folder / f"{name}{part}" for part in PARTS]
        if segment.get("deletes"):
            paths.append(folder / f"{name}.{segment['deletes']['opstamp']}.del")
    return paths


def _files_now(folder: Path) -> list[Path]:
    try:
        return _files(folder)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return []


def _check_file(path: Path, *, reads_all: bool) -> str | None:
    """Compare a file with the checksum in its footer."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - TRAILER.size))
        trailer = file.read()
        if len(trailer) < TRAILER.size or TRAILER.unpack(trailer)[1] != MAGIC:
            return "it is cut off"
        body = size - TRAILER.size - TRAILER.unpack(trailer)[0]
        if body < 0:
            return "it is cut off"
        file.seek(body)
        try:
            expected = json.loads(file.read(size - TRAILER.size - body))["crc"]
        except (ValueError, LookupError, TypeError):
            return "its footer is damaged"
        return "its checksum is wrong" if reads_all and _checksum(file, body) != expected else None


def _checksum(file: Any, length: int) -> int:
    file.seek(0)
    checksum = 0
    while length > 0 and (part := file.read(min(READ_BYTES, length))):
        checksum = zlib.crc32(part, checksum)
        length -= len(part)
    return checksum


def set_aside(path: Path) -> None:
    """Rename a damaged file or folder, and delete what was set aside long before."""
    import shutil  # noqa: PLC0415 - for this case only

    earlier = sorted(path.parent.glob(f"{path.name}.damaged-*"))
    for old in earlier[: max(0, len(earlier) - KEPT + 1)]:
        shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)
    if path.exists():
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
        path.rename(path.with_name(f"{path.name}.damaged-{stamp}"))
