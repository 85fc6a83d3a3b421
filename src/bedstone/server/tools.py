"""tools/list and tools/call."""

from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as wire
from mcp.shared.exceptions import MCPError

from bedstone.errors import InvalidSetting
from bedstone.server.context import Context
from bedstone.server.paging import page
from bedstone.server.progress import CallProgress
from bedstone.server.tasks_extension import supports_tasks, task_created
from bedstone.server.wire import call_result
from bedstone.toolkit import Reply, Tool, Toolset


class Tools:
    """The tools of several toolsets in one list."""

    def __init__(self, toolsets: Sequence[Toolset]) -> None:
        self._toolsets = toolsets
        self._owners = self._find_owners()
        self._definitions: list[wire.Tool] | None = None

    def refresh(self) -> None:
        """Rebuild the list after a toolset changed its tools."""
        self._owners = self._find_owners()
        self._definitions = None

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return a tool's input schema, which the SDK checks request headers against."""
        owner = self._owners.get(name)
        return owner.tools[name].input_schema if owner else None

    async def list(self, _: Context, params: wire.PaginatedRequestParams | None) -> wire.ListToolsResult:
        """Answer tools/list."""
        if self._definitions is None:
            self._definitions = [definition(tool) for owner in self._toolsets for tool in owner.tools.values()]
        tools, next_cursor = page(self._definitions, params.cursor if params else None)
        return wire.ListToolsResult(tools=list(tools), next_cursor=next_cursor)

    async def call(self, context: Context, params: wire.CallToolRequestParams) -> Any:
        """Answer tools/call with a result, or with a task if the tool and the client support it."""
        owner = self._owners.get(params.name)
        if owner is None:
            raise MCPError(wire.INVALID_PARAMS, f"Unknown tool: {params.name}")
        tool = owner.tools[params.name]
        if tool.requires:
            _check_capabilities(context, tool.requires)
        if tool.background and supports_tasks(context):
            begun = await owner.begin(params.name, params.arguments or {})
            return call_result(begun) if isinstance(begun, Reply) else task_created(begun)
        return call_result(await owner.call(params.name, params.arguments or {}, CallProgress(context)))

    def _find_owners(self) -> dict[str, Toolset]:
        owners: dict[str, Toolset] = {}
        for toolset in self._toolsets:
            for name in toolset.tools:
                if name in owners:
                    raise InvalidSetting(
                        f"The toolsets {owners[name].label} and {toolset.label} both have a tool named {name}. "
                        "Choose one of them with --toolsets."
                    )
                owners[name] = toolset
        return owners


def definition(tool: Tool) -> wire.Tool:
    """Convert a tool to its entry in tools/list."""
    return wire.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=wire.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
    )


def _check_capabilities(context: Context, names: Sequence[str]) -> None:
    needed = wire.ClientCapabilities.model_validate({name: {} for name in names})
    if not context.session.check_client_capability(needed):
        data = wire.MissingRequiredClientCapabilityErrorData(required_capabilities=needed)
        raise MCPError(
            wire.MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"This tool needs a client with: {', '.join(names)}",
            data.model_dump(mode="json", by_alias=True, exclude_none=True),
        )
