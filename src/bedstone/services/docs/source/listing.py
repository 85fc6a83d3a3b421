"""List the files of a documents folder, and everything in it that is not indexed, with the reason."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bedstone.services.docs.source.ignoring import (
    DEFAULT_RULES,
    IGNORE_FILES,
    Rule,
    deciding_rule,
    everything_in,
    is_vendored,
    rules_in,
)
from bedstone.services.docs.source.manifest import NAME as MANIFEST
from bedstone.services.docs.source.manifest import Manifests

HTML_SUFFIXES = (".html", ".htm")
MARKDOWN_SUFFIXES = (".md", ".mdx", ".markdown")
SUFFIXES = (*MARKDOWN_SUFFIXES, ".rst", ".txt", *HTML_SUFFIXES)
README = "readme"
TEMPLATE_SUFFIXES = (".template.md", ".template.yaml")
# Formats of documentation that are not indexed; other files, such as pictures and code, are not mentioned.
OTHER_SUFFIXES = (".adoc", ".asciidoc", ".ipynb", ".org", ".textile", ".tex", ".wiki", ".pdf", ".docx")
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
PACKAGES = "built-in patterns (packages of others)"
GLOB_SIGNS = re.compile(r"[*?\[{]")
MAX_DEPTH = 100  # of nested folders
MAX_VISITS = 8  # of one folder through symbolic links


@dataclass(frozen=True)
class SkippedFile:
    """A file or folder (with a slash at the end) that is left out on purpose."""

    path: str
    reason: str


@dataclass(frozen=True)
class PageProblem:
    """A page that is not indexed, or indexed without a part of what it says."""

    path: str
    reason: str
    is_indexed: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass
class Listing:
    """What a folder holds."""

    files: list[str] = field(default_factory=list)
    manifest_folders: list[str] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)
    problems: list[PageProblem] = field(default_factory=list)


def list_files(root: Path, manifests: Manifests, is_own: Callable[[str], bool] = lambda _: False) -> Listing:
    """List documents and templates by path. Links are followed inside the folder, never out of it or in a loop.

    `is_own` tells the files of the server itself, which are never indexed.
    """
    walk = _Walk(root, manifests, is_own)
    walk.listing.files = sorted(walk.visit(str(root), "", frozenset(), DEFAULT_RULES), key=lambda path: path.split("/"))
    for found in (walk.listing.skipped, walk.listing.problems):
        found.sort(key=lambda item: item.path)
    return walk.listing


def has_suffix(name: str, suffixes: tuple[str, ...]) -> bool:
    """Return whether a name ends with one of the suffixes, in any case."""
    return name.lower().endswith(suffixes)


def is_page(path: str) -> bool:
    """Return whether a file is a document by its name: a suffix, or a README without one."""
    return has_suffix(path, SUFFIXES) or path.rpartition("/")[2].lower() == README


class _Walk:
    def __init__(self, root: Path, manifests: Manifests, is_own: Callable[[str], bool]) -> None:
        self._is_own = is_own
        self.listing = Listing()
        self._manifests = manifests
        self._real_root = os.path.realpath(root)
        self._visits: Counter[str] = Counter()
        self._named: set[str] = set()  # by a manifest, which wins over every ignore file

    def visit(self, folder: str, inside: str, above: frozenset[str], rules: Sequence[Rule]) -> Iterator[str]:
        """Yield the files below a folder; `inside` is its path with a slash at the end."""
        real = os.path.realpath(folder)
        self._visits[real] += 1
        if real in above or self._visits[real] > MAX_VISITS:
            self._skip(inside, "a link to a folder that is indexed elsewhere")
            return
        if len(above) > MAX_DEPTH:
            self._lose(inside, f"nested more than {MAX_DEPTH} folders deep")
            return
        try:
            entries = {entry.name: entry for entry in os.scandir(folder)}
        except OSError as error:
            self._lose(inside, f"folder cannot be read: {error.strerror}")
            return
        if MANIFEST in entries:
            self._read_names(inside)
        if not entries.keys().isdisjoint(IGNORE_FILES):
            rules = [*rules, *rules_in(Path(folder), inside, entries.keys())]
        for name, entry in entries.items():
            if name.startswith("."):
                continue
            if self._is_own(entry.path):
                self._skip(inside + name, "belongs to the server itself")
                continue
            if _is_folder(entry):
                if (below := self._rules_below(entry, f"{inside}{name}/", rules, entries)) is not None:
                    yield from self.visit(entry.path, f"{inside}{name}/", above | {real}, below)
            elif self._is_file_indexed(entry, inside + name, rules):
                yield inside + name

    def _read_names(self, inside: str) -> None:
        """Remember the files that a manifest names without wildcards."""
        self.listing.manifest_folders.append(inside.removesuffix("/"))
        manifests, _ = self._manifests.read_all([inside.removesuffix("/")])
        patterns = [override.pattern for manifest in manifests for override in manifest.overrides]
        self._named |= {inside + pattern for pattern in patterns if not GLOB_SIGNS.search(pattern)}

    def _rules_below(
        self, entry: "os.DirEntry[str]", path: str, rules: Sequence[Rule], siblings: "dict[str, os.DirEntry[str]]"
    ) -> Sequence[Rule] | None:
        """Return the rules for the files in a folder; None if the folder is not indexed."""
        if UNPRINTABLE.search(entry.name):
            self._lose(path, "the name of the folder has characters that cannot be printed")
            return None
        if entry.is_symlink() and not self._is_inside(entry.path):
            self._lose(path, "a link out of the documents folder, not followed")
            return None
        rule = deciding_rule(rules, path.removesuffix("/"), is_folder=True)
        if rule is None:
            origin = PACKAGES if is_vendored(Path(entry.path), siblings) else None
        else:
            origin = None if rule.is_negated else rule.origin
        if origin is None:
            return rules
        if any(name.startswith(path) for name in self._named):
            return [*rules, everything_in(path, origin)]
        self._skip(path, f"ignored by {origin}")
        return None

    def _is_file_indexed(self, entry: "os.DirEntry[str]", path: str, rules: Sequence[Rule]) -> bool:
        if not is_page(entry.name) and not has_suffix(entry.name, TEMPLATE_SUFFIXES):
            if has_suffix(entry.name, OTHER_SUFFIXES):
                self._skip(path, f"format not supported ({Path(entry.name).suffix})")
            return False
        rule = None if path in self._named else deciding_rule(rules, path, is_folder=False)
        if rule is not None and not rule.is_negated:
            return self._skip(path, f"ignored by {rule.origin}")
        if UNPRINTABLE.search(entry.name):
            return self._lose(path, "the name of the file has characters that cannot be printed")
        if entry.is_symlink():
            return self._is_inside(entry.path) or self._lose(path, "a link out of the documents folder, not followed")
        return _is_regular(entry) or self._skip(path, "not a regular file")

    def _is_inside(self, path: str) -> bool:
        """Return whether a link leads to a place inside the documents folder."""
        return Path(os.path.realpath(path)).is_relative_to(self._real_root)

    def _skip(self, path: str, reason: str) -> bool:
        self.listing.skipped.append(SkippedFile(_printable(path), reason))
        return False

    def _lose(self, path: str, reason: str) -> bool:
        self.listing.problems.append(PageProblem(_printable(path), reason))
        return False


def _printable(path: str) -> str:
    return UNPRINTABLE.sub("\ufffd", path)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # the link points to itself
        return False


def _is_regular(entry: "os.DirEntry[str]") -> bool:
    """Return whether an entry is neither a pipe nor a device."""
    try:
        return entry.is_file()
    except OSError:
        return False
