"""Content blocks in the answers of tools and prompts."""

from dataclasses import dataclass

from bedstone.toolkit.resource import ResourceContents


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Image:
    data: bytes
    mime_type: str


@dataclass(frozen=True)
class Audio:
    data: bytes
    mime_type: str


@dataclass(frozen=True)
class Embedded:
    """The contents of a resource, embedded in an answer."""

    resource: ResourceContents


Content = Text | Image | Audio | Embedded
