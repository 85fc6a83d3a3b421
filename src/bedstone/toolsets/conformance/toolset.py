"""The tools, resources and prompts that the conformance suite calls by name."""

import json
import logging
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from functools import cached_property
from typing import Any

import anyio
from anyio import to_thread
from pydantic import ConfigDict, Field

from bedstone.errors import BedstoneError, InvalidInput, Unavailable, UnknownPrompt, UnknownResource, UnknownTask
from bedstone.records import Task
from bedstone.store.engines.memory import MemoryStore
from bedstone.tasks import Progress as TaskProgress
from bedstone.tasks import TaskHandler, TaskRunner
from bedstone.toolkit import (
    Arguments,
    Audio,
    Content,
    Embedded,
    Image,
    NoArguments,
    Progress,
    Prompt,
    PromptArgument,
    PromptMessage,
    Reply,
    Resource,
    ResourceContents,
    ResourceTemplate,
    TaskView,
    Text,
    Tool,
    Toolset,
    tool,
)
from bedstone.toolsets.conformance.samples import PNG, SCHEMA, WAV

logger = logging.getLogger(__name__)

STEP_SECONDS = 0.05
STATIC = {
    "test://static-text": ResourceContents("test://static-text", "A static text resource for tests.", "text/plain"),
    "test://static-binary": ResourceContents("test://static-binary", PNG, "image/png"),
}


class CustomHeaders(Arguments):
    region: str = Field(description="Also sent as a header", json_schema_extra={"x-mcp-header": "Region"})


class AnyArguments(Arguments):
    """Any arguments that the handwritten schema accepts."""

    model_config = ConfigDict(extra="allow")


class Greeting(Arguments):
    name: str = Field(description="Name to greet")


class Computation(Arguments):
    seconds: float = Field(0, ge=0, le=600, description="Duration in seconds")
    label: str = Field("", description="Name of the computation")


class HandwrittenTool(Tool):
    """A tool whose schema uses keywords that our models do not produce."""

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        return SCHEMA


class _Jobs(TaskHandler):
    """The jobs that run in threads."""

    def run(self, task: Task, progress: TaskProgress) -> Mapping[str, Any]:
        """Compute for a while, or fail."""
        if task.kind == "failing_job":
            raise Unavailable("This job always fails")
        if task.kind == "protocol_error_job":
            raise RuntimeError("broken on purpose")
        end = time.monotonic() + float(task.payload["seconds"])
        while time.monotonic() < end:
            progress.update("Computing", 0, 1)
            time.sleep(STEP_SECONDS)
        return {}


