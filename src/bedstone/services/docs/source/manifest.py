"""`.docs-mcp.json`: how the files of a folder are cut and labelled."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bedstone.errors import InvalidInput
from bedstone.ingest.chunking.by_heading import Strategy
from bedstone.services.docs.source.globs import glob_pattern

NAME = ".docs-mcp.json"
TOP = ""  # the documents' own folder, relative to itself
WILDCARDS, MOST_WILDCARDS = re.compile(r"\*+"), 8  # more take for ever to compare
KEYS = {"$schema", "version", "strategy", "metadata", "taxonomy", "mcpServerInstructions", "overrides"}


class InvalidManifest(InvalidInput):
    """A manifest, front matter or hint says something that cannot be understood."""

    code = "invalid_manifest"


@dataclass(frozen=True)
class Override:
    """Settings for the files a pattern matches."""

    pattern: str
    strategy: Strategy | None
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class FacetSettings:
    """What a taxonomy says of one facet."""

    description: str | None = None
    vector_collapse: bool = False
    resources: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Manifest:
    """One manifest; `folder` is relative to the documents."""

    folder: str = TOP
    strategy: Strategy | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    taxonomy: Mapping[str, FacetSettings] = field(default_factory=dict)
    instructions: str | None = None
    overrides: tuple[Override, ...] = ()
    unknown_keys: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Where it lies."""
        return f"{self.folder}/{NAME}" if self.folder else NAME

    def inside(self, path: str) -> str:
        """A governed file's path from the manifest's folder."""
        return path[len(self.folder) + 1 :] if self.folder else path

    def plan(self, path: str) -> tuple[Strategy, dict[str, str]]:
        """How to cut and label a file: every matching override applies, in order."""
        strategy, metadata = self.strategy or Strategy(), dict(self.metadata)
        inside = self.inside(path) if self.overrides else ""
        for override in self.overrides:
            if glob_pattern(override.pattern).fullmatch(inside):
                strategy = override.strategy or strategy
                metadata |= override.metadata
        return strategy, metadata


class Manifests:
    """The manifests of a documents folder, each read once; the nearest one above a file counts alone."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._nearest: dict[str, Manifest | InvalidManifest | None] = {}

    def nearest(self, path: str) -> Manifest | None:
        """The manifest of a file, if there is one between it and the top of the documents."""
        manifest = self._above(path.rpartition("/")[0])
        if isinstance(manifest, InvalidManifest):
            raise InvalidManifest(manifest.message)
        return manifest

    def united(self, folders: Iterable[str]) -> tuple[list[Manifest], list[str]]:
        """The manifests of these folders in order, and what is wrong with those that cannot be read."""
        found = [self._above(folder) for folder in sorted(set(folders))]
        broken = [item.message for item in found if isinstance(item, InvalidManifest)]
        return [item for item in found if isinstance(item, Manifest)], broken

    def _above(self, folder: str) -> Manifest | InvalidManifest | None:
        if folder not in self._nearest:
            own = self._read(folder)
            self._nearest[folder] = self._above(folder.rpartition("/")[0]) if own is None and folder else own
        return self._nearest[folder]

    def _read(self, folder: str) -> Manifest | InvalidManifest | None:
        """A folder's own manifest; one that is wrong is said for every file it governs, but read once."""
        file = self._root / folder / NAME
        if not file.is_file():
            return None
        try:
            return parse_manifest(file.read_text(encoding="utf-8"), folder)
        except (InvalidManifest, UnicodeDecodeError) as error:
            return InvalidManifest(f"{Manifest(folder).name}: {error}")


def parse_manifest(text: str, folder: str = TOP) -> Manifest:
    """Read a manifest; messages name the key that is wrong."""
    try:
        data = json.loads(text)
        json.dumps(data, ensure_ascii=False).encode()  # half of a sign is none
    except (ValueError, RecursionError):
        raise InvalidManifest("Manifest is not valid JSON") from None
    if not isinstance(data, dict):
        raise InvalidManifest("manifest must be an object")
    if data.get("version") != "1":
        raise InvalidManifest("manifest.version must be '1'")
    instructions = data.get("mcpServerInstructions")
    if instructions is not None and (not isinstance(instructions, str) or not instructions.strip()):
        raise InvalidManifest("manifest.mcpServerInstructions must be a non-empty string")
    return Manifest(
        folder=folder,
        strategy=parse_strategy(data["strategy"]) if "strategy" in data else None,
        metadata=parse_metadata(data.get("metadata", {}), "manifest.metadata"),
        taxonomy=_taxonomy(data.get("taxonomy", {})),
        instructions=instructions,
        overrides=_overrides(data.get("overrides", [])),
        unknown_keys=tuple(sorted(set(data) - KEYS)),
    )


