"""Proposes a manifest for documents that have none, from the headings they use."""

from collections import Counter
from typing import Any

from bedstone.errors import BedstoneError
from bedstone.services.docs.source.folder import DocumentsFolder
from bedstone.services.docs.source.globs import literal

PREFERENCE = ("h2", "h1", "h3", "file")
MANY_DEEP, SEVERAL = 6, 2


def suggest_manifest(folder: DocumentsFolder) -> dict[str, Any]:
    """The commonest way to cut as the default, the others as overrides by path."""
    choices: dict[str, str] = {}
    for path in folder.paths():
        try:
            file = folder.read(path)
        except BedstoneError:
            continue
        levels = Counter(block.level for block in file.blocks(file.text) if block.level)
        choices[path] = suggest_level(levels)
    counts = Counter(choices.values())
    default = min(PREFERENCE, key=lambda choice: (-counts[choice], PREFERENCE.index(choice)))
    overrides = [
        {"pattern": literal(path), "strategy": {"chunk_by": choice}}
        for path, choice in sorted(choices.items())
        if choice != default
    ]
    manifest: dict[str, Any] = {"version": "1", "strategy": {"chunk_by": default}}
    return manifest | ({"overrides": overrides} if overrides else {})


def suggest_level(levels: Counter[int]) -> str:
    """How to cut a file with so many headings of each level."""
    if not levels:
        return "file"
    if levels[3] >= MANY_DEEP and levels[3] >= 2 * levels[2]:
        return "h3"
    for level in (2, 1, 3):
        if levels[level] >= SEVERAL:
            return f"h{level}"
    return "file"
