"""A tool: name, description, argument model, result models and method, declared once."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from bedstone.toolkit.models import Arguments, Result
from bedstone.toolkit.schema import Schema, input_schema, output_schema
from bedstone.toolkit.task import Progress

Method = TypeVar("Method", bound=Callable[..., Awaitable[Any]])


@dataclass(frozen=True)
class Tool:
    """One tool of a toolset, ready to be listed and called.

    `method` takes the arguments and, if it has a second parameter, a `Progress`. A toolset that learns a tool's
    schema only at start replaces `arguments` (`dataclasses.replace`). `requires` names the capabilities the client
    must have. A `large` tool publishes no output schema, so that a large answer can be sent as text alone; a `long`
    one asks clients that cut answers to show more. A `background` tool can be started as a task (`Toolset.begin`).
    """

    name: str
    title: str
    description: str
    method: Callable[..., Awaitable[Any]]
    arguments: type[Arguments]
    results: tuple[type[Result], ...] = ()
    large: bool = False
    long: bool = False
    background: bool = False
    takes_progress: bool = False
    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False
    requires: tuple[str, ...] = ()

    @cached_property
    def input_schema(self) -> Schema:
        return input_schema(self.arguments)

    @cached_property
    def output_schema(self) -> Schema | None:
        return None if self.large else output_schema(self.results)

    async def run(self, arguments: dict[str, Any], progress: Progress) -> Any:
        """Validate the arguments and call the method."""
        parsed = self.arguments.parse(arguments)
        return await (self.method(parsed, progress) if self.takes_progress else self.method(parsed))


@dataclass(frozen=True)
class _Declaration:
    name: str
    description: str
    title: str
    large: bool
    long: bool
    background: bool
    requires: tuple[str, ...]
    hints: dict[str, bool]


def tool(
    name: str,
    description: str,
    *,
    title: str,
    large: bool = False,
    long: bool = False,
    background: bool = False,
    requires: tuple[str, ...] = (),
    **hints: bool,
) -> Callable[[Method], Method]:
    """Declare a method as a tool.

    `hints` are `read_only` (True), `destructive` (False), `idempotent` (True) and `open_world` (False).
    """

    def declare(method: Method) -> Method:
        method.__bedstone_tool__ = _Declaration(  # type: ignore[attr-defined]
            name, description, title, large, long or large, background, requires, hints
        )
        return method

    return declare


def declared_tools(owner: object) -> list[Tool]:
    """Return the tools that an object's methods declare, base classes first, in source order."""
    declarations: dict[str, _Declaration] = {}
    for cls in reversed(type(owner).__mro__):
        for attribute, value in vars(cls).items():
            if isinstance(declaration := getattr(value, "__bedstone_tool__", None), _Declaration):
                declarations[attribute] = declaration
    return [_bind(getattr(owner, attribute), declaration) for attribute, declaration in declarations.items()]


def _bind(method: Callable[..., Awaitable[Any]], declaration: _Declaration) -> Tool:
    types = get_type_hints(method)
    parameters = list(signature(method).parameters)
    return Tool(
        name=declaration.name,
        title=declaration.title,
        description=declaration.description,
        method=method,
        arguments=types[parameters[0]],
        results=_result_models(types.get("return")),
        large=declaration.large,
        long=declaration.long,
        background=declaration.background,
        takes_progress=len(parameters) > 1,
        requires=declaration.requires,
        **declaration.hints,
    )


def _result_models(annotation: Any) -> tuple[type[Result], ...]:
    options = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return tuple(option for option in options if isinstance(option, type) and issubclass(option, Result))
