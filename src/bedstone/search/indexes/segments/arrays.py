"""Named arrays in one file, which is written once and then mapped into memory; or the same arrays in memory."""

import json
import mmap
import os
import struct
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

TRAILER = struct.Struct("<IIQ")  # the length of the footer, its checksum, and a magic number
MAGIC = 0x31564E4F54534442
ALIGNMENT = 64
READ_BYTES = 2**20

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Shapes = Mapping[str, tuple[str, tuple[int, ...]]]  # the type and the shape of each array


class ArraysDamaged(ValueError):
    """A file of arrays is cut off, missing, or garbled."""


class ArrayWriter:
    """Writes arrays row by row, each from its beginning to its end."""

    def __init__(self, path: Path | None, shapes: Shapes, about: Mapping[str, Any]) -> None:
        self._path, self._shapes, self._about = path, shapes, about
        self._written = dict.fromkeys(shapes, 0)
        self._checksums = dict.fromkeys(shapes, 0)
        self._offsets, self._end = _lay_out(shapes)
        self._arrays = {} if path else {name: np.empty(shape, dtype) for name, (dtype, shape) in shapes.items()}
        self._file = path.open("wb") if path else None

    def write(self, name: str, rows: Array) -> None:
        """Append rows to an array."""
        start, (dtype, _) = self._written[name], self._shapes[name]
        self._written[name] += len(rows)
        if self._file is None:
            self._arrays[name][start : start + len(rows)] = rows
            return
        content = np.ascontiguousarray(rows, dtype).tobytes()
        width = len(content) // len(rows) if len(rows) else 0
        self._file.seek(self._offsets[name] + start * width)
        self._file.write(content)
        self._checksums[name] = zlib.crc32(content, self._checksums[name])

    def finish(self) -> tuple[Arrays, Mapping[str, Any]]:
        """Complete the file, and return what it holds."""
        if self._path is None or self._file is None:
            return self._arrays, self._about
        sections = {
            name: [dtype, list(shape), self._offsets[name], self._checksums[name]]
            for name, (dtype, shape) in self._shapes.items()
        }
        footer = json.dumps({"about": self._about, "arrays": sections}).encode()
        self._file.seek(self._end)
        self._file.write(footer + TRAILER.pack(len(footer), zlib.crc32(footer), MAGIC))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return map_arrays(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Delete an incomplete file."""
        if self._file is not None and self._path is not None:
            self._file.close()
            if kind is not None:
                self._path.unlink(missing_ok=True)


def map_arrays(path: Path, check: Collection[str] = ()) -> tuple[Arrays, Mapping[str, Any]]:
    """Return the arrays of a file, mapped into memory, and what its writer said about them; `check` some of them."""
    try:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            footer = _read_footer(content)
            arrays = {
                name: np.frombuffer(content, dtype, int(np.prod(shape)), offset).reshape(shape)
                for name, (dtype, shape, offset, _) in footer["arrays"].items()
            }
            places = {name: (footer["arrays"][name][2], arrays[name].nbytes) for name in check}
            wrong = [name for name in check if _checksum(file, *places[name]) != footer["arrays"][name][3]]
    except (OSError, ValueError, LookupError, TypeError, struct.error) as error:
        raise ArraysDamaged(f"{path.name}: {error}") from error
    if wrong:
        raise ArraysDamaged(f"{path.name}: the checksum of its {wrong[0]} is wrong")
    return arrays, footer["about"]


def check_arrays(path: Path) -> None:
    """Read a whole file, and raise `ArraysDamaged` if a checksum is wrong."""
    arrays, _ = map_arrays(path)
    map_arrays(path, arrays)


def _lay_out(shapes: Shapes) -> tuple[dict[str, int], int]:
    """Return where each array begins, and where the last one ends."""
    offsets, end = {}, 0
    for name, (dtype, shape) in shapes.items():
        offsets[name] = end
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return offsets, end


def _read_footer(content: mmap.mmap) -> Any:
    end = len(content) - TRAILER.size
    if end < 0:
        raise ArraysDamaged("it is cut off")
    length, checksum, magic = TRAILER.unpack(content[end:])
    footer = content[max(0, end - length) : end]
    if magic != MAGIC or zlib.crc32(footer) != checksum:
        raise ArraysDamaged("it is cut off")
    return json.loads(footer)


def _checksum(file: BinaryIO, start: int, size: int) -> int:
    """Read a part of a file, not its mapping, which would count as memory of the process."""
    checksum = 0
    file.seek(start)
    while size and (content := file.read(min(size, READ_BYTES))):
        checksum = zlib.crc32(content, checksum)
        size -= len(content)
    return checksum
