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
from bedstone.toolkit.schema import Schema
from bedstone.toolkit.strict import relax_arguments, strict_schema

MAX_RESULT_CHARACTERS = 500_000  # the most that Claude Code shows of an answer; without the mark, a tenth of it


class Tools:
    """The tools of several toolsets in one list."""

    def __init__(self, toolsets: Sequence[Toolset], *, is_strict: bool = False) -> None:
        self._toolsets = toolsets
        self._is_strict = is_strict
        self._owners = self._find_owners()
        self._definitions: list[wire.Tool] | None = None

    def refresh(self) -> None:
        """Rebuild the list after a toolset changed its tools."""
        self._owners = self._find_owners()
        self._definitions = None

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return a tool's input schema, which the SDK checks request headers against."""
        owner = self._owners.get(name)
        return self._published_schema(owner.tools[name]) if owner else None

    async def list(self, _: Context, params: wire.PaginatedRequestParams | None) -> wire.ListToolsResult:
        """Answer tools/list."""
        if self._definitions is None:
            every = [tool for owner in self._toolsets for tool in owner.tools.values()]
            self._definitions = [definition(tool, self._published_schema(tool)) for tool in every]
        tools, next_cursor = page(self._definitions, params.cursor if params else None)
        return wire.ListToolsResult(tools=list(tools), next_cursor=next_cursor)

    async def call(self, context: Context, params: wire.CallToolRequestParams) -> Any:
        """Answer tools/call with a result, or with a task if the tool and the client support it."""
        owner = self._owners.get(params.name)
        if owner is None:
            raise MCPError(wire.INVALID_PARAMS, f"Unknown tool: {params.name}")
        tool, arguments = owner.tools[params.name], params.arguments or {}
        if self._is_strict:
            arguments = relax_arguments(arguments, tool.input_schema)
        if tool.requires:
            _check_capabilities(context, tool.requires)
        if tool.background and supports_tasks(context):
            begun = await owner.begin(params.name, arguments)
            return call_result(begun) if isinstance(begun, Reply) else task_created(begun)
        return call_result(await owner.call(params.name, arguments, CallProgress(context)))

    def _published_schema(self, tool: Tool) -> Schema:
        return strict_schema(tool.input_schema) if self._is_strict else tool.input_schema

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


def definition(tool: Tool, input_schema: Schema | None = None) -> wire.Tool:
    """Convert a tool to its entry in tools/list, with another form of its input schema if one is given."""
    return wire.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=input_schema or tool.input_schema,
        output_schema=tool.output_schema,
        annotations=wire.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
        meta={"anthropic/maxResultSizeChars": MAX_RESULT_CHARACTERS} if tool.long else None,
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
