"""Read untrusted ZIP archives and the XML in them."""

import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.ingest.extraction import ExtractionError, Notes

if TYPE_CHECKING:
    from lxml import etree

OLD_OFFICE = b"\xd0\xcf\x11\xe0"  # files of Office before 2007, and encrypted ones since
MAX_MEMBERS = 20_000
MAX_MEMBER_BYTES = 256 * 2**20
MAX_TOTAL_BYTES = 768 * 2**20
MAX_RATIO = 300
MIN_RATIO_BYTES = 8 * 2**20  # the ratio of smaller members does not matter
TEXT_LIMIT = "Resource limit exceeded"  # what the parser says when it cuts a text
STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")  # namespaces of the strict variant of the standard


class Archive:
    """The members of an Office file or book by name."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            if file.read(4) == OLD_OFFICE:
                raise ExtractionError("password_required", "The file is encrypted, or older than Office 2007.")
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError):
            raise ExtractionError("damaged", "The file is corrupt: it is not a complete ZIP archive.") from None
        self._check()
        self.names = [item.filename for item in self._zip.infolist()]

    def read(self, name: str) -> bytes:
        """Return the content of a member; its header may understate the size."""
        try:
            with self._zip.open(name) as member:
                data = member.read(MAX_MEMBER_BYTES + 1)
        except KeyError:
            raise ExtractionError("damaged", f"The file is corrupt: {name} is missing.") from None
        except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError):
            raise ExtractionError("damaged", f"The file is corrupt: {name} cannot be unpacked.") from None
        except RuntimeError:
            raise ExtractionError("password_required", "The file requires a password.") from None
        if len(data) > MAX_MEMBER_BYTES:
            raise ExtractionError("unsafe_archive", f"Unpacking {name} exceeds the 256 MB limit.")
        return data

    def optional(self, name: str) -> bytes | None:
        """Return the content of a member, or None if it is missing."""
        return self.read(name) if name in self.names else None

    def xml(self, name: str, notes: Notes) -> "etree._Element":
        """Parse a member."""
        return parse_xml(self.read(name), notes)

    def optional_xml(self, name: str, notes: Notes) -> "etree._Element | None":
        """Parse a member, or return None if it is missing."""
        data = self.optional(name)
        return parse_xml(data, notes) if data else None

    def _check(self) -> None:
        members = self._zip.infolist()
        if len(members) > MAX_MEMBERS:
            raise ExtractionError("unsafe_archive", f"The file has more than {MAX_MEMBERS:,} members.")
        if sum(member.file_size for member in members) > MAX_TOTAL_BYTES:
            raise ExtractionError("unsafe_archive", "Unpacking the file exceeds the 768 MB limit.")
        for member in members:
            ratio = member.file_size / max(member.compress_size, 1)
            if member.file_size > MAX_MEMBER_BYTES or (member.file_size > MIN_RATIO_BYTES and ratio > MAX_RATIO):
                raise ExtractionError(
                    "unsafe_archive", f"Unsafe: {member.filename} unpacks to {member.file_size:,} bytes."
                )


def _parse(content: bytes, *, recover: bool, is_huge: bool = False) -> "tuple[etree._Element, etree.XMLParser]":
    from lxml import etree  # noqa: PLC0415 - only the worker process needs it

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=is_huge, recover=recover, remove_pis=True
    )
    try:
        return etree.fromstring(content, parser), parser
    except (etree.XMLSyntaxError, ValueError) as error:
        if TEXT_LIMIT in str(error):
            raise ExtractionError("too_large", "A text in the file exceeds the 10 MB limit.") from None
        raise ExtractionError("damaged", "The file is corrupt: its XML is not valid.") from None


def parse_xml(data: bytes, notes: Notes, *, recover: bool = True) -> "etree._Element":
    """Parse XML without entities or network, within the limits of the parser; repairs are noted."""
    content = STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", data)
    root, parser = _parse(content, recover=recover)
    if any(TEXT_LIMIT in entry.message for entry in parser.error_log):
        if b"<!ENTITY" in data:
            raise ExtractionError("too_large", "A text in the file exceeds the 10 MB limit.")
        root, parser = _parse(content, recover=recover, is_huge=True)
    problems = [entry.message for entry in parser.error_log]
    if any("depth" in problem.lower() for problem in problems):
        raise ExtractionError("too_deep", "The file is nested too deeply.")
    if problems:
        notes.warn(f"Repaired corrupt XML: {problems[0]}")
    if root is None:
        raise ExtractionError("damaged", "The file is corrupt: a member is empty.")
    return root
