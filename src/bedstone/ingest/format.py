"""Declare a file format: its suffixes, how to recognize its content, and where its reader is."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Format:
    """One file format, declared in a module that is cheap to import.

    Every process that detects formats loads the declaration. Only the worker process imports `reader`, the
    `module:function` of a `Read`; the libraries it needs belong in that function or module.
    """

    name: str
    reader: str
    suffixes: tuple[str, ...]  # in lower case, with the dot
    media_type: str = "application/octet-stream"
    magic: tuple[bytes, ...] = ()  # one of these starts the file
    signature: re.Pattern[bytes] | None = None  # searched for in the first 1,024 bytes of a file without known magic
    zip_member: str | None = None  # a ZIP archive has a member whose name starts with this
    zip_media_type: bytes | None = None  # a ZIP archive has a member `mimetype` that contains this
    is_image: bool = False  # may have no text at all
    is_resumable: bool = False  # its reader can start at `ReadOptions.first_page`
    uses_ocr: bool = False  # `ReadOptions.force_ocr` makes a difference
    splits_pages: bool = False  # its pages are separate texts, such as slides: no chunk has text of two of them
    in_contract: bool = False  # listed by the contract of the knowledge tools; the others are additional

    @property
    def is_zip(self) -> bool:
        """Whether files of this format are ZIP archives."""
        return self.zip_member is not None or self.zip_media_type is not None
