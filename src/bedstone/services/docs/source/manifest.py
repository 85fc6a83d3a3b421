"""Parse `.docs-mcp.json`: how to chunk and label the files of a folder."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bedstone.errors import InvalidInput, explain
from bedstone.ingest.chunking.by_heading import Strategy
from bedstone.services.docs.source.globs import glob_pattern

NAME = ".docs-mcp.json"
ROOT = ""  # the documents folder itself
WILDCARDS = re.compile(r"\*+")
MAX_WILDCARDS = 8  # matching time grows exponentially with them
KEYS = {"$schema", "version", "strategy", "metadata", "taxonomy", "mcpServerInstructions", "overrides"}


class InvalidManifest(InvalidInput):
    """A manifest, front matter or hint is invalid."""

    code = "invalid_manifest"


@dataclass(frozen=True)
class Override:
    """Settings for the files that match a pattern."""

    pattern: str
    strategy: Strategy | None
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class FacetSettings:
    """Settings of one facet."""

    description: str | None = None
    vector_collapse: bool = False
    resources: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Manifest:
    """A manifest; `folder` is relative to the documents folder."""

    folder: str = ROOT
    strategy: Strategy | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    taxonomy: Mapping[str, FacetSettings] = field(default_factory=dict)
    instructions: str | None = None
    overrides: tuple[Override, ...] = ()
    unknown_keys: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the path of the manifest."""
        return f"{self.folder}/{NAME}" if self.folder else NAME

    def relative_path(self, path: str) -> str:
        """Return the path of a file relative to the folder of the manifest."""
        return path[len(self.folder) + 1 :] if self.folder else path

    def plan(self, path: str) -> tuple[Strategy, dict[str, str]]:
        """Return strategy and metadata of a file; every matching override applies, in order."""
        strategy, metadata = self.strategy or Strategy(), dict(self.metadata)
        relative = self.relative_path(path) if self.overrides else ""
        for override in self.overrides:
            if glob_pattern(override.pattern).fullmatch(relative):
                strategy = override.strategy or strategy
                metadata |= override.metadata
        return strategy, metadata


