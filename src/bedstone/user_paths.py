"""Paths as users and agents write them: relative, from a home folder, or as a file URI."""

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from bedstone.errors import InvalidInput

FILE_URI = re.compile(r"file:(?=/)", re.IGNORECASE)
THIS_MACHINE = ("", "localhost", "127.0.0.1", "[::1]")


def parse_path(text: str) -> Path:
    """Return the path that a text stands for: `~`, `~user` and `file://` are understood."""
    if FILE_URI.match(text):
        return _parse_uri(text)
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise InvalidInput(
            f"Cannot find the home folder in {text!r}. Give the whole path.", parameter="file_path"
        ) from None


def _parse_uri(text: str) -> Path:
    parts = urlsplit(text)
    if parts.netloc.lower() not in THIS_MACHINE:
        raise InvalidInput(
            f"{text} names a file on another machine ({parts.netloc}). Give a path on this one.", parameter="file_path"
        )
    return Path(url2pathname(parts.path) if os.name == "nt" else unquote(parts.path, errors="surrogateescape"))
