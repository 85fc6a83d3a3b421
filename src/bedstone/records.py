"""The nouns all parts share: documents, and the chunks they are searched and quoted by."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Document:
    """One file, article or object; `digest` tells whether it is still the one that was read."""

    id: str
    title: str
    digest: str
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document with an id of its own.

    `text` is what is quoted, in its original form; `plain` is the same without markup, which is what is searched.
    `breadcrumb` holds the headings from the outermost to the chunk's own; `page` is where it begins, in documents
    that have pages.
    """

    id: str
    text: str
    plain: str
    heading: str = ""
    level: int = 0
    breadcrumb: tuple[str, ...] = ()
    facets: Mapping[str, str] = field(default_factory=dict)
    page: int | None = None


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk in the store: where it is, and its place in its document."""

    rowid: int
    document: str
    position: int
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a chunk's plain text, short enough for the embedding model."""

    chunk: int
    start: int
    end: int
