"""Zip archives and the XML in them, read with suspicion."""

import re
import zipfile
from pathlib import Path

from lxml import etree

from bedstone.ingest.extraction import Notes, Unreadable

MOST_PARTS = 20_000
LARGEST_PART, LARGEST_SUM = 256 * 2**20, 768 * 2**20
LARGEST_RATIO, RATIO_MATTERS_FROM = 300, 8 * 2**20
STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")  # the names the standard's strict variant uses
OLD_OFFICE = b"\xd0\xcf\x11\xe0"


class Archive:
    """The parts of an Office file or book by name."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            if file.read(4) == OLD_OFFICE:
                raise Unreadable("password_required", "The file is encrypted, or of an Office version before 2007.")
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise Unreadable("damaged", f"The file is damaged ({error}).") from None
        self._check()
        self.names = [item.filename for item in self._zip.infolist()]

    def read(self, name: str) -> bytes:
        """A part; its header may lie about its size."""
        try:
            with self._zip.open(name) as part:
                data = part.read(LARGEST_PART + 1)
        except KeyError:
            raise Unreadable("damaged", f"The file is damaged: it lacks {name}.") from None
        except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError) as error:
            raise Unreadable("damaged", f"The file is damaged ({error}).") from None
        except RuntimeError:
            raise Unreadable("password_required", "The file needs a password.") from None
        if len(data) > LARGEST_PART:
            raise Unreadable("unsafe_archive", f"The file is refused: {name} is larger than 256 MB.")
        return data

    def optional(self, name: str) -> bytes | None:
        """A part that may be absent."""
        return self.read(name) if name in self.names else None

    def xml(self, name: str, notes: Notes) -> etree._Element:
        """A part as a tree."""
        return parse_xml(self.read(name), notes)

    def optional_xml(self, name: str, notes: Notes) -> etree._Element | None:
        """A part that may be absent, as a tree."""
        data = self.optional(name)
        return parse_xml(data, notes) if data else None

    def _check(self) -> None:
        parts = self._zip.infolist()
        if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > LARGEST_SUM:
            raise Unreadable("unsafe_archive", "The file is refused: it unpacks to more than 768 MB.")
        for part in parts:
            ratio = part.file_size / max(part.compress_size, 1)
            if part.file_size > LARGEST_PART or (part.file_size > RATIO_MATTERS_FROM and ratio > LARGEST_RATIO):
                raise Unreadable("unsafe_archive", f"The file is refused: {part.filename} unpacks to far too much.")


def parse_xml(data: bytes, notes: Notes, *, recover: bool = True) -> etree._Element:
    """XML without entities, network or limits switched off; what had to be mended is noted."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=recover, remove_pis=True
    )
    try:
        root = etree.fromstring(STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", data), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise Unreadable("damaged", f"The file is damaged ({error}).") from None
    problems = [entry.message for entry in parser.error_log]
    if any("depth" in problem.lower() for problem in problems):
        raise Unreadable("too_deep", "The file is refused: it is nested too deeply.")
    if problems:
        notes.warn(f"Damaged XML was mended: {problems[0]}")
    if root is None:
        raise Unreadable("damaged", "The file is damaged: a part of it is empty.")
    return root
