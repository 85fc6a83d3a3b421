"""What a document says of itself: YAML at its top, and a hint in an HTML comment."""

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
MENTIONED_HINT = re.compile(r"<!--\s*mcp_chunking_hint")


@dataclass(frozen=True)
class FrontMatter:
    """A document without its front matter, and what that said."""

    body: str
    title: str = ""
    strategy: Strategy | None = None
    chunk_by: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)

    def apply(self, strategy: Strategy, metadata: dict[str, str]) -> tuple[Strategy, dict[str, str]]:
        """The weakest first: what the manifests said, a hint in the text, the front matter."""
        if chunk_by := self._hint():
            strategy = replace(strategy, chunk_by=chunk_by)
        if self.chunk_by:
            strategy = parse_strategy({"chunk_by": self.chunk_by})
        return self.strategy or strategy, metadata | self.metadata

    @property
    def invalid_hint(self) -> bool:
        """Whether there is a hint in the text that says nothing we know."""
        return MENTIONED_HINT.search(LISTING.sub("", self.body)) is not None and self._hint() is None

    def _hint(self) -> Any:
        found = HINT.search(LISTING.sub("", self.body)) if "mcp_chunking_hint" in self.body else None
        return _hinted(found[1]) if found else None


def split_front_matter(source: str) -> FrontMatter:
    """Take the front matter off; YAML that cannot be read is an error."""
    found = FRONT_MATTER.match(source)
    if not found:
        return FrontMatter(source)
    try:
        data = parse_yaml(found[1])
    except InvalidManifest as error:
        raise InvalidManifest(f"front matter is {error.message}") from None
    body = source[found.end() :]
    return _read(data, body) if isinstance(data, dict) else FrontMatter(body)


def parse_yaml(text: str) -> Any:
    """Plain data; the parser is loaded when the first text comes, many corpora have none."""
    import yaml  # noqa: PLC0415

    try:
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    # A date that does not exist, a value that does not fit its tag, a thousand brackets.
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        said = str(error).splitlines() or [type(error).__name__]
        raise InvalidManifest(f"not valid YAML: {said[0]}") from None


def _read(data: dict[str, Any], body: str) -> FrontMatter:
    hint = data.get("mcp_chunking_hint")
    metadata = [
        parse_metadata(data[name], name)
        for name in ("metadata", "mcp_metadata")
        if isinstance(data.get(name), dict) or (name == "mcp_metadata" and data.get(name) is not None)
    ]
    title = data.get("title")
    title = title if isinstance(title, str | int | float | date) else None  # not a list of lists of lists
    return FrontMatter(
        body=body,
        title=str(title) if title is not None else "",
        strategy=parse_strategy(data["mcp_strategy"]) if "mcp_strategy" in data else None,
        chunk_by=_chunk_by(hint.get("chunk_by") if isinstance(hint, dict) else hint),
        metadata={key: value for part in metadata for key, value in part.items()},
    )


def _chunk_by(value: Any) -> str | None:
    if value is not None and (not isinstance(value, str) or value not in LEVELS):
        raise InvalidManifest("chunk_by must be one of: h1, h2, h3, file")
    return value


def _hinted(text: str) -> Any:
    try:
        chunk_by = json.loads(text).get("chunk_by")
    except (ValueError, AttributeError, RecursionError):
        return None
    return chunk_by if isinstance(chunk_by, str) and chunk_by in LEVELS else None
