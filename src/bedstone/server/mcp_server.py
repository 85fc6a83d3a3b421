"""One MCP server from a list of toolsets."""

from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as wire
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions

from bedstone import __version__
from bedstone.server.call_log import log_calls
from bedstone.server.cancellation import add_cancellation
from bedstone.server.changes import ListChanges, Relay
from bedstone.server.context import is_modern
from bedstone.server.errors import describe_errors, translate_errors
from bedstone.server.prompts import Prompts
from bedstone.server.resources import Resources
from bedstone.server.tasks_extension import add_tasks
from bedstone.server.tools import Tools
from bedstone.server.tracing import trace_when_configured
from bedstone.toolkit import Toolset

LIST_CACHE = CacheHint(ttl_ms=60_000)  # for clients that do not listen for changes


class BedstoneServer(Server[Any]):
    """The SDK's low-level server, serving toolsets."""

    def __init__(
        self, name: str, toolsets: Sequence[Toolset], *, strict_schemas: bool = False, relay: Relay | None = None
    ) -> None:
        tools, resources, prompts = Tools(toolsets, is_strict=strict_schemas), Resources(toolsets), Prompts(toolsets)
        self._toolsets = toolsets
        self._changes = ListChanges(relay, ",".join(sorted(toolset.label for toolset in toolsets)))
        self._changes.on_tools_changed_elsewhere = tools.refresh
        super().__init__(
            name,
            version=__version__,
            title="Bedstone",
            instructions="\n".join(toolset.instructions for toolset in toolsets if toolset.instructions) or None,
            cache_hints={"tools/list": LIST_CACHE, "resources/list": LIST_CACHE, "prompts/list": LIST_CACHE},
            get_tool_input_schema=tools.input_schema,
            on_list_tools=tools.list,
            on_call_tool=translate_errors(tools.call),
            on_list_resources=resources.list,
            on_list_resource_templates=resources.templates,
            on_read_resource=translate_errors(resources.read),
            on_list_prompts=prompts.list,
            on_get_prompt=translate_errors(prompts.get),
            on_completion=translate_errors(prompts.complete),
            on_subscriptions_listen=self._changes.listen,
        )
        add_cancellation(self, toolsets)
        add_tasks(self, toolsets)
        self.add_notification_handler(
            "notifications/initialized", wire.NotificationParams, self._changes.track_connection
        )
        self.middleware[:] = [*map(trace_when_configured, self.middleware), log_calls, describe_errors]

        async def tools_changed() -> None:
            tools.refresh()
            await self._changes.tools_changed()

        for toolset in toolsets:
            toolset.on_tools_changed(tools_changed)
            toolset.on_prompts_changed(self._changes.prompts_changed)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Announce that the list of tools may change, which the SDK does not do by default."""
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
        """Announce only what is supported: clients are notified about tools and, where they can change, prompts."""
        capabilities = super().get_capabilities(
            notification_options, experimental_capabilities, extensions, protocol_version=protocol_version
        )
        return capabilities.model_copy(
            update={
                "extensions": capabilities.extensions if is_modern(protocol_version) else None,
                "prompts": wire.PromptsCapability(list_changed=any(item.prompts_can_change for item in self._toolsets)),
                "resources": wire.ResourcesCapability(subscribe=False, list_changed=False),
            }
        )

    @property
    def plain_initialize(self) -> Mapping[str, Any] | None:
        """The plain endpoint's answer to `initialize` where the contract of a toolset served alone prints one."""
        return self._toolsets[0].plain_initialize if len(self._toolsets) == 1 else None

    @property
    def toolsets(self) -> Sequence[Toolset]:
        """The toolsets that this server serves."""
        return self._toolsets

    def stop_listening(self) -> None:
        """Close the open listen streams."""
        self._changes.listen.close()
