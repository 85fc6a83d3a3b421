"""A toolset: tools, resources and prompts of one contract, and the shape of its errors."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import anyio
from anyio import to_thread

from bedstone.errors import BedstoneError, ReadOnly, UnknownPrompt, UnknownResource, UnknownTask, UnknownTool
from bedstone.toolkit.models import Arguments
from bedstone.toolkit.prompt import Prompt, PromptMessage
from bedstone.toolkit.reply import Reply
from bedstone.toolkit.resource import Resource, ResourceContents, ResourceTemplate
from bedstone.toolkit.spec import ToolsetContext
from bedstone.toolkit.task import Progress, TaskView
from bedstone.toolkit.tool import Tool, declared_tools

if TYPE_CHECKING:
    from bedstone.services.service import Handle

logger = logging.getLogger(__name__)

# Text and structured content together double a payload, and handshake-era clients reject events above 1 MiB. Above
# this many characters, large tools send the text alone.
MAX_STRUCTURED_CHARACTERS = 250_000

ChangeListener = Callable[[], Coroutine[Any, Any, None]]

SILENT = Progress()


class Toolset:
    """Base class of every toolset; a contract overrides what it offers beyond tools.

    `label` is the id on the command line and, with hyphens, the address. `server_name` is the name clients see when
    the toolset is served alone.
    """

    label: ClassVar[str]
    title: ClassVar[str]
    # The answer to POST /<label>/mcp/initialize where a contract prints less than the protocol's answer.
    plain_initialize: ClassVar[Mapping[str, Any] | None] = None
    server_name: str
    instructions: str | None = None
    prompts_can_change: ClassVar[bool] = False  # while the toolset is served

    def __init__(self, service: "Handle[Any] | None" = None, *, read_only: bool = False) -> None:
        self.service = service
        self._read_only = read_only
        self._listeners: list[ChangeListener] = []
        self._prompt_listeners: list[ChangeListener] = []

    @classmethod
    def build(cls, context: ToolsetContext) -> "Toolset":
        """Build the toolset from the settings and its service."""
        service = (context.service,) if context.service is not None else ()
        return cls(*service, read_only=context.read_only)

    def opened(self) -> AbstractAsyncContextManager[object]:  # prose: ok - public API
        """Enter when the product opens and leave when it closes: its service works in between."""
        return self.service.serving() if self.service is not None else nullcontext()

    def problems(self) -> Sequence[str]:
        """Return what keeps the toolset from working right now; `/readyz` reports it."""
        if self.service is None:
            return ()
        if (service := self.service.opened) is not None:
            problems: Sequence[str] = service.problems()
            return problems
        return (self.service.failure,) if self.service.failure is not None else ()

    async def check(self) -> Sequence[str]:
        """Open the service if it is not open yet, and return what keeps the toolset from working."""
        try:
            if self.service is not None:
                await self.service.open()
            return await to_thread.run_sync(lambda: list(self.problems()))
        except BedstoneError as error:
            return [error.message]
        except Exception as error:
            logger.exception("Checking %s failed", self.label, extra={"action": "check_failed"})
            return [f"Internal error ({type(error).__name__}); see the server log."]

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name, in the order agents see them."""
        return {tool.name: tool for tool in declared_tools(self)}

    async def call(self, name: str, arguments: Mapping[str, Any], progress: Progress = SILENT) -> Reply:
        """Call a tool and return its reply; errors are replies in the contract's shape."""
        tool = self._tool(name)
        reply = await self._guard(tool, lambda: tool.run(dict(arguments), progress))
        if not isinstance(reply, Reply):
            reply = Reply.of(reply)
        if tool.large and len(reply.text) > MAX_STRUCTURED_CHARACTERS:
            return replace(reply, structured=None)
        return reply

    async def begin(self, name: str, arguments: Mapping[str, Any]) -> TaskView | Reply:
        """Start a background tool as a task; return an error reply if it cannot start."""
        tool = self._tool(name)

        async def start() -> TaskView:
            return await self.start_task(name, tool.arguments.parse(dict(arguments)))

        view: TaskView | Reply = await self._guard(tool, start)
        return view

    async def start_task(self, name: str, arguments: Arguments) -> TaskView:
        """Start the work of a background tool, in toolsets that declare one."""
        raise NotImplementedError

    async def task(self, task_id: str) -> TaskView:
        """Return the state of background work."""
        raise UnknownTask(f"Unknown task: {task_id}", task_id=task_id)

    def _tool(self, name: str) -> Tool:
        tool = self.tools.get(name)
        if tool is None:
            raise UnknownTool(f"Unknown tool: {name}")
        return tool

    async def _guard(self, tool: Tool, work: Callable[[], Awaitable[Any]]) -> Any:
        try:
            if self._read_only and not tool.read_only:
                raise ReadOnly(f"This server is read-only; {tool.name} would change something.")
            return await work()
        except BedstoneError as error:
            return self.render_error(error)
        except ExceptionGroup as group:  # task groups wrap the errors of their tasks
            if len(group.exceptions) == 1 and isinstance(group.exceptions[0], BedstoneError):
                return self.render_error(group.exceptions[0])
            raise

    def render_error(self, error: BedstoneError) -> Reply:
        """Turn an error into the contract's shape."""
        return Reply({"error": error.code, "message": error.message, **error.details}, is_error=True)

    async def resources(self) -> Sequence[Resource]:
        """Return the entries of `resources/list`."""
        return ()

    def resource_templates(self) -> Sequence[ResourceTemplate]:
        """Return the entries of `resources/templates/list`."""
        return ()

    async def read_resource(self, uri: str) -> ResourceContents:
        """Read the resource at an address."""
        raise UnknownResource(f"Resource not found: {uri}", uri=uri)

    def prompts(self) -> Sequence[Prompt]:
        """Return the entries of `prompts/list`."""
        return ()

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> Sequence[PromptMessage]:
        """Render the messages of a prompt."""
        raise UnknownPrompt(f"Unknown prompt: {name}")

    async def complete(self, subject: str, argument: str, value: str) -> Sequence[str]:
        """Suggest values for an argument of a prompt (by name) or of a resource template (by address)."""
        return ()

    async def cancel_task(self, task_id: str) -> bool:
        """Cancel background work; return whether it is cancelled and has stopped."""
        raise UnknownTask(f"Unknown task: {task_id}", task_id=task_id)

    def on_tools_changed(self, listener: ChangeListener) -> None:
        """Call `listener` whenever the list of tools, or a schema in it, changes."""
        self._listeners.append(listener)

    async def tools_changed(self) -> None:
        """Notify the listeners that the list of tools changed."""
        vars(self).pop("tools", None)
        await _call_all(self._listeners)

    def on_prompts_changed(self, listener: ChangeListener) -> None:
        """Call `listener` whenever a prompt is added, removed or changed."""
        self._prompt_listeners.append(listener)

    async def prompts_changed(self) -> None:
        """Notify the listeners that the list of prompts changed."""
        await _call_all(self._prompt_listeners)


async def _call_all(listeners: Sequence[ChangeListener]) -> None:
    async with anyio.create_task_group() as tasks:
        for listener in listeners:
            tasks.start_soon(listener)
