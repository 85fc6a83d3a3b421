"""Parse the settings inside a document: YAML front matter, and a chunking hint in an HTML comment."""

import json
import re
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from bedstone.ingest.chunking.by_heading import LEVELS, Strategy
from bedstone.ingest.markdown import FRONT_MATTER
from bedstone.services.docs.source.manifest import InvalidManifest, parse_metadata, parse_strategy

HINT = re.compile(r"<!--\s*mcp_chunking_hint:\s*(\{[^<]{0,300}?\})\s*-->")
LISTING = re.compile(r"^(`{3,}|~{3,}).*?^\1", re.DOTALL | re.MULTILINE)
HINT_START = re.compile(r"<!--\s*mcp_chunking_hint")


@dataclass(frozen=True)
class FrontMatter:
    """A document without its front matter, and the settings from it."""

    body: str
    title: str = ""
    strategy: Strategy | None = None
    chunk_by: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)

    def apply(self, strategy: Strategy, metadata: dict[str, str]) -> tuple[Strategy, dict[str, str]]:
        """Return strategy and metadata; the front matter overrides a hint, a hint overrides the manifest."""
        if chunk_by := self._find_hint():
            strategy = replace(strategy, chunk_by=chunk_by)
        if self.chunk_by:
            strategy = parse_strategy({"chunk_by": self.chunk_by})
        return self.strategy or strategy, metadata | self.metadata

    @property
    def has_invalid_hint(self) -> bool:
        """Return whether the text has a hint that cannot be parsed."""
        return HINT_START.search(LISTING.sub("", self.body)) is not None and self._find_hint() is None

    def _find_hint(self) -> Any:
        hint = HINT.search(LISTING.sub("", self.body)) if "mcp_chunking_hint" in self.body else None
        return _parse_hint(hint[1]) if hint else None


def split_front_matter(source: str) -> FrontMatter:
    """Split off the front matter; raise InvalidManifest for invalid YAML."""
    front = FRONT_MATTER.match(source)
    if not front:
        return FrontMatter(source)
    try:
        data = parse_yaml(front[1])
    except InvalidManifest as error:
        raise InvalidManifest(f"front matter is {error.message}") from None
    body = source[front.end() :]
    return _parse_fields(data, body) if isinstance(data, dict) else FrontMatter(body)


def parse_yaml(text: str) -> Any:
    """Parse YAML into plain data; the parser is imported on first use, because many corpora have none."""
    import yaml  # noqa: PLC0415

    try:
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    # An invalid date, a value that does not fit its tag, deep nesting.
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise InvalidManifest(f"not valid YAML: {lines[0]}") from None


def _parse_fields(data: dict[str, Any], body: str) -> FrontMatter:
    hint = data.get("mcp_chunking_hint")
    metadata = [
        parse_metadata(data[name], name)
        for name in ("metadata", "mcp_metadata")
        if isinstance(data.get(name), dict) or (name == "mcp_metadata" and data.get(name) is not None)
    ]
    title = data.get("title")
    title = title if isinstance(title, str | int | float | date) else None  # ignore lists and mappings
    return FrontMatter(
        body=body,
        title=str(title) if title is not None else "",
        strategy=parse_strategy(data["mcp_strategy"]) if "mcp_strategy" in data else None,
        chunk_by=_parse_chunk_by(hint.get("chunk_by") if isinstance(hint, dict) else hint),
        metadata={key: value for part in metadata for key, value in part.items()},
    )


def _parse_chunk_by(value: Any) -> str | None:
    if value is not None and (not isinstance(value, str) or value not in LEVELS):
        raise InvalidManifest("chunk_by must be one of: h1, h2, h3, file")
    return value


def _parse_hint(text: str) -> Any:
    try:
        chunk_by = json.loads(text).get("chunk_by")
    except (ValueError, AttributeError, RecursionError):
        return None
    return chunk_by if isinstance(chunk_by, str) and chunk_by in LEVELS else None