class ConformanceToolset(Toolset):
    """Fixtures for the suite; of no use to users."""

    label = "conformance"
    title = "Conformance fixtures"
    server_name = "conformance"

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """Return the declared tools, one of them with a handwritten schema."""
        by_name = dict(super().tools)
        declared = by_name["json_schema_2020_12_tool"]
        by_name[declared.name] = HandwrittenTool(
            **{item.name: getattr(declared, item.name) for item in fields(declared)}
        )
        return by_name

    def render_error(self, error: BedstoneError) -> Reply:
        """Render an error as its message."""
        return Reply(error.message, is_error=True)

    def __init__(self, *, read_only: bool = False) -> None:
        super().__init__(read_only=read_only)
        self._jobs = MemoryStore()
        self._runner = TaskRunner(self._jobs, _Jobs(), workers=8)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[object]:  # prose: ok - public API
        """Run tasks while the toolset is open."""
        self._runner.start()
        try:
            yield self
        finally:
            await to_thread.run_sync(self._runner.stop)

    @tool("greet", "Greets immediately", title="Greeting")
    async def greet(self, arguments: Greeting) -> str:
        return f"Hello, {arguments.name}!"

    @tool("slow_compute", "Computes for a number of seconds", title="Slow computation", background=True)
    async def slow_compute(self, arguments: Computation) -> str:
        await anyio.sleep(arguments.seconds)
        return "Computed."

    @tool("failing_job", "Fails after a while", title="Failing job", background=True)
    async def failing_job(self, _: NoArguments) -> str:
        await anyio.sleep(STEP_SECONDS)
        raise Unavailable("This job always fails")

    @tool("protocol_error_job", "Raises an unexpected error", title="Broken job", background=True)
    async def protocol_error_job(self, _: NoArguments) -> str:
        raise RuntimeError("intentional failure")

    async def start_task(self, name: str, arguments: Arguments) -> TaskView:
        """Start a job."""
        task = self._runner.submit(name, arguments.model_dump())
        return TaskView(task.id, "working", task.created_at, task.created_at)

    async def task(self, task_id: str) -> TaskView:
        """Return the state of a job."""
        task = self._jobs.task(task_id)
        if task is None:
            raise UnknownTask(f"Unknown task: {task_id}", task_id=task_id)
        updated = task.finished_at or task.started_at or task.created_at
        match task.status, task.error.code if task.error else None:
            case ("failed", "internal_error"):
                return TaskView(task_id, "failed", task.created_at, updated, "Internal error")
            case ("failed", _):
                reply = Reply(task.error.message if task.error else "", is_error=True)
                return TaskView(task_id, "completed", task.created_at, updated, reply=reply)
            case ("completed", _):
                return TaskView(task_id, "completed", task.created_at, updated, reply=Reply("Computed."))
            case ("cancelled", _):
                return TaskView(task_id, "cancelled", task.created_at, updated)
            case _:
                return TaskView(task_id, "working", task.created_at, updated)

    async def cancel_task(self, task_id: str) -> bool:
        """Cancel a job."""
        await self.task(task_id)
        return self._runner.cancel(task_id)

    @tool("test_simple_text", "Answers with text", title="Simple text")
    async def simple_text(self, _: NoArguments) -> str:
        return "This is a simple text response for testing."

    @tool("test_image_content", "Answers with an image", title="Image")
    async def image(self, _: NoArguments) -> Sequence[Content]:
        return [Image(PNG, "image/png")]

    @tool("test_audio_content", "Answers with a sound", title="Audio")
    async def audio(self, _: NoArguments) -> Sequence[Content]:
        return [Audio(WAV, "audio/wav")]

    @tool("test_embedded_resource", "Answers with an embedded resource", title="Embedded resource")
    async def embed_resource(self, _: NoArguments) -> Sequence[Content]:
        return [Embedded(ResourceContents("test://embedded-resource", "An embedded resource.", "text/plain"))]

    @tool("test_multiple_content_types", "Answers with text, an image and a resource", title="Mixed content")
    async def mix_content(self, _: NoArguments) -> Sequence[Content]:
        data = json.dumps({"test": "data", "value": 123})
        resource = ResourceContents("test://mixed-content-resource", data, "application/json")
        return [Text("Multiple content types test:"), Image(PNG, "image/png"), Embedded(resource)]

    @tool("test_error_handling", "Always fails", title="Failure")
    async def fail(self, _: NoArguments) -> str:
        raise Unavailable("This tool intentionally returns an error for testing")

    @tool("test_tool_with_progress", "Reports progress three times", title="Progress")
    async def progress(self, _: NoArguments, progress: Progress) -> str:
        for done in (0, 50, 100):
            await progress(done, 100)
            await anyio.sleep(STEP_SECONDS)
        return "Done"

    @tool("test_streaming_elicitation", "Streams progress without elicitation", title="Stream without questions")
    async def stream(self, _: NoArguments, progress: Progress) -> str:
        await progress(1, 1)
        return "Bedstone answers without elicitation."

    @tool("test_logging_tool", "Writes to the server log", title="Server log")
    async def log(self, _: NoArguments) -> str:
        logger.info("A line for the operator, never for the client", extra={"action": "conformance_log"})
        return "Logged"

    @tool("test_missing_capability", "Requires client sampling", title="Capability check", requires=("sampling",))
    async def needs_sampling(self, _: NoArguments) -> str:
        return "The client declared sampling."

    @tool("test_trigger_tool_change", "Announces that the tools changed", title="Tool change", read_only=False)
    async def trigger_tool_change(self, _: NoArguments) -> str:
        await self.tools_changed()
        return "Announced"

    @tool("test_custom_headers", "Takes an argument that is also sent as a header", title="Custom headers")
    async def custom_headers(self, arguments: CustomHeaders) -> str:
        return f"Region: {arguments.region}"

    @tool("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", title="JSON Schema")
    async def json_schema(self, _: AnyArguments) -> str:
        return "Accepted"

    async def resources(self) -> Sequence[Resource]:
        return [Resource(uri, uri.removeprefix("test://"), mime_type=item.mime_type) for uri, item in STATIC.items()]

    def resource_templates(self) -> Sequence[ResourceTemplate]:
        return [ResourceTemplate("test://template/{id}/data", "template", mime_type="application/json")]

    async def read_resource(self, uri: str) -> ResourceContents:
        if uri in STATIC:
            return STATIC[uri]
        if match := re.fullmatch(r"test://template/([^/]+)/data", uri):
            data = {"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"}
            return ResourceContents(uri, json.dumps(data), "application/json")
        raise UnknownResource(f"Resource not found: {uri}")

    def prompts(self) -> Sequence[Prompt]:
        first, second = PromptArgument("arg1", "First", required=True), PromptArgument("arg2", "Second", required=True)
        return [
            Prompt("test_simple_prompt", "No arguments"),
            Prompt("test_prompt_with_arguments", "Two arguments", [first, second]),
            Prompt("test_prompt_with_embedded_resource", "A resource", [PromptArgument("resourceUri", required=True)]),
            Prompt("test_prompt_with_image", "An image"),
        ]

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> Sequence[PromptMessage]:
        try:
            return [PromptMessage("user", block) for block in _prompt_blocks(name, arguments)]
        except KeyError as missing:
            raise InvalidInput(f"Missing argument: {missing}") from None

    async def complete(self, subject: str, argument: str, value: str) -> Sequence[str]:
        return [word for word in ("test", "testing", "trial") if word.startswith(value)]


def _prompt_blocks(name: str, arguments: Mapping[str, str]) -> list[Content]:
    match name:
        case "test_simple_prompt":
            return [Text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            return [Text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            resource = ResourceContents(arguments["resourceUri"], "Embedded resource content.", "text/plain")
            return [Embedded(resource), Text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            return [Image(PNG, "image/png"), Text("Please analyze the image above.")]
        case _:
            raise UnknownPrompt(f"Unknown prompt: {name}")
