"""Read an export that anyone may have written: sizes are counted while reading, and names only looked up."""

import codecs
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Self

from bedstone.errors import InvalidInput

MEGABYTE = 2**20
MANIFEST = "bedstone-knowledge.json"
# The list of entries at the end of the file, which zipfile reads into memory as a whole.
MAX_DIRECTORY_BYTES = 32 * MEGABYTE
MAX_ENTRIES = 250_000
MAX_RATIO = 100  # of what an entry becomes to what it takes in the archive
MIN_SUSPICIOUS_BYTES = 64 * MEGABYTE  # smaller entries may be compressed further
MAX_RECORD_CHARACTERS = 4 * MEGABYTE
READ_BYTES = 2**16
END_RECORD = b"PK\x05\x06"
END_RECORD_BYTES = 22 + 2**16  # with the longest comment
DIRECTORY_SIZE_AT = slice(12, 16)
LARGE = 0xFFFFFFFF  # the size is in another record
LARGE_END_RECORD = b"PK\x06\x06"
LARGE_SIZE_AT = slice(40, 48)


class UnsafeArchive(InvalidInput):
    """An export is not one, or asks for more than any export needs: nothing of it is imported."""


class RefusedEntry(Exception):
    """An entry of an export cannot be imported; the message says why."""


class ArchiveReader:
    """An open export."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._size = source.stat().st_size
        try:
            _check_directory(source)
            self._archive = zipfile.ZipFile(source)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise self._invalid(str(error)) from error
        try:
            self._check_entries()
        except BaseException:
            self._archive.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    def manifest(self) -> Iterator[tuple[str, Any]]:
        """Yield the members of the manifest in order; each document as one `document`."""
        try:
            with self.open(MANIFEST) as file:
                yield from _members(_JsonStream(file.read))
        except (RefusedEntry, zipfile.BadZipFile, zlib.error, EOFError, ValueError, RecursionError) as error:
            raise self._invalid(f"{MANIFEST}: {error}") from error

    def open(self, name: str) -> IO[bytes]:
        """Open an entry; raise `RefusedEntry` if it is missing or suspicious."""
        try:
            entry = self._archive.getinfo(name)
        except KeyError:
            raise RefusedEntry(f"{name} is missing") from None
        if entry.file_size > max(MIN_SUSPICIOUS_BYTES, MAX_RATIO * entry.compress_size):
            raise RefusedEntry(f"{name} is compressed more than {MAX_RATIO}:1")
        return self._archive.open(entry)

    def read_packed(self, name: str, limit: int) -> bytes:
        """Return the content of an entry that holds compressed bytes, unpacked; raise `RefusedEntry` above a limit."""
        unpack, parts, total = zlib.decompressobj(), [], 0
        with self.open(name) as file:
            while data := file.read(READ_BYTES):
                while data and not unpack.eof:
                    parts.append(unpack.decompress(data, READ_BYTES))
                    total += len(parts[-1])
                    if total > limit:
                        raise RefusedEntry(f"{name} exceeds {limit // MEGABYTE} MB")
                    data = unpack.unconsumed_tail
        if not unpack.eof:
            raise RefusedEntry(f"{name} is cut off")
        return b"".join(parts)

    def _check_entries(self) -> None:
        entries = self._archive.infolist()
        if len(entries) > MAX_ENTRIES:
            raise self._invalid(f"it has more than {MAX_ENTRIES:,} entries")
        for entry in entries:
            if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise self._invalid(f"the entry {entry.filename[:100]!r} is encrypted or packed in an unknown way")
        # Several entries may share the same bytes, so their sizes are compared with that of the file as well.
        if sum(entry.file_size for entry in entries) > MIN_SUSPICIOUS_BYTES + MAX_RATIO * self._size:
            raise self._invalid(f"it is compressed more than {MAX_RATIO}:1")

    def _invalid(self, reason: str) -> UnsafeArchive:
        return UnsafeArchive(f"{self._source} is not an export of a knowledge base: {reason}.")


class _JsonStream:
    """JSON that is read piece by piece; no value is larger than a record may be."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._decoder = json.JSONDecoder(parse_constant=_refuse_constant)
        self._text = ""
        self._is_complete = False

    def accept(self, sign: str) -> bool:
        """Skip a delimiter if it comes next; return whether it does."""
        self._fill(1)
        is_next = self._text.startswith(sign)
        self._text = self._text[len(sign) :] if is_next else self._text
        return is_next

    def expect(self, sign: str) -> None:
        """Skip a delimiter, which must come next."""
        if not self.accept(sign):
            raise ValueError(f"{sign!r} expected instead of {self._text[:20]!r}")

    def value(self) -> Any:
        """Return the next value."""
        self._fill(READ_BYTES)
        while True:
            if len(self._text) > MAX_RECORD_CHARACTERS:
                raise ValueError(f"a record exceeds {MAX_RECORD_CHARACTERS:,} characters")
            try:
                value, end = self._decoder.raw_decode(self._text)
            except json.JSONDecodeError:
                if self._is_complete:
                    raise
                self._fill(2 * len(self._text))
            else:
                self._text = self._text[end:]
                return value

    def _fill(self, characters: int) -> None:
        self._text = self._text.lstrip()
        while len(self._text) < characters and not self._is_complete:
            data = self._read(READ_BYTES)
            self._is_complete = not data
            self._text = (self._text + self._utf8.decode(data, final=self._is_complete)).lstrip()


def _members(stream: _JsonStream) -> Iterator[tuple[str, Any]]:
    """Yield the members of an object; the items of its list of documents one by one."""
    stream.expect("{")
    while not stream.accept("}"):
        name = stream.value()
        stream.expect(":")
        if name == "documents":
            stream.expect("[")
            while not stream.accept("]"):
                yield "document", stream.value()
                stream.accept(",")
        else:
            yield str(name), stream.value()
        stream.accept(",")


def _check_directory(source: Path) -> None:
    """Raise `ValueError` if the list of entries is larger than any export's."""
    with source.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - END_RECORD_BYTES))
        tail = file.read()
    at = tail.rfind(END_RECORD)
    if at < 0:
        raise ValueError("it is not a ZIP file")
    directory = int.from_bytes(tail[at:][DIRECTORY_SIZE_AT], "little")
    if directory == LARGE:
        large = tail.rfind(LARGE_END_RECORD, 0, at)
        directory = int.from_bytes(tail[large:][LARGE_SIZE_AT], "little") if large >= 0 else LARGE
    if directory > MAX_DIRECTORY_BYTES:
        raise ValueError(f"its list of entries exceeds {MAX_DIRECTORY_BYTES // MEGABYTE} MB")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")
