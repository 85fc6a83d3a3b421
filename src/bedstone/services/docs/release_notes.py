"""Recognize release notes and changelogs, and queries that ask for them.

They mention every feature in the words of a question, and explain none.
"""

import re

CHANGELOG = re.compile(r"change-?logs?|release-?notes?|rel-?notes?|whats-?new|release-?history|version-?history")
# These may also be the name of a feature: a page there needs a number in its name, or a title that says what it is.
PERHAPS = frozenset({"release", "releases", "changes", "news", "history", "announce", "announcements", "updates"})
HINTS = ("change", "rel", "what", "version", "news", "history", "announce", "updates")  # without one, no need to look
ENDING = re.compile(r"\.[a-z]+$")
SIGNS = re.compile(r"[\d._ -]+")
DIGIT = re.compile(r"\d")
TITLE = re.compile(r"\b(?:release notes?|change ?log|what[\u2019']?s new|(?:version|release) history)\b", re.IGNORECASE)
ASKING = re.compile(
    r"\b(?:release[sd]?|releasing|change ?logs?|changes|changed|new in|what(?:['\u2019]?s| is| are| was)(?: the)? new"
    r"|news|versions?|upgrad\w+|deprecat\w+|removed|announce\w*|breaking|bug ?fix\w*|fixed in|since|introduced"
    r"|when was|v?\d+\.\d+)\b",
    re.IGNORECASE,
)


def is_release_notes(path: str, title: str) -> bool:
    """Return whether a page lists what changed, by its path and title."""
    text = f"{path} {title}".lower()
    if not any(hint in text for hint in HINTS):
        return False
    segments = [_name(segment) for segment in path.lower().split("/")]
    if any(CHANGELOG.fullmatch(segment) for segment in segments) or TITLE.search(title):
        return True
    if PERHAPS.isdisjoint(segments):
        return False
    return DIGIT.search(path.rpartition("/")[2]) is not None


def asks_for_release_notes(query: str) -> bool:
    """Return whether a query is about versions and what changed in them."""
    return ASKING.search(query) is not None


def _name(segment: str) -> str:
    """Return a part of a path without ending, numbers and the signs around them: `changelog_13.rst` is `changelog`."""
    return SIGNS.sub("-", ENDING.sub("", segment.replace("'", ""))).strip("-")
