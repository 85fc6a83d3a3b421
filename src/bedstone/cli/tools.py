"""`bedstone tools`: list tools, print a schema, call a tool, exactly as agents see them."""

import json
import sys
from typing import Any

import click

from bedstone.app import App
from bedstone.cli.options import CONTENT_FLAGS, settings_options
from bedstone.cli.running import with_app
from bedstone.errors import InvalidInput, UnknownTool
from bedstone.toolkit import Reply, Tool, Toolset


@click.group
def tools() -> None:
    """List, inspect and call the tools that agents see."""


@tools.command("list")
@settings_options(CONTENT_FLAGS)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_tools(*, as_json: bool, **options: Any) -> None:
    """List all tools of the configured toolsets."""

    async def collect(app: App) -> list[tuple[str, Tool]]:
        return [(label, tool) for label, toolset in app.toolsets.items() for tool in toolset.tools.values()]

    listing = with_app(options, collect)
    if as_json:
        rows = [{"toolset": label, "name": tool.name, "description": tool.description} for label, tool in listing]
        click.echo(json.dumps(rows, indent=2))
        return
    from rich.table import Table
    from rich.text import Text

    from bedstone.cli.progress import console

    table = Table("tool", "toolset", "description", box=None, pad_edge=False)
    for label, tool in listing:
        table.add_row(Text(tool.name, style="bold"), label, tool.description)
    console().print(table)


@tools.command
@click.argument("name")
@settings_options(CONTENT_FLAGS)
def show(name: str, **options: Any) -> None:
    """Print a tool as JSON: description, input and output schema, annotations."""

    async def describe(app: App) -> Tool:
        return _find_tool(name, app)[1]

    tool = with_app(options, describe)
    card = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "readOnly": tool.read_only,
        "destructive": tool.destructive,
    }
    click.echo(json.dumps({key: value for key, value in card.items() if value is not None}, indent=2))


@tools.command
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@settings_options(CONTENT_FLAGS)
@click.option("--json", "json_arguments", metavar="OBJECT", help="All arguments as one JSON object.")
def call(name: str, arguments: tuple[str, ...], json_arguments: str | None, **options: Any) -> None:
    """Call a tool and print its answer; the exit code is 1 when the answer reports an error.

    A VALUE is parsed as JSON if possible (5, true, ["a"]), unless the tool expects a string.
    """
    call_and_print(name, _parse_object(json_arguments), options, dict(map(_parse_argument, arguments)))


def call_and_print(
    name: str, arguments: dict[str, Any], options: dict[str, Any], texts: dict[str, str] | None = None
) -> None:
    """Call a tool, print its answer, and exit with 1 if it reports an error."""
    reply = call_tool(name, arguments, options, texts)
    is_text = isinstance(reply.payload, str | tuple)
    click.echo(reply.text if is_text else json.dumps(reply.payload, indent=2, ensure_ascii=False))
    if reply.note is not None:
        click.echo(reply.note, err=True)
    sys.exit(1 if reply.is_error else 0)


def call_tool(
    name: str, arguments: dict[str, Any], options: dict[str, Any], texts: dict[str, str] | None = None
) -> Reply:
    """Call a tool; `texts` are arguments as typed on the command line."""

    async def answer(app: App) -> Reply:
        toolset, tool = _find_tool(name, app)
        kinds = {key: schema.get("type") for key, schema in tool.input_schema.get("properties", {}).items()}
        typed = {key: _parse_value(text, kinds.get(key)) for key, text in (texts or {}).items()}
        return await toolset.call(name, arguments | typed)

    return with_app(options, answer)


def _find_tool(name: str, app: App) -> tuple[Toolset, Tool]:
    for toolset in app.toolsets.values():
        if name in toolset.tools:
            return toolset, toolset.tools[name]
    names = ", ".join(tool for toolset in app.toolsets.values() for tool in toolset.tools)
    raise UnknownTool(f"Unknown tool: {name}. Tools: {names}")


def _parse_object(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except ValueError as error:
        raise InvalidInput(f"--json is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidInput('--json must be a JSON object. For example: \'{"query": "retries"}\'')
    return value


def _parse_argument(argument: str) -> tuple[str, str]:
    name, separator, text = argument.partition("=")
    if not separator:
        raise InvalidInput(f"Invalid argument {argument!r}. Use NAME=VALUE.")
    return name, text


def _parse_value(text: str, kind: str | None) -> Any:
    """Parse a value as JSON if possible; but 404 stays a string if the tool expects a string."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if kind == "string" and not isinstance(value, str) else value
