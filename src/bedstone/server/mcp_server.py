"""One MCP server from a list of toolsets."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as wire
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from bedstone import __version__
from bedstone.server.cancellation import add_cancellation
from bedstone.server.changes import ListChanges
from bedstone.server.context import Context, is_modern
from bedstone.server.explained import explained
from bedstone.server.prompts import Prompts
from bedstone.server.resources import Resources
from bedstone.server.tasks_extension import add_tasks
from bedstone.server.tools import Tools
from bedstone.toolkit import Toolset

logger = logging.getLogger(__name__)

LISTS = CacheHint(ttl_ms=60_000)  # a client that does not listen for changes may be this much behind


class BedstoneServer(Server[Any]):
    """The SDK's low-level server, serving toolsets."""

    def __init__(self, name: str, toolsets: Sequence[Toolset]) -> None:
        tools, resources, prompts = Tools(toolsets), Resources(toolsets), Prompts(toolsets)
        self._toolsets = toolsets
        self._changes = ListChanges()
        super().__init__(
            name,
            version=__version__,
            title="Bedstone",
            instructions="\n".join(toolset.instructions for toolset in toolsets if toolset.instructions) or None,
            cache_hints={"tools/list": LISTS, "resources/list": LISTS, "prompts/list": LISTS},
            get_tool_input_schema=tools.input_schema,
            on_list_tools=tools.list,
            on_call_tool=explained(tools.call),
            on_list_resources=resources.list,
            on_list_resource_templates=resources.templates,
            on_read_resource=explained(resources.read),
            on_list_prompts=prompts.list,
            on_get_prompt=explained(prompts.get),
            on_completion=explained(prompts.complete),
            on_subscriptions_listen=self._changes.listen,
        )
        add_cancellation(self, toolsets)
        add_tasks(self, toolsets)
        self.middleware += [hide_internals, self._changes.remember]

        async def tools_changed() -> None:
            tools.refresh()
            await self._changes.tools_changed()

        for toolset in toolsets:
            toolset.on_tools_changed(tools_changed)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Announce that the list of tools may change, which the SDK does not by itself."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> wire.ServerCapabilities:
        """Promise what we deliver: of the lists only that of the tools is announced when it changes."""
        capabilities = super().get_capabilities(
            notification_options, experimental_capabilities, extensions, protocol_version=protocol_version
        )
        return capabilities.model_copy(
            update={
                "extensions": capabilities.extensions if is_modern(protocol_version) else None,
                "prompts": wire.PromptsCapability(list_changed=False),
                "resources": wire.ResourcesCapability(subscribe=False, list_changed=False),
            }
        )

    @property
    def plain_initialize(self) -> Mapping[str, Any] | None:
        """What the plain endpoint answers to `initialize` where a contract prints it, for a toolset served alone."""
        return self._toolsets[0].plain_initialize if len(self._toolsets) == 1 else None

    def problems(self) -> list[str]:
        """What keeps a toolset from doing its work right now."""
        return [f"{toolset.label}: {problem}" for toolset in self._toolsets for problem in toolset.problems()]

    def stop_listening(self) -> None:
        """End the open listen streams in good order."""
        self._changes.listen.close()


async def hide_internals(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Middleware: an exception's text stays in the log."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except Exception:
        logger.exception("%s failed", ctx.method, extra={"action": "request_failed"})
        raise MCPError(wire.INTERNAL_ERROR, "Internal error") from None
