"""The manifest of a folder of segments: which files are in use, and up to which change they hold everything."""

import json
import os
import re
import secrets
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bedstone.search.indexes.segments.arrays import ArraysDamaged, check_arrays
from bedstone.search.indexes.segments.graphs import file_checksum, open_index
from bedstone.search.indexes.segments.segment import Graph, Part, Segment, open_segment
from bedstone.store.durability import sync_folder

MANIFEST = "manifest.json"  # replaced atomically, after the files that it names
FORMAT = 1
NAME = re.compile(r"\d{12,}-[0-9a-f]{8}\.(segment|deleted|graph)")


class OtherFormat(Exception):
    """A folder was written by another version, or for other vectors: it is made again."""


@dataclass(frozen=True, slots=True)
class Position:
    """A change of the store; the stamp tells which history it belongs to."""

    seq: int = 0
    stamp: int = 0


NOWHERE = Position()


@dataclass(frozen=True, slots=True)
class Entry:
    """A segment with the files beside it."""

    segment: str
    deleted: str | None = None  # bits of the passages that are deleted
    deleted_checksum: int = 0
    graph: str | None = None
    graph_checksum: int = 0
    graph_removed: int = 0

    @property
    def files(self) -> list[str]:
        return [name for name in (self.segment, self.deleted, self.graph) if name]


@dataclass(frozen=True, slots=True)
class Manifest:
    """All passages of the changes up to a position are in the segments, unless they are deleted by now.

    Segments may hold passages of later changes, too. `scale` is what vectors were multiplied by.
    """

    position: Position
    dimensions: int
    scale: float
    entries: Sequence[Entry] = ()

    @property
    def files(self) -> set[str]:
        return {name for entry in self.entries for name in entry.files}


def new_name(position: Position, kind: str) -> str:
    """Return the name of a new file: the change that it was made at, and what makes it unique."""
    return f"{position.seq:012d}-{secrets.token_hex(4)}.{kind}"


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder; None before the first."""
    try:
        content = (folder / MANIFEST).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ArraysDamaged(f"{MANIFEST}: {error}") from error
    try:
        data = json.loads(content)
        if data["format"] != FORMAT:
            raise OtherFormat
        entries = tuple(Entry(**entry) for entry in data["entries"])
        manifest = Manifest(Position(**data["position"]), data["dimensions"], data["scale"], entries)
        is_inside = all(NAME.fullmatch(name) for name in manifest.files)  # it may have been fetched from elsewhere
    except (ValueError, LookupError, TypeError) as error:
        raise ArraysDamaged(f"{MANIFEST}: {error}") from error
    if not is_inside:
        raise ArraysDamaged(f"{MANIFEST}: it names other files than segments")
    return manifest


def publish(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest, and delete the files that neither it nor the last one names."""
    draft = folder / f"{MANIFEST}.tmp"
    with draft.open("w", encoding="utf-8") as file:
        json.dump({"format": FORMAT, **asdict(manifest)}, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / MANIFEST)
    sync_folder(folder)


def delete_unnamed(folder: Path, names: set[str]) -> None:
    """Delete the files of segments that are not in use; processes that have mapped them keep them."""
    for path in folder.iterdir():
        if path.name != MANIFEST and path.name not in names and path.is_file():
            path.unlink(missing_ok=True)


def write_deleted(folder: Path, part: Part, position: Position) -> tuple[str | None, int]:
    """Write which passages of a part are deleted, as bits; return the name of the file and its checksum."""
    if part.deleted is None or not part.deleted_count:
        return None, 0
    content = np.packbits(part.deleted).tobytes()
    name = new_name(position, "deleted")
    with (folder / name).open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return name, zlib.crc32(content)


def open_parts(folder: Path, manifest: Manifest) -> list[Part]:
    """Map the files of a manifest; raise `ArraysDamaged` if one is missing, cut off, or garbled where that is seen."""
    return [_open_part(folder, entry, manifest.dimensions) for entry in manifest.entries]


def _open_part(folder: Path, entry: Entry, dimensions: int) -> Part:
    segment = open_segment(folder / entry.segment)
    if segment.codes.shape[1:] != (dimensions,):
        raise ArraysDamaged(f"{entry.segment}: its vectors have another size")
    if entry.graph is not None:
        file = folder / entry.graph
        index = open_index(file, len(segment), dimensions)
        object.__setattr__(segment, "graph", Graph(index, file, entry.graph_checksum, entry.graph_removed))
    if entry.deleted is None:
        return Part(segment)
    try:
        content = (folder / entry.deleted).read_bytes()
    except OSError as error:
        raise ArraysDamaged(f"{entry.deleted}: {error}") from error
    if zlib.crc32(content) != entry.deleted_checksum:
        raise ArraysDamaged(f"{entry.deleted}: its checksum is wrong")
    deleted = np.unpackbits(np.frombuffer(content, np.uint8), count=len(segment)).astype(np.bool_)
    return Part(segment, deleted, int(np.count_nonzero(deleted)))


def find_damage(folder: Path, manifest: Manifest) -> str | None:
    """Read every file of a manifest; return what is wrong with one of them."""
    try:
        for entry in manifest.entries:
            _check_files(folder / entry.segment, folder / entry.graph if entry.graph else None, entry.graph_checksum)
    except ArraysDamaged as error:
        return str(error)
    return None


def check_segment(segment: Segment) -> None:
    """Read the files of a segment, if it has any; raise `ArraysDamaged` if a checksum is wrong."""
    if segment.file is not None:
        graph = segment.graph
        _check_files(segment.file, graph.file if graph else None, graph.checksum if graph else 0)


def _check_files(segment: Path, graph: Path | None, graph_checksum: int) -> None:
    check_arrays(segment)
    try:
        is_whole = graph is None or file_checksum(graph) == graph_checksum
    except OSError as error:
        raise ArraysDamaged(str(error)) from error
    if graph is not None and not is_whole:
        raise ArraysDamaged(f"{graph.name}: its checksum is wrong")
