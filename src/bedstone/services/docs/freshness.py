"""Tell whether a corpus still is what its folder holds, without reading a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bedstone.errors import BedstoneError
from bedstone.services.docs.corpus import DocsCorpus
from bedstone.services.docs.source.folder import DocumentsFolder
from bedstone.services.service import parse_time
from bedstone.settings.own_files import OwnFiles

CLOCK_SECONDS = 1.0  # of the time that an index records


@dataclass(frozen=True)
class Changes:
    """The files that differ from what was built, by path."""

    changed: Sequence[str] = ()
    added: Sequence[str] = ()
    removed: Sequence[str] = ()

    @property
    def total(self) -> int:
        """Number of files."""
        return len(self.changed) + len(self.added) + len(self.removed)


def find_changes(corpus: DocsCorpus, own_files: OwnFiles) -> Changes | None:
    """Compare a corpus with its folder; None if the folder is not on this machine or cannot be read."""
    source, built = corpus.source, parse_time(corpus.metadata.stats.indexed_at)
    if source is None or built is None or not source.is_dir():
        return None
    try:
        folder = DocumentsFolder(source, own_files)
        paths = set(folder.paths())
    except (BedstoneError, OSError):
        return None
    known = {document.id: document.attributes.get("signature", "") for document in corpus.documents()}
    # A signature is missing if a file was written just before it was read.
    changed = [
        path
        for path in sorted(paths & known.keys())
        if (known[path] != folder.signature(path) if known[path] else _is_newer(source / path, built.timestamp()))
    ]
    # A file that was there when the corpus was built could not be read.
    added = [path for path in sorted(paths - known.keys()) if _is_newer(source / path, built.timestamp())]
    return Changes(changed, added, sorted(known.keys() - paths))


def _is_newer(path: Path, moment: float) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return max(status.st_mtime, status.st_ctime) > moment + CLOCK_SECONDS
