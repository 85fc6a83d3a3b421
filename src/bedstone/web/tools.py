"""Every tool with a form made from its schema; requests and answers as agents see them."""

import json
import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.errors import UnknownTool
from bedstone.server.call_log import log_call
from bedstone.toolkit import Tool, Toolset
from bedstone.web.forms import parse_form
from bedstone.web.frame import Pages, estimate_tokens, pretty_json

LONG_TEXTS = frozenset({"query", "question", "whereClause", "content"})
MAX_QUOTED = 80  # characters


def tool_routes(pages: Pages) -> list[BaseRoute]:
    """Return /tools and /tools/{name}."""

    def find_tool(name: str) -> tuple[Toolset, Tool]:
        for toolset in pages.toolsets.values():
            if name in toolset.tools:
                return toolset, toolset.tools[name]
        raise UnknownTool(f"Unknown tool {name!r}. The Tools page lists every tool.")

    async def list_tools(request: Request) -> Response:
        groups = [
            (toolset.title, [(tool, estimate_tokens(_listing(tool))) for tool in toolset.tools.values()])
            for toolset in pages.toolsets.values()
        ]
        return pages.render(request, "tools.html", page="tools", groups=groups)

    async def show_tool(request: Request) -> Response:
        _, tool = find_tool(request.path_params["name"])
        fields = _fields(tool, dict(request.query_params))
        return pages.render(request, "tool.html", page="tools", tool=tool, fields=fields)

    async def call_tool(request: Request) -> Response:
        """Call a tool with the arguments of a form; a read-only toolset refuses changes itself."""
        form = await parse_form(request)
        name = request.path_params["name"]
        pages.forms.check_csrf(request, form.get("csrf"))
        toolset, tool = find_tool(name)
        arguments, problem = _arguments(tool, form)
        answer: dict[str, Any] = {"problem": problem}
        if problem is None:
            started = time.perf_counter()
            reply = await toolset.call(name, arguments)
            milliseconds = (time.perf_counter() - started) * 1000
            outcome = {"outcome": "error" if reply.is_error else "ok", "characters": len(reply.text)}
            log_call("page", name, outcome, milliseconds)
            answer |= {
                "milliseconds": round(milliseconds, 1),
                "arguments": {"name": name, "arguments": arguments},
                "text": reply.text if isinstance(reply.payload, str | tuple) else pretty_json(reply.payload),
                "is_error": reply.is_error,
                "tokens": estimate_tokens(reply.text),
            }
        if "x-part" in request.headers:
            return pages.render_fragment("tool_answer.html", answer=answer)
        fields = _fields(tool, form)
        return pages.render(request, "tool.html", page="tools", tool=tool, fields=fields, answer=answer)

    return [
        Route("/tools", list_tools),
        Route("/tools/{name}", show_tool, methods=["GET"]),
        Route("/tools/{name}", call_tool, methods=["POST"]),
    ]


def _listing(tool: Tool) -> str:
    """Return what a list of tools tells an agent about one."""
    return json.dumps([tool.name, tool.description, tool.input_schema])


def _fields(tool: Tool, given: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the fields of a form, one for each argument."""
    schema = tool.input_schema
    required = set(schema.get("required", ()))
    fields = []
    for name, facts in schema["properties"].items():
        kind = facts.get("type", "string")
        default = facts.get("default")
        text = "" if default is None or default == {} else str(default)
        fields.append(
            {
                "name": name,
                "help": facts.get("description", ""),
                "choices": [str(item) for item in facts.get("enum", ())],
                "kind": kind,
                "is_long": name in LONG_TEXTS,
                "is_json": kind in ("object", "array"),
                "required": name in required,
                "value": given.get(name, text.lower() if isinstance(default, bool) else text),
                "low": facts.get("minimum"),
                "high": facts.get("maximum"),
            }
        )
    return fields


def _arguments(tool: Tool, form: Mapping[str, str]) -> tuple[dict[str, Any], str | None]:
    """Parse the fields of a form by the types of the schema; return the arguments, or the first problem."""
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
                    json.dumps(arguments[name], ensure_ascii=False).encode()  # fails for half of a surrogate pair
                case _:
                    arguments[name] = text
        except (ValueError, RecursionError):
            expected = "valid JSON" if kind in ("object", "array") else "a number"
            return arguments, f"{name} must be {expected}: {text[:MAX_QUOTED]}"
    return arguments, None