def parse_strategy(data: Any, base: Strategy | None = None) -> Strategy:
    """A strategy; what it does not say comes from `base` or the defaults."""
    if not isinstance(data, dict):
        raise InvalidManifest("strategy must be an object")
    base = base or Strategy()
    chunk_by = data.get("chunk_by", base.chunk_by)
    if chunk_by not in ("h1", "h2", "h3", "file"):  # a tuple: what is compared may be anything
        raise InvalidManifest("chunk_by must be one of: h1, h2, h3, file")
    sizes = {"max_chunk_size": base.max_chunk_size, "min_chunk_size": base.min_chunk_size}
    for name in sizes:
        if name in data:
            if not isinstance(data[name], int) or isinstance(data[name], bool) or data[name] <= 0:
                raise InvalidManifest(f"{name} must be a positive integer")
            sizes[name] = data[name]
    return Strategy(chunk_by, **sizes)


def parse_metadata(data: Any, name: str) -> dict[str, str]:
    """Labels: strings by name."""
    if not isinstance(data, dict):
        raise InvalidManifest(f"{name} must be an object")
    for key, value in data.items():
        if not isinstance(key, str):
            raise InvalidManifest(f"{name}.{key} must have a name that is a string")
        if not key.strip():
            raise InvalidManifest(f"{name} contains an empty key")
        if not isinstance(value, str):
            raise InvalidManifest(f"{name}.{key} must be a string")
        if not value.strip():
            raise InvalidManifest(f"{name}.{key} cannot be empty")
    return dict(data)


def _overrides(data: Any) -> tuple[Override, ...]:
    if not isinstance(data, list):
        raise InvalidManifest("manifest.overrides must be an array")
    return tuple(_override(item, f"manifest.overrides[{number}]") for number, item in enumerate(data))


def _override(data: Any, name: str) -> Override:
    if not isinstance(data, dict):
        raise InvalidManifest(f"{name} must be an object")
    pattern = data.get("pattern")
    if not isinstance(pattern, str) or not pattern.strip():
        raise InvalidManifest(f"{name}.pattern must be a non-empty string")
    if len(WILDCARDS.findall(pattern)) > MOST_WILDCARDS:
        raise InvalidManifest(f"{name}.pattern has more than {MOST_WILDCARDS} wildcards")
    try:
        glob_pattern(pattern)
    except re.error:
        raise InvalidManifest(f"{name}.pattern is no pattern: {pattern}") from None
    strategy = parse_strategy(data["strategy"]) if "strategy" in data else None
    return Override(pattern, strategy, parse_metadata(data.get("metadata", {}), f"{name}.metadata"))


def _taxonomy(data: Any) -> dict[str, FacetSettings]:
    if not isinstance(data, dict):
        raise InvalidManifest("Invalid taxonomy config: taxonomy must be an object")
    return {key: _facet(key, value) for key, value in data.items()}


def _facet(key: str, data: Any) -> FacetSettings:
    if not isinstance(data, dict):
        raise InvalidManifest(f"Invalid taxonomy config: {key} must be an object")
    collapse, properties = data.get("vector_collapse", False), data.get("properties", {})
    description = data.get("description")
    if not isinstance(collapse, bool):
        raise InvalidManifest(f"Invalid taxonomy config: {key}.vector_collapse must be a boolean")
    if description is not None and not isinstance(description, str):
        raise InvalidManifest(f"Invalid taxonomy config: {key}.description must be a string")
    if not isinstance(properties, dict) or not all(isinstance(value, dict) for value in properties.values()):
        raise InvalidManifest(f"Invalid taxonomy config: {key}.properties must be an object of objects")
    resources = frozenset(value for value, settings in properties.items() if settings.get("mcp_resource") is True)
    return FacetSettings(description, collapse, resources)
