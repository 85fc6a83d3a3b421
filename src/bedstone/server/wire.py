"""Our nouns as the protocol's."""

from base64 import b64encode

import mcp_types as wire

from bedstone.toolkit import Audio, Content, Image, Reply, ResourceContents, Text


def content_block(block: Content) -> wire.ContentBlock:
    """A block of content."""
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
    """The contents of a resource."""
    if isinstance(contents.body, str):
        return wire.TextResourceContents(uri=contents.uri, mime_type=contents.mime_type, text=contents.body)
    blob = b64encode(contents.body).decode()
    return wire.BlobResourceContents(uri=contents.uri, mime_type=contents.mime_type, blob=blob)


def result(reply: Reply) -> wire.CallToolResult:
    """A reply as agents see it."""
    return wire.CallToolResult(
        content=[content_block(block) for block in reply.content],
        structured_content=reply.structured,
        is_error=reply.is_error,
    )
