"""Glob patterns over paths with forward slashes: `*`, `**`, `?`, `[abc]` and `{a,b}`."""

import re
from functools import cache

SPECIAL = re.compile(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\]|\{[^}]*\})")
WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@cache
def glob_pattern(glob: str) -> re.Pattern[str]:
    """Return the regular expression of a glob; it matches dotfiles too."""
    return re.compile(_translate(glob))


def escape_glob(path: str) -> str:
    """Return the glob that matches only this path."""
    return re.sub(r"([*?\[{])", r"[\1]", path)


def _translate(glob: str) -> str:
    return "".join(_translate_part(part) for part in SPECIAL.split(glob))


def _translate_part(part: str) -> str:
    if part in WILDCARDS:
        return WILDCARDS[part]
    if part.startswith("[") and part.endswith("]"):
        inside = part[1:-1]
        negation, letters = ("^", inside[1:]) if inside[0] in "!^" else ("", inside)
        return f"[{negation}{re.escape(letters)}]".replace(r"\-", "-")
    if part.startswith("{") and part.endswith("}"):
        return f"(?:{'|'.join(_translate(option) for option in part[1:-1].split(','))})"
    return re.escape(part)