class Manifests:
    """The manifests of a documents folder, each read once. Only the nearest one above a file applies to it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._nearest: dict[str, Manifest | InvalidManifest | None] = {}

    def nearest(self, path: str) -> Manifest | None:
        """Return the manifest that governs a file, if there is one; raise InvalidManifest if it is invalid."""
        manifest = self._find_above(path.rpartition("/")[0])
        if isinstance(manifest, InvalidManifest):
            raise InvalidManifest(manifest.message)
        return manifest

    def read_all(self, folders: Iterable[str]) -> tuple[list[Manifest], list[str]]:
        """Return the valid manifests of these folders in order, and the errors of the others."""
        manifests = [self._find_above(folder) for folder in sorted(set(folders))]
        errors = [item.message for item in manifests if isinstance(item, InvalidManifest)]
        return [item for item in manifests if isinstance(item, Manifest)], errors

    def _find_above(self, folder: str) -> Manifest | InvalidManifest | None:
        if folder not in self._nearest:
            own = self._read(folder)
            self._nearest[folder] = self._find_above(folder.rpartition("/")[0]) if own is None and folder else own
        return self._nearest[folder]

    def _read(self, folder: str) -> Manifest | InvalidManifest | None:
        """Read the manifest of a folder; an invalid one is returned as its error."""
        file = self._root / folder / NAME
        if not file.is_file():
            return None
        try:
            return parse_manifest(file.read_text(encoding="utf-8"), folder)
        except (InvalidManifest, UnicodeDecodeError) as error:
            return InvalidManifest(f"{Manifest(folder).name}: {explain(error)}")


def root_manifest(manifests: Iterable[Manifest]) -> Manifest:
    """Return the manifest of the documents folder itself, the only one whose words reach agents.

    A folder below may come from elsewhere: what its manifest says to agents would pass for words of this server.
    """
    return next((item for item in manifests if item.folder == ROOT), Manifest())


def ignored_words(manifests: Iterable[Manifest]) -> list[str]:
    """Return a warning for each text that a manifest of a folder below addresses to agents."""
    found = []
    for manifest in manifests:
        if manifest.folder == ROOT:
            continue
        texts = [f"taxonomy.{key}.description" for key, item in manifest.taxonomy.items() if item.description]
        texts += ["mcpServerInstructions"] if manifest.instructions else []
        found += [f"{manifest.name}: {key} ignored, only {NAME} of the documents folder can set it" for key in texts]
    return found


def parse_manifest(text: str, folder: str = ROOT) -> Manifest:
    """Parse a manifest; errors name the invalid key."""
    try:
        data = json.loads(text)
        json.dumps(data, ensure_ascii=False).encode()  # rejects lone surrogates
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
        taxonomy=_parse_taxonomy(data.get("taxonomy", {})),
        instructions=instructions,
        overrides=_parse_overrides(data.get("overrides", [])),
        unknown_keys=tuple(sorted(set(data) - KEYS)),
    )


def parse_strategy(data: Any, base: Strategy | None = None) -> Strategy:
    """Parse a strategy; missing values come from `base` or the defaults."""
    if not isinstance(data, dict):
        raise InvalidManifest("strategy must be an object")
    base = base or Strategy()
    chunk_by = data.get("chunk_by", base.chunk_by)
    if chunk_by not in ("h1", "h2", "h3", "file"):  # a tuple, because the value may not be hashable
        raise InvalidManifest("chunk_by must be one of: h1, h2, h3, file")
    sizes = {"max_chunk_size": base.max_chunk_size, "min_chunk_size": base.min_chunk_size}
    for name in sizes:
        if name in data:
            if not isinstance(data[name], int) or isinstance(data[name], bool) or data[name] <= 0:
                raise InvalidManifest(f"{name} must be a positive integer")
            sizes[name] = data[name]
    return Strategy(chunk_by, **sizes)


def parse_metadata(data: Any, name: str) -> dict[str, str]:
    """Parse labels: strings by name."""
    if not isinstance(data, dict):
        raise InvalidManifest(f"{name} must be an object")
    for key, value in data.items():
        if not isinstance(key, str):
            raise InvalidManifest(f"{name}.{key}: the key must be a string")
        if not key.strip():
            raise InvalidManifest(f"{name} contains an empty key")
        if not isinstance(value, str):
            raise InvalidManifest(f"{name}.{key} must be a string")
        if not value.strip():
            raise InvalidManifest(f"{name}.{key} cannot be empty")
    return dict(data)


def _parse_overrides(data: Any) -> tuple[Override, ...]:
    if not isinstance(data, list):
        raise InvalidManifest("manifest.overrides must be an array")
    return tuple(_parse_override(item, f"manifest.overrides[{number}]") for number, item in enumerate(data))


def _parse_override(data: Any, name: str) -> Override:
    if not isinstance(data, dict):
        raise InvalidManifest(f"{name} must be an object")
    pattern = data.get("pattern")
    if not isinstance(pattern, str) or not pattern.strip():
        raise InvalidManifest(f"{name}.pattern must be a non-empty string")
    if len(WILDCARDS.findall(pattern)) > MAX_WILDCARDS:
        raise InvalidManifest(f"{name}.pattern has more than {MAX_WILDCARDS} wildcards")
    try:
        glob_pattern(pattern)
    except re.error:
        raise InvalidManifest(f"{name}.pattern is not a valid pattern: {pattern}") from None
    strategy = parse_strategy(data["strategy"]) if "strategy" in data else None
    return Override(pattern, strategy, parse_metadata(data.get("metadata", {}), f"{name}.metadata"))


def _parse_taxonomy(data: Any) -> dict[str, FacetSettings]:
    if not isinstance(data, dict):
        raise InvalidManifest("Invalid taxonomy config: taxonomy must be an object")
    return {key: _parse_facet(key, value) for key, value in data.items()}


def _parse_facet(key: str, data: Any) -> FacetSettings:
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
