"""Every tool with a form made from its schema: the request and the answer as an agent sees them."""

import json
import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.errors import UnknownTool
from bedstone.toolkit import Tool, Toolset
from bedstone.web.frame import Pages, form_of, shown_json, tokens

LONG_TEXTS = frozenset({"query", "question", "whereClause", "content"})


def tool_routes(pages: Pages) -> list[BaseRoute]:
    """/tools and /tools/{name}."""

    def find(name: str) -> tuple[Toolset, Tool]:
        for toolset in pages.toolsets.values():
            if name in toolset.tools:
                return toolset, toolset.tools[name]
        raise UnknownTool(f"There is no tool called {name!r}.")

    async def listed(request: Request) -> Response:
        groups = [
            (toolset.title, [(tool, tokens(_told(tool))) for tool in toolset.tools.values()])
            for toolset in pages.toolsets.values()
        ]
        return pages.render(request, "tools.html", page="tools", groups=groups)

    async def shown(request: Request) -> Response:
        _, tool = find(request.path_params["name"])
        fields = _fields(tool, dict(request.query_params))
        return pages.render(request, "tool.html", page="tools", tool=tool, fields=fields)

    async def called(request: Request) -> Response:
        """Call the tool with what the form says; what would change something needs a form of ours."""
        form = await form_of(request)
        name = request.path_params["name"]
        pages.check_csrf(request, form.get("csrf"))
        toolset, tool = find(name)
        arguments, problem = _arguments(tool, form)
        told: dict[str, Any] = {"problem": problem}
        if problem is None:
            started = time.perf_counter()
            reply = await toolset.call(name, arguments)
            told |= {
                "milliseconds": round((time.perf_counter() - started) * 1000, 1),
                "arguments": {"name": name, "arguments": arguments},
                "answer": reply.text if isinstance(reply.payload, str | tuple) else shown_json(reply.payload),
                "is_error": reply.is_error,
                "tokens": tokens(reply.text),
            }
        if "x-part" in request.headers:
            return pages.part("tool_answer.html", **told)
        return pages.render(
            request, "tool.html", page="tools", tool=tool, fields=_fields(tool, form), told=told, **told
        )

    return [
        Route("/tools", listed),
        Route("/tools/{name}", shown, methods=["GET"]),
        Route("/tools/{name}", called, methods=["POST"]),
    ]


def _told(tool: Tool) -> str:
    """What an agent reads of a tool before it calls it."""
    return json.dumps([tool.name, tool.description, tool.input_schema])


def _fields(tool: Tool, given: Mapping[str, str]) -> list[dict[str, Any]]:
    """The inputs of a form, one for each argument."""
    schema = tool.input_schema
    required = set(schema.get("required", ()))
    made = []
    for name, facts in schema["properties"].items():
        kind = facts.get("type", "string")
        default = facts.get("default")
        usual = "" if default is None or default == {} else str(default)
        made.append(
            {
                "name": name,
                "help": facts.get("description", ""),
                "choices": [str(item) for item in facts.get("enum", ())],
                "kind": kind,
                "is_long": name in LONG_TEXTS,
                "is_json": kind in ("object", "array"),
                "required": name in required,
                "value": given.get(name, usual.lower() if isinstance(default, bool) else usual),
                "low": facts.get("minimum"),
                "high": facts.get("maximum"),
            }
        )
    return made


def _arguments(tool: Tool, form: Mapping[str, str]) -> tuple[dict[str, Any], str | None]:
    """Arguments from what was typed, by the types of the schema; or what cannot be read."""
    arguments: dict[str, Any] = {}
    for name, facts in tool.input_schema["properties"].items():
        text = form.get(name, "").strip()
        if not text:
            continue
        kind = facts.get("type", "string")
        try:
            match kind:
                case "integer":
                    arguments[name] = int(text)
                case "number":
                    arguments[name] = float(text)
                case "boolean":
                    arguments[name] = text.lower() in ("true", "yes", "on", "1")
                case "object" | "array":
                    arguments[name] = json.loads(text)
                    json.dumps(arguments[name], ensure_ascii=False).encode()  # half of a sign cannot be written
                case _:
                    arguments[name] = text
        except (ValueError, RecursionError):
            return arguments, f"{name} is not {'JSON' if kind in ('object', 'array') else 'a number'}: {text[:80]}"
    return arguments, None
