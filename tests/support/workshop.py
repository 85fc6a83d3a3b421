"""A tiny toolset with everything a contract may ask of the toolkit."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import anyio
from pydantic import Field, create_model

from bedstone.errors import Unavailable, UnknownPrompt, UnknownResource, UnknownTask
from bedstone.toolkit import (
    Arguments,
    NoArguments,
    Progress,
    Prompt,
    PromptMessage,
    Resource,
    ResourceContents,
    ResourceTemplate,
    Result,
    Text,
    Tool,
    Toolset,
    tool,
)


class Repeat(Arguments):
    word: str = Field(min_length=1, description="What to say")
    times: int = Field(1, ge=1, le=5, description="How often")
    in_background: bool = Field(False, alias="async", description="A name that is a keyword in Python")


class Repeated(Result):
    said: str
    note: str | None = None
    next_word: str | None = Field(alias="nextWord")


class Failure(Exception):
    """A defect, with something secret in its text."""


class Workshop(Toolset):
    label = "workshop"
    title = "Workshop"
    server_name = "workshop"
    instructions = "A toolset for tests."

    def __init__(self, *, read_only: bool = False) -> None:
        super().__init__(read_only=read_only)
        self.colours = ["red"]
        self.waiting = anyio.Event()
        self.cancelled = anyio.Event()
        self.painted = 0
        self.tasks = {"task-1": "running", "task-2": "done"}

    @property
    def tools(self) -> Mapping[str, Tool]:
        tools = dict(super().tools)
        colour: Any = Literal[tuple(self.colours)]
        pick = create_model("Pick", __base__=Arguments, colour=(colour, ...))
        tools["paint"] = replace(tools["paint"], arguments=pick)
        return tools

    @tool("repeat", "Say a word several times", title="Repeat")
    async def repeat(self, arguments: Repeat) -> Repeated:
        return Repeated(said=" ".join([arguments.word] * arguments.times), next_word=None)

    @tool("paint", "Choose a colour", title="Paint", read_only=False, idempotent=False)
    async def paint(self, arguments: Arguments) -> str:
        self.painted += 1
        return f"Painted {arguments.model_dump()['colour']}"

    @tool("count", "Count to three", title="Count")
    async def count(self, _: NoArguments, progress: Progress) -> str:
        for number in (1, 2, 3):
            await progress(number, 3, f"Step {number} of 3")
        return "Counted"

    @tool("wait", "Wait until somebody cancels", title="Wait")
    async def wait(self, _: NoArguments) -> str:
        self.waiting.set()
        try:
            await anyio.sleep(30)
        except anyio.get_cancelled_exc_class():
            self.cancelled.set()
            raise
        return "Nobody came"

    @tool("break", "Has a defect", title="Break")
    async def fail(self, _: NoArguments) -> str:
        raise Failure("the password is tulip")

    @tool("misfit", "Answers what its model does not allow", title="Misfit")
    async def misfit(self, _: NoArguments) -> Repeated:
        return Repeated.model_validate({"said": 5})

    @tool("delegate", "Fails in a task of its own", title="Delegate")
    async def delegate(self, _: NoArguments) -> str:
        async def fail() -> None:
            raise Unavailable("Nobody is there")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)
        return "Done"

    async def add_colour(self, name: str) -> None:
        self.colours.append(name)
        await self.tools_changed()

    async def resources(self) -> Sequence[Resource]:
        return [Resource(f"shelf:///{number}", f"Box {number}", mime_type="text/plain") for number in range(1_200)]

    def resource_templates(self) -> Sequence[ResourceTemplate]:
        return [ResourceTemplate("shelf:///{number}", "Box", "A box on the shelf", "text/plain")]

    async def read_resource(self, uri: str) -> ResourceContents:
        if uri == "shelf:///burnt":
            raise Unavailable("The box has burnt", box="burnt")
        if not uri.startswith("shelf:///"):
            raise UnknownResource(f"Resource not found: {uri}")
        return ResourceContents(uri, f"In box {uri.removeprefix('shelf:///')}", "text/plain")

    def prompts(self) -> Sequence[Prompt]:
        return [Prompt("greet", "Say hello")]

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> Sequence[PromptMessage]:
        if name != "greet":
            raise UnknownPrompt(f"Unknown prompt: {name}")
        return [PromptMessage("user", Text("Hello"))]

    async def complete(self, subject: str, argument: str, value: str) -> Sequence[str]:
        return [str(number) for number in range(1_200) if str(number).startswith(value)]

    async def cancel_task(self, task_id: str) -> bool:
        if task_id not in self.tasks:
            raise UnknownTask(f"Unknown task: {task_id}")
        was_running = self.tasks[task_id] == "running"
        self.tasks[task_id] = "cancelled" if was_running else self.tasks[task_id]
        return was_running
