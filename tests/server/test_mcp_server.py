"""The server in process, with the official client in memory."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from mcp import Client

from bedstone.server import BedstoneServer
from bedstone.toolkit import Audio, Content, NoArguments, Resource, Toolset, tool

TRACED_CALLS = """
import anyio
from mcp import Client
from opentelemetry import trace

from bedstone.server import BedstoneServer
from support.workshop import Workshop

names = []

class Tracer(trace.NoOpTracer):
    def start_as_current_span(self, name, *args, **kwargs):
        names.append(name)
        return super().start_as_current_span(name, *args, **kwargs)

class Provider(trace.NoOpTracerProvider):
    def get_tracer(self, *args, **kwargs):
        return Tracer()

async def main():
    async with Client(BedstoneServer("workshop", [Workshop()])) as client:
        await client.call_tool("repeat", {"word": "before"})
        trace.set_tracer_provider(Provider())
        await client.call_tool("repeat", {"word": "after"})

anyio.run(main)
print(names)
"""


class Older(Toolset):
    """A toolset of another package, with the synchronous form of `resources`."""

    label = "older"
    title = "Older"
    server_name = "older"

    def resources(self) -> Sequence[Resource]:  # type: ignore[override]
        return [Resource("older:///1", "One")]

    @tool("hear", "Answers with sound", title="Hear")
    async def hear(self, _: NoArguments) -> Sequence[Content]:
        return [Audio(b"sound", "audio/wav")]


async def test_resources_may_be_listed_synchronously() -> None:
    async with Client(BedstoneServer("older", [Older()])) as client:
        assert [item.uri for item in (await client.list_resources()).resources] == ["older:///1"]


async def test_content_other_than_text_reaches_the_client() -> None:
    async with Client(BedstoneServer("older", [Older()])) as client:
        result = await client.call_tool("hear", {})
    assert [block.model_dump(exclude_none=True) for block in result.content] == [
        {"type": "audio", "data": "c291bmQ=", "mime_type": "audio/wav"}
    ]
    assert result.structured_content is None


def test_requests_are_traced_once_a_provider_is_configured() -> None:
    command = [sys.executable, "-c", TRACED_CALLS]
    tests = Path(__file__).parents[1]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tests)
    assert "tools/call repeat" in run.stdout, run.stderr
