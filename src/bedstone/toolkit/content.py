"""Blocks of content that tools and prompts may answer with."""

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
    """A resource's contents inside an answer."""

    resource: ResourceContents


Content = Text | Image | Audio | Embedded
