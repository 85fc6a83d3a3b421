"""Parse the settings inside a document: its front matter, and a chunking hint in an HTML comment."""

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from bedstone.ingest.chunking.by_heading import LEVELS, Strategy
from bedstone.ingest.formats.plain import MAPPING as YAML_LINE
from bedstone.ingest.markdown import FRONT_MATTER
from bedstone.services.docs.source.manifest import InvalidManifest, parse_strategy

HINT = re.compile(r"<!--\s*mcp_chunking_hint:\s*(\{[^<]{0,300}?\})\s*-->")
LISTING = re.compile(r"^(`{3,}|~{3,}).*?^\1", re.DOTALL | re.MULTILINE)
HINT_START = re.compile(r"<!--\s*mcp_chunking_hint")
TOML_FRONT_MATTER = re.compile(r"\A\+\+\+[ \t]*\r?\n(.*?)^\+\+\+[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
LINE_FIELD = re.compile(r"^([A-Za-z_][\w-]*)[ \t]*[:=](?=[ \t]|\r?$)[ \t]*(.*?)\r?$", re.MULTILINE)
LINE_FIELDS = ("title", "description", "summary", "keywords")
# What authors and site generators call the words that say what a page is about. They are searched, not shown.
ABOUT_FIELDS = (
    *("description", "summary", "abstract", "excerpt", "intro", "lead", "subtitle"),
    *("linktitle", "shorttitle", "sidebarlabel", "sidebartitle", "navtitle"),
    *("keywords", "tags", "aliases", "redirectfrom"),
)
MAX_ABOUT_CHARS = 2_000
QUOTES = re.compile(r"""^(["'])(.*)\1$""")
WORD = re.compile(r"\w")
NULLS = ("", "~", "null")


@dataclass(frozen=True)
class FrontMatter:
    """A document without its front matter, and the settings from it."""

    body: str
    title: str = ""
    description: str = ""
    about: str = ""  # the words of ABOUT_FIELDS, one field per line
    strategy: Strategy | None = None
    chunk_by: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()  # what of the front matter is not used, and why

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
    """Split off the front matter; what cannot be parsed is left out and named, and the body always stays."""
    if source.startswith("+++"):
        return _split_toml(source)
    front = FRONT_MATTER.match(source)
    if not front:
        return FrontMatter(source)
    body, problems = source[front.end() :], []
    try:
        # Untyped: a version stays "1.20", and an odd date is not an error.
        data = parse_yaml(front[1], typed=False)
    except InvalidManifest as error:
        if not all(map(YAML_LINE.match, front[1].splitlines())):  # text between two rules
            return FrontMatter(source)
        data = _fields_by_line(front[1])
        problems = [f"front matter is {error.message}; used only: {', '.join(data) or 'nothing'}"]
    if isinstance(data, dict):
        return _parse_fields(data, front[1], body, problems)
    return FrontMatter(source if data else body)


def parse_yaml(text: str, *, typed: bool = True) -> Any:
    """Parse YAML into plain data, or into strings; the parser is imported on first use: many corpora have none."""
    import yaml  # noqa: PLC0415

    name = "SafeLoader" if typed else "BaseLoader"
    try:
        return yaml.load(text, getattr(yaml, f"C{name}", getattr(yaml, name)))  # noqa: S506 - all are safe
    # An invalid date, a value that does not fit its tag, deep nesting.
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise InvalidManifest(f"not valid YAML: {lines[0]}") from None


def _split_toml(source: str) -> FrontMatter:
    """Split off the front matter between lines of `+++`, as Hugo writes it."""
    front = TOML_FRONT_MATTER.match(source)
    if not front:
        return FrontMatter(source)
    import tomllib  # noqa: PLC0415 - few corpora have it

    try:
        data = tomllib.loads(front[1])
        problems = []
    except (ValueError, RecursionError) as error:
        data = _fields_by_line(front[1])
        problems = [f"front matter is not valid TOML: {error}; used only: {', '.join(data) or 'nothing'}"]
    return _parse_fields(data, "", source[front.end() :], problems)


def _fields_by_line(text: str) -> dict[str, Any]:
    """Return the single-line fields that a page is shown by."""
    found = {name: QUOTES.sub(r"\2", value.strip()) for name, value in LINE_FIELD.findall(text) if name in LINE_FIELDS}
    return {name: value for name, value in found.items() if WORD.search(value)}


def _parse_fields(data: dict[str, Any], source: str, body: str, problems: list[str]) -> FrontMatter:
    problems = list(problems)
    fields: dict[str, Any] = {name: _scalar(data.get(name)) for name in ("title", "description")}
    if isinstance(data.get("title"), dict | list):  # `title: {expression}` is not meant as a mapping
        fields["title"] = _fields_by_line(source).get("title", "")
    metadata: dict[str, str] = {}
    for name in ("metadata", "mcp_metadata"):
        metadata |= _parse_labels(data.get(name), name, problems)
    strategy = chunk_by = None
    try:
        if "mcp_strategy" in data:
            typed = parse_yaml(source) if source else data
            strategy = parse_strategy(typed["mcp_strategy"])
        hint = data.get("mcp_chunking_hint")
        chunk_by = _parse_chunk_by(hint.get("chunk_by") if isinstance(hint, dict) else hint)
    except InvalidManifest as error:
        problems.append(error.message)
    return FrontMatter(
        body=body,
        **fields,
        about=_parse_about(data, problems),
        strategy=strategy,
        chunk_by=chunk_by,
        metadata=metadata,
        problems=tuple(problems),
    )


def _scalar(value: Any) -> str:
    """Return a value of the front matter as text; empty for lists, mappings and null."""
    if isinstance(value, dict | list | bool) or value is None or value in NULLS:
        return ""
    return " ".join(str(value).split())


def _parse_about(data: dict[str, Any], problems: list[str]) -> str:
    """Return the words that say what a page is about, each text once; a list is one text."""
    named = {re.sub(r"[_-]", "", str(key)).lower(): value for key, value in data.items()}
    texts = []
    for name in ABOUT_FIELDS:
        value = named.get(name)
        items = value if isinstance(value, list) else [value]
        texts.append(", ".join(text for item in items if (text := _scalar(item))))
    about = "\n".join(text for text in dict.fromkeys(texts) if text)
    if len(about) > MAX_ABOUT_CHARS:
        problems.append(f"front matter: only the first {MAX_ABOUT_CHARS:,} characters about the page are searched")
    return about[:MAX_ABOUT_CHARS]


def _parse_labels(data: Any, name: str, problems: list[str]) -> dict[str, str]:
    """Return the labels that are strings or can be; the others are named."""
    if not isinstance(data, dict):
        if name == "mcp_metadata" and data is not None:
            problems.append(f"{name} must be an object")
        return {}
    labels = {}
    for key, value in data.items():
        if isinstance(key, str) and key.strip() and (text := _scalar(value)):
            labels[key] = text
        else:
            problems.append(f"{name}.{key} ignored: the value must be a string that is not empty")
    return labels


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
