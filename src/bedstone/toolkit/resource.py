"""Resources that clients read by address."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Resource:
    """An entry of `resources/list`."""

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None
    title: str | None = None


@dataclass(frozen=True)
class ResourceTemplate:
    """An entry of `resources/templates/list`: a pattern of addresses."""

    uri_template: str
    name: str
    description: str | None = None
    mime_type: str | None = None
    title: str | None = None


@dataclass(frozen=True)
class ResourceContents:
    """The contents of a resource: text or bytes."""

    uri: str
    body: str | bytes
    mime_type: str | None = None
