"""Glob patterns over paths with forward slashes: `*`, `**`, `?`, `[abc]` and `{a,b}`."""

import re
from functools import cache

SPECIAL = re.compile(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\]|\{[^}]*\})")
WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@cache
def glob_pattern(glob: str) -> re.Pattern[str]:
    """The regular expression of a glob; dotfiles are matched like any other."""
    return re.compile(_expressions(glob))


def literal(path: str) -> str:
    """The glob that matches this path alone."""
    return re.sub(r"([*?\[{])", r"[\1]", path)


def _expressions(glob: str) -> str:
    return "".join(_expression(part) for part in SPECIAL.split(glob))


def _expression(part: str) -> str:
    if part in WILDCARDS:
        return WILDCARDS[part]
    if part.startswith("[") and part.endswith("]"):
        inside = part[1:-1]
        no, letters = ("^", inside[1:]) if inside[0] in "!^" else ("", inside)
        return f"[{no}{re.escape(letters)}]".replace(r"\-", "-")
    if part.startswith("{") and part.endswith("}"):
        return f"(?:{'|'.join(_expressions(option) for option in part[1:-1].split(','))})"
    return re.escape(part)
