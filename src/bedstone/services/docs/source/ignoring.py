"""Decide which files are not documentation: `.gitignore`, `.bedstoneignore`, installed packages, licences."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from bedstone.services.docs.source.globs import glob_pattern

IGNORE_FILES = (".gitignore", ".bedstoneignore")  # in this order: the last matching pattern decides
DEFAULTS = "built-in patterns"
# A page that explains a licence key has a name in lower case; the licence itself has one in capitals.
DEFAULT_PATTERNS = """
node_modules/
bower_components/
site-packages/
__pycache__/
LICENSE.*
LICENCE.*
LICENSE-*.*
LICENCE-*.*
License.txt
license.txt
licence.txt
COPYING.*
NOTICE.*
THIRD-PARTY-NOTICES.*
"""
VENDOR_FOLDERS = ("vendor", "third_party")
# A folder with such a name holds installed packages if a package manager left one of these in it or beside it.
VENDOR_CONTENTS = ("modules.txt", "autoload.php", "bundle")
VENDOR_NEIGHBOURS = ("go.mod", "composer.json", "Gemfile", "Cargo.toml", "package.json")
MAX_WILDCARDS = 8  # matching time grows exponentially with them
WILDCARD = re.compile(r"\*+")


@dataclass(frozen=True)
class Rule:
    """One line of an ignore file; it matches paths below the folder of that file."""

    folder: str  # with a slash at the end, empty for the documents folder
    pattern: re.Pattern[str]
    is_negated: bool
    folders_only: bool
    origin: str

    def matches(self, path: str, is_folder: bool) -> bool:
        """Return whether the rule applies to a path."""
        if (self.folders_only and not is_folder) or not path.startswith(self.folder):
            return False
        return self.pattern.fullmatch(path, len(self.folder)) is not None


def parse_rules(text: str, folder: str, origin: str) -> list[Rule]:
    """Parse the lines of an ignore file, as git reads them."""
    rules = []
    for line in text.splitlines():
        glob = line if line.endswith("\\ ") else line.rstrip()
        if not glob or glob.startswith("#") or len(WILDCARD.findall(glob)) > MAX_WILDCARDS:
            continue
        is_negated = glob.startswith("!")
        glob = glob.removeprefix("!").removeprefix("\\")
        folders_only = glob.endswith("/")
        glob = glob.rstrip("/")
        is_anchored = "/" in glob
        glob = glob.removeprefix("/").replace("{", "[{]")
        try:
            pattern = glob_pattern(glob if is_anchored else f"**/{glob}")
        except re.error:  # git ignores such a line too
            continue
        rules.append(Rule(folder, pattern, is_negated, folders_only, origin))
    return rules


DEFAULT_RULES = tuple(parse_rules(DEFAULT_PATTERNS, "", DEFAULTS))


def everything_in(folder: str, origin: str) -> Rule:
    """Return the rule that ignores all of a folder."""
    return Rule(folder, re.compile(r".*"), is_negated=False, folders_only=False, origin=origin)


def rules_in(folder: Path, inside: str, names: Collection[str]) -> list[Rule]:
    """Return the rules of the ignore files among the names in a folder; one that cannot be read has none."""
    rules: list[Rule] = []
    for name in IGNORE_FILES:
        if name in names:
            try:
                text = (folder / name).read_text(encoding="utf-8-sig", errors="replace")
            except OSError:
                continue
            rules += parse_rules(text, inside, f"{inside}{name}")
    return rules


def deciding_rule(rules: Sequence[Rule], path: str, *, is_folder: bool) -> Rule | None:
    """Return the last rule that matches a path, which decides."""
    return next((rule for rule in reversed(rules) if rule.matches(path, is_folder)), None)


def is_vendored(folder: Path, siblings: Collection[str]) -> bool:
    """Return whether a folder holds the packages of others, given the names beside it."""
    if folder.name not in VENDOR_FOLDERS:
        return False
    return any(name in siblings for name in VENDOR_NEIGHBOURS) or any(
        (folder / name).exists() for name in VENDOR_CONTENTS
    )
