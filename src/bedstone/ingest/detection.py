"""What a file is: by its suffix, confirmed by its first bytes."""

import zipfile
from pathlib import Path

from bedstone.ingest.formats import SUFFIXES

SNIFFED = 2048
MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "pdf"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpg"),
    (b"GIF8", "png"),
    (b"II*\0", "png"),
    (b"MM\0*", "png"),
    (b"{\\rtf", "rtf"),
)
ZIP = b"PK\x03\x04"
OLD_OFFICE = b"\xd0\xcf\x11\xe0"
INSIDE_ZIP = (("word/", "docx"), ("ppt/", "pptx"), ("xl/", "xlsx"), ("META-INF/container.xml", "epub"))
MIMETYPES = {b"text": "odt", b"spreadsheet": "xlsx"}
OFFICE = frozenset({"docx", "pptx", "xlsx", "epub", "odt"})


def format_of(name: str) -> str | None:
    """The format a file's name promises."""
    return SUFFIXES.get(Path(name).suffix.lower())


def detect(path: Path, name: str | None = None) -> str | None:
    """The format a file has: what it holds counts more than what it is called."""
    promised = format_of(name or path.name)
    with path.open("rb") as file:
        start = file.read(SNIFFED)
    if start.startswith(ZIP):
        return _inside_zip(path) or (promised if promised in OFFICE else None)
    if start.startswith(OLD_OFFICE):
        return promised if promised in OFFICE else None
    found = next((kind for magic, kind in MAGIC if start.startswith(magic)), None)
    if _is_bitmap(start):
        found = "png"
    if found is None and b"%PDF-" in start[:1024]:
        found = "pdf"
    return found or promised  # damaged, or lying: its reader says so


def _is_bitmap(start: bytes) -> bool:
    """BMP: two letters, the size, and zeros that no text has."""
    return start.startswith(b"BM") and start[6:10] == bytes(4)


def _inside_zip(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            for beginning, kind in INSIDE_ZIP:
                if any(name.startswith(beginning) for name in names):
                    return kind
            if "mimetype" in names:
                with archive.open("mimetype") as part:
                    mimetype = part.read(200)
                return next((kind for word, kind in MIMETYPES.items() if word in mimetype), None)
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError):
        return None
    return None
