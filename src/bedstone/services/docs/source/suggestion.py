"""Suggest a manifest for documents without one, based on their headings."""

from collections import Counter
from typing import Any

from bedstone.errors import BedstoneError
from bedstone.services.docs.source.folder import DocumentsFolder
from bedstone.services.docs.source.globs import escape_glob

PREFERENCE = ("h2", "h1", "h3", "file")
MIN_H3_HEADINGS = 6  # from which a file is chunked at h3
MIN_HEADINGS = 2


def suggest_manifest(folder: DocumentsFolder) -> dict[str, Any]:
    """Return a manifest with the most common chunking as default, and the others as overrides by path."""
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
        {"pattern": escape_glob(path), "strategy": {"chunk_by": choice}}
        for path, choice in sorted(choices.items())
        if choice != default
    ]
    manifest: dict[str, Any] = {"version": "1", "strategy": {"chunk_by": default}}
    return manifest | ({"overrides": overrides} if overrides else {})


def suggest_level(levels: Counter[int]) -> str:
    """Return how to chunk a file, given the number of its headings by level."""
    if not levels:
        return "file"
    if levels[3] >= MIN_H3_HEADINGS and levels[3] >= 2 * levels[2]:
        return "h3"
    for level in (2, 1, 3):
        if levels[level] >= MIN_HEADINGS:
            return f"h{level}"
    return "file"
