"""Replies and content in the protocol's terms."""

from base64 import b64encode
from typing import Any

import mcp_types as wire

from bedstone.toolkit import Audio, Content, Image, Reply, ResourceContents, Text


def content_block(block: Content) -> wire.ContentBlock:
    """Convert a block of content."""
    match block:
        case Text(text):
            return wire.TextContent(type="text", text=text)
        case Image(data, mime_type):
            return wire.ImageContent(type="image", data=b64encode(data).decode(), mime_type=mime_type)
        case Audio(data, mime_type):
            return wire.AudioContent(type="audio", data=b64encode(data).decode(), mime_type=mime_type)
        case _:
            return wire.EmbeddedResource(type="resource", resource=resource_contents(block.resource))


def resource_contents(contents: ResourceContents) -> wire.TextResourceContents | wire.BlobResourceContents:
    """Convert the contents of a resource."""
    if isinstance(contents.body, str):
        return wire.TextResourceContents(uri=contents.uri, mime_type=contents.mime_type, text=contents.body)
    blob = b64encode(contents.body).decode()
    return wire.BlobResourceContents(uri=contents.uri, mime_type=contents.mime_type, blob=blob)


def call_result(reply: Reply) -> dict[str, Any]:
    """Convert a reply to the JSON of a tools/call result.

    The SDK validates the JSON for the version of the connection; a model of it would be validated and dumped twice.
    """
    content = [
        {"type": "text", "text": block.text}
        if isinstance(block, Text)
        else content_block(block).model_dump(mode="json", by_alias=True, exclude_none=True)
        for block in reply.content
    ]
    result: dict[str, Any] = {"content": content, "isError": reply.is_error, "resultType": "complete"}
    return result if reply.structured is None else result | {"structuredContent": reply.structured}
