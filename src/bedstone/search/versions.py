"""Recognize versions in paths: one page often exists once per version of what it describes."""

import re
from functools import lru_cache
from hashlib import blake2b
from typing import Any

ENDING = r"(?:[._-]?(?:x|lts|dev|pre|preview|alpha|beta|rc)[._-]?\d*)?"
# A bare number may be a year, a chapter or the status 404.
NUMBER = "|".join(
    (
        rf"(?:v|ver|version|release|rel)[-_.]?\d+(?:[._-]\d+)*{ENDING}",
        rf"\d+(?:[._]\d+)+{ENDING}",
        r"\d+[._-](?:x|lts|alpha|beta|rc)",
    )
)
STABLE = ("latest", "current", "stable")
UNRELEASED = ("next", "main", "master", "dev", "devel", "develop", "nightly", "edge", "canary", "unreleased")
NAMES = rf"{NUMBER}|{'|'.join([*STABLE, *UNRELEASED])}"
VERSION = re.compile(NAMES, re.IGNORECASE)
PRERELEASE = re.compile(r"alpha|beta|rc|dev|pre")
NUMBERS = re.compile(r"\d+|x\b")
OPEN_NUMBER = 1_000_000  # for the x of 2.x


@lru_cache(maxsize=4096)
def is_version(name: str) -> bool:
    """Return whether the name of a folder is a version."""
    return VERSION.fullmatch(name) is not None


@lru_cache(maxsize=64)
def without_versions(path: str) -> str:
    """Return a path without the folders that are versions, and with a star for a file name that is one."""
    *folders, name = path.split("/")
    stem, dot, ending = name.rpartition(".")
    kept = [folder for folder in folders if not is_version(folder)]
    return "/".join([*kept, f"*.{ending}" if dot and VERSION.fullmatch(stem) else name])


def versions_in(path: str) -> list[str]:
    """Return the versions in a path, in lower case and without the v of v2."""
    *folders, name = path.lower().split("/")
    return [item.removeprefix("v") for item in (*folders, name.rpartition(".")[0]) if VERSION.fullmatch(item)]


def section_number(path: str, chunk_id: str) -> int:
    """Return a number that a section shares with itself in other versions of its page."""
    name = without_versions(path) + chunk_id[len(path) :]
    return int.from_bytes(blake2b(name.encode(), digest_size=7).digest())


def preference(path: str) -> tuple[Any, ...]:
    """Return a key that is highest for pages without a version, then for the newest released one."""
    found = [_age(item) for item in versions_in(path)]
    return not found, found, path


def _age(version: str) -> tuple[int, tuple[int, ...]]:
    if version in STABLE:
        return 2, ()
    if version in UNRELEASED:
        return 0, (OPEN_NUMBER,)
    numbers = tuple(OPEN_NUMBER if item == "x" else int(item) for item in NUMBERS.findall(version))
    return 0 if PRERELEASE.search(version) else 1, numbers
