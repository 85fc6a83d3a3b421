"""Detect the format of a file: the content counts more than the suffix.

The metadata of other packages is read once, for the first file that no built-in format recognizes.
"""

import logging
import zipfile
from collections.abc import Collection, Mapping
from functools import cache
from operator import itemgetter
from pathlib import Path

from bedstone.errors import BedstoneError
from bedstone.ingest.archives import OLD_OFFICE
from bedstone.ingest.format import Format
from bedstone.ingest.formats import FORMATS

logger = logging.getLogger(__name__)

SIGNATURE_BYTES = 1024
ZIP = b"PK\x03\x04"


def supported_formats() -> list[Format]:
    """Return every format, built-in ones first."""
    return [*_builtin_formats().values(), *_installed_formats().values()]


def find_format(name: str) -> Format | None:
    """Return the format with this name."""
    return _builtin_formats().get(name) or _installed_formats().get(name)


def is_image(name: str) -> bool:
    """Return whether a format holds pictures, which may have no text."""
    found = find_format(name)
    return found is not None and found.is_image


def format_of(filename: str) -> str | None:
    """Return the name of the format that the suffix of a file stands for."""
    found = _by_suffix(filename)
    return found.name if found else None


def detect(path: Path, filename: str | None = None) -> str | None:
    """Return the name of the format of a file, or None if it is unsupported."""
    expected = _by_suffix(filename or path.name)
    with path.open("rb") as file:
        start = file.read(SIGNATURE_BYTES)
    if start.startswith((ZIP, OLD_OFFICE)) and expected and not expected.is_zip:
        expected = None
    # If the content does not match the suffix, the file is corrupt, and its reader reports it.
    found = _by_content(path, start, _builtin_formats()) or expected or _by_content(path, start, _installed_formats())
    return found.name if found else None


@cache
def _builtin_formats() -> Mapping[str, Format]:
    return {name: FORMATS.load(name) for name in FORMATS.builtin}


@cache
def _installed_formats() -> Mapping[str, Format]:
    found: dict[str, Format] = {}
    for name in FORMATS.find_installed():
        try:
            declaration = FORMATS.load(name)
            found[declaration.name] = declaration
        except (ImportError, AttributeError, BedstoneError) as error:
            logger.warning("Ignoring the format %r of another package: %s", name, error)
    return {name: declaration for name, declaration in found.items() if name not in FORMATS.builtin}


@cache
def _suffixes(*, installed: bool = False) -> Mapping[str, Format]:
    formats = _installed_formats() if installed else _builtin_formats()
    return {suffix: item for item in formats.values() for suffix in item.suffixes}


def _by_suffix(filename: str) -> Format | None:
    suffix = Path(filename).suffix.lower()
    return _suffixes().get(suffix) or _suffixes(installed=True).get(suffix)


def _by_content(path: Path, start: bytes, formats: Mapping[str, Format]) -> Format | None:
    if start.startswith((ZIP, OLD_OFFICE)):
        return _in_zip(path, formats.values()) if start.startswith(ZIP) else None
    if found := next((item for item in formats.values() if start.startswith(item.magic)), None):
        return found
    signatures = [(item.signature.search(start), item) for item in formats.values() if item.signature]
    matches = [(match.start(), item) for match, item in signatures if match]
    return min(matches, key=itemgetter(0))[1] if matches else None


def _in_zip(path: Path, formats: Collection[Format]) -> Format | None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            for item in formats:
                if item.zip_member and any(name.startswith(item.zip_member) for name in names):
                    return item
            if "mimetype" not in names:
                return None
            with archive.open("mimetype") as member:
                media_type = member.read(200)
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError):
        return None
    return next((item for item in formats if item.zip_media_type and item.zip_media_type in media_type), None)
