"""resources/list, resources/templates/list, resources/read."""

from collections.abc import Sequence
from inspect import isawaitable
from typing import Any

import mcp_types as wire
from mcp.shared.exceptions import MCPError

from bedstone.errors import UnknownResource
from bedstone.server.context import Context, is_modern
from bedstone.server.errors import RESOURCE_NOT_FOUND
from bedstone.server.paging import page
from bedstone.server.wire import resource_contents
from bedstone.toolkit import Resource, ResourceTemplate, Toolset


class Resources:
    """The resources of several toolsets in one list."""

    def __init__(self, toolsets: Sequence[Toolset]) -> None:
        self._toolsets = toolsets

    async def list(self, _: Context, params: wire.PaginatedRequestParams | None) -> wire.ListResourcesResult:
        """Answer resources/list."""
        all_resources = [resource for toolset in self._toolsets for resource in await _resources_of(toolset)]
        resources, next_cursor = page(all_resources, params.cursor if params else None)
        return wire.ListResourcesResult(
            resources=[_resource(resource) for resource in resources], next_cursor=next_cursor
        )

    async def templates(
        self, _: Context, params: wire.PaginatedRequestParams | None
    ) -> wire.ListResourceTemplatesResult:
        """Answer resources/templates/list."""
        all_templates = [template for toolset in self._toolsets for template in toolset.resource_templates()]
        templates, next_cursor = page(all_templates, params.cursor if params else None)
        return wire.ListResourceTemplatesResult(
            resource_templates=[_template(template) for template in templates], next_cursor=next_cursor
        )

    async def read(self, context: Context, params: wire.ReadResourceRequestParams) -> wire.ReadResourceResult:
        """Answer resources/read from the first toolset that knows the address."""
        problem = ""
        for toolset in self._toolsets:
            try:
                contents = await toolset.read_resource(params.uri)
            except UnknownResource as error:
                problem = error.message
                continue
            return wire.ReadResourceResult(contents=[resource_contents(contents)])
        modern = is_modern(context.protocol_version)
        code = wire.INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
        # A toolset served alone can explain more than "not found".
        message = problem if len(self._toolsets) == 1 else f"Resource not found: {params.uri}"
        raise MCPError(code, message, {"uri": params.uri})


async def _resources_of(toolset: Toolset) -> Sequence[Resource]:
    # Toolsets of other packages may still have the synchronous form of the method.
    resources: Any = toolset.resources()
    listed: Sequence[Resource] = await resources if isawaitable(resources) else resources
    return listed


def _resource(resource: Resource) -> wire.Resource:
    return wire.Resource(
        uri=resource.uri,
        name=resource.name,
        title=resource.title,
        description=resource.description,
        mime_type=resource.mime_type,
    )


def _template(template: ResourceTemplate) -> wire.ResourceTemplate:
    return wire.ResourceTemplate(
        uri_template=template.uri_template,
        name=template.name,
        title=template.title,
        description=template.description,
        mime_type=template.mime_type,
    )
