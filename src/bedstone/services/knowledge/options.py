"""What a knowledge base is opened with: where things are stored, and how files are read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.search.indexes import EMBEDDED
from bedstone.search.indexes.opening import IndexKind
from bedstone.services.knowledge.add_file import ReadingOptions
from bedstone.settings.own_files import OwnFiles

if TYPE_CHECKING:
    from bedstone.settings import CorpusTuning


@dataclass(frozen=True)
class KnowledgeOptions:
    """Where things are stored, and how files are read."""

    documents_path: Path
    index_path: Path
    blobs: str | None = None  # the address of a place for copies and texts; default: the documents folder
    store_place: str = ""  # for messages; default: the index folder
    index: IndexKind = EMBEDDED
    allowed_roots: Sequence[Path] = ()
    uploads_path: Path | None = None
    own_files: OwnFiles = field(default_factory=OwnFiles)
    watched_folders: Sequence[Path] = ()
    max_file_size_mb: int = 100
    max_concurrent_tasks: int = 3
    read_only: bool = False
    role: str = "all"
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    tuning: "CorpusTuning | None" = None

    @property
    def storage_place(self) -> str:
        """Return where the copies of files are, for people."""
        return self.blobs.partition("?")[0] if self.blobs else str(self.documents_path)
