"""The reference page of a toolset."""

import json
from collections.abc import Iterable

from bedstone.toolkit.tool import Tool
from bedstone.toolkit.toolset import Toolset


def reference_page(toolset: Toolset) -> str:
    """Describe every tool with its arguments and the schema of its answer, as Markdown."""
    head = f"# {toolset.title}\n\nToolset `{toolset.label}`, served at `/{toolset.label.replace('_', '-')}/mcp`."
    return "\n\n".join([head, *(_section(tool) for tool in toolset.tools.values())]) + "\n"


def describe_behaviour(tool: Tool) -> str:
    """Describe a tool's annotations in words."""
    words = ["reads only" if tool.read_only else "changes data"]
    words += ["may destroy"] if tool.destructive else []
    words += ["safe to repeat"] if tool.idempotent else []
    words += ["asks other systems"] if tool.open_world else []
    return ", ".join(words)


def _section(tool: Tool) -> str:
    parts = [f"## `{tool.name}`", tool.description, f"{describe_behaviour(tool).capitalize()}.", *_arguments(tool)]
    if tool.output_schema:
        parts += ["Answer:", f"```json\n{json.dumps(tool.output_schema, indent=2)}\n```"]
    return "\n\n".join(parts)


def _arguments(tool: Tool) -> Iterable[str]:
    properties = tool.input_schema["properties"]
    if not properties:
        return ["Takes no arguments."]
    required = tool.input_schema.get("required", [])
    rows = [
        f"| `{name}` | {_type(schema)} | {'yes' if name in required else 'no'} | {_default(schema)} "
        f"| {schema.get('description', '')} |"
        for name, schema in properties.items()
    ]
    return ["\n".join(["| argument | type | required | default | meaning |", "|---|---|---|---|---|", *rows])]


def _type(schema: dict[str, object]) -> str:
    options = schema.get("enum")
    if isinstance(options, list):
        return " or ".join(f"`{option}`" for option in options)
    return str(schema.get("type", "any"))


def _default(schema: dict[str, object]) -> str:
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else ""
