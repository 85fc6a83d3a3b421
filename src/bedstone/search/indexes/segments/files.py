"""The folder of a vector index: one process writes it, others map its files."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bedstone.permissions import make_private_folder
from bedstone.search.indexes.damage import set_aside
from bedstone.search.indexes.segments.arrays import ArraysDamaged
from bedstone.search.indexes.segments.facets import Mask
from bedstone.search.indexes.segments.manifest import (
    MANIFEST,
    Entry,
    Manifest,
    OtherFormat,
    Position,
    delete_unnamed,
    find_damage,
    new_name,
    open_parts,
    publish,
    read_manifest,
    write_deleted,
)
from bedstone.search.indexes.segments.segment import Part

FORMER = "vectors.usearch"  # what indexes of earlier versions kept
ATTEMPTS = 5  # to open files that another process replaces

Signature = tuple[int, int, int]


class SegmentFiles:
    """The files of segments, and the manifest that says which of them are in use."""

    def __init__(self, folder: Path, dimensions: int, scale: float, *, is_writer: bool) -> None:
        self._folder = folder
        self._dimensions, self._scale = dimensions, scale
        self._is_writer = is_writer
        self._manifest: Manifest | None = None
        self._signature: Signature | None = None  # of the manifest that was read last
        self._deleted: dict[str, tuple[Mask, str, int]] = {}  # what is written about each segment
        self._drafts: set[str] = set()  # files that another thread may be writing

    @property
    def named_segments(self) -> set[Path]:
        """The segments that the manifest names."""
        return {self._folder / entry.segment for entry in self._manifest.entries} if self._manifest else set()

    def open(self) -> tuple[list[Part], Position] | None:
        """Return what the files hold; None without new ones. Damaged ones raise an error."""
        if self._is_writer:
            self._delete_former()
        for attempt in range(ATTEMPTS):
            signature = self._sign()
            if signature is None or signature == self._signature:
                return None
            try:
                return self._open(signature)
            except OtherFormat:
                self._signature = signature
                return None
            except ArraysDamaged:
                if self._sign() == signature or attempt == ATTEMPTS - 1:
                    self._signature = signature  # it is not read again before it is replaced
                    raise
        return None

    def _open(self, signature: Signature) -> tuple[list[Part], Position] | None:
        manifest = read_manifest(self._folder)
        if manifest is None or (manifest.dimensions, manifest.scale) != (self._dimensions, self._scale):
            raise OtherFormat
        parts = open_parts(self._folder, manifest)
        self._manifest, self._signature = manifest, signature
        for entry, part in zip(manifest.entries, parts, strict=True):
            if entry.deleted is not None and part.deleted is not None:
                self._deleted[entry.segment] = part.deleted, entry.deleted, entry.deleted_checksum
        if self._is_writer:
            delete_unnamed(self._folder, manifest.files)
        return parts, manifest.position

    def _sign(self) -> Signature | None:
        """Return what tells one manifest from the next."""
        try:
            status = (self._folder / MANIFEST).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return 0, 0, 0
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _delete_former(self) -> None:
        for path in self._folder.parent.glob(f"{FORMER}*"):
            path.unlink(missing_ok=True)
        if self._folder.is_file():
            set_aside(self._folder)

    def new_path(self, position: Position, kind: str) -> Path:
        """Return the path of a new file."""
        make_private_folder(self._folder)
        name = new_name(position, kind)
        self._drafts.add(name)
        return self._folder / name

    def forget_drafts(self) -> None:
        """Let the files that were written be deleted, unless they are in use."""
        self._drafts = set()

    def publish(self, parts: Sequence[Part], position: Position) -> bool:
        """Write which files are in use, and up to which change they are complete; return whether that is new."""
        if self._manifest is None and not parts:
            return False
        make_private_folder(self._folder)
        entries = tuple(self._entry(part, position) for part in parts)
        manifest = Manifest(position, self._dimensions, self._scale, entries)
        if manifest == self._manifest:
            return False
        publish(self._folder, manifest)
        self._manifest, self._signature = manifest, self._sign()
        self._deleted = {
            name: known for name, known in self._deleted.items() if self._folder / name in self.named_segments
        }
        self._drafts -= manifest.files
        delete_unnamed(self._folder, manifest.files | self._drafts)
        return True

    def _entry(self, part: Part, position: Position) -> Entry:
        segment = part.segment
        assert segment.file is not None
        name = segment.file.name
        entry = Entry(name)
        if segment.graph is not None and segment.graph.file is not None:
            graph = segment.graph
            entry = replace(
                entry,
                graph=segment.graph.file.name,
                graph_checksum=graph.checksum,
                graph_removed=graph.removed,
            )
        if part.deleted is None:
            return entry
        known = self._deleted.get(name)
        if known is None or known[0] is not part.deleted:
            written, checksum = write_deleted(self._folder, part, position)
            if written is None:
                return entry
            known = self._deleted[name] = part.deleted, written, checksum
        return replace(entry, deleted=known[1], deleted_checksum=known[2])

    def find_damage(self) -> str | None:
        """Read all files; return what is wrong with those that this process uses, unless they were replaced."""
        manifest, signature = self._manifest, self._signature
        if manifest is None or (reason := find_damage(self._folder, manifest)) is None:
            return None
        return reason if signature == self._signature and self._sign() in (None, signature) else None

    def set_aside(self) -> None:
        """Make place for new files; only the writer moves the damaged ones."""
        self._manifest = None
        self._deleted = {}
        if self._is_writer:
            set_aside(self._folder)
            self._signature = None
