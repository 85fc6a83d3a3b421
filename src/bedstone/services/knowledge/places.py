"""Where files may be added from, and which paths are shown."""

import os
from collections.abc import Sequence
from pathlib import Path

from bedstone.services.knowledge.errors import PathNotAllowed
from bedstone.services.knowledge.records import FileDocument
from bedstone.settings.own_files import OwnFiles


class Places:
    """The folders that files may be added from, without the files of the server itself."""

    def __init__(self, roots: Sequence[Path], uploads: Path | None, own_files: OwnFiles) -> None:
        self._roots = [Path(os.path.realpath(root)) for root in roots]
        self._uploads = Path(os.path.realpath(uploads)) if uploads is not None else None
        self.own_files = own_files

    def check(self, place: Path, shown: str, *, is_upload: bool = False) -> None:
        """Raise `PathNotAllowed` unless a resolved path may be read; uploads pass through a folder of the server."""
        if is_upload and self._uploads is not None and place.is_relative_to(self._uploads):
            return
        if not self._is_inside(place):
            raise PathNotAllowed(f"Reading {shown} is not allowed", file_path=shown)
        if self.own_files.contain(place):
            raise PathNotAllowed(f"Reading {shown} is not allowed: it belongs to the server itself", file_path=shown)

    def shown_path(self, source: str) -> str | None:
        """Return the path that a file came from; only its name outside the allowed folders, None for an upload."""
        path = Path(source)
        if not source or (self._uploads is not None and path.is_relative_to(self._uploads)):
            return None
        return source if self._is_inside(path) else path.name

    def shown_paths(self, document: FileDocument) -> list[str]:
        """Return every path that a document came from, as far as it is shown, once each."""
        shown = (self.shown_path(source) for source in document.sources)
        return list(dict.fromkeys(path for path in shown if path is not None))

    def _is_inside(self, place: Path) -> bool:
        return not self._roots or any(place.is_relative_to(root) for root in self._roots)
