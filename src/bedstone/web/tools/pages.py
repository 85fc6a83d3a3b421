"""Every tool with a form made from its schema; answers for people and as agents see them."""

import json
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.errors import UnknownTool
from bedstone.server.call_log import log_call
from bedstone.services.service import format_count
from bedstone.toolkit import Reply, Tool, Toolset
from bedstone.web.forms import parse_form
from bedstone.web.frame import Pages, estimate_tokens
from bedstone.web.tools.answers import render_json, render_readable
from bedstone.web.tools.form import InvalidField, make_fields, parse_arguments


@dataclass(frozen=True)
class ListedTool:
    """A tool in a list, and how many tokens it takes in the list of an agent."""

    tool: Tool
    tokens: int


@dataclass(frozen=True)
class ToolGroup:
    """The tools of a toolset."""

    title: str
    icon: str
    tools: Sequence[ListedTool]

    @property
    def tokens(self) -> int:
        """Return how many tokens they take in the list of an agent."""
        return sum(item.tokens for item in self.tools)


@dataclass(frozen=True)
class Answer:
    """What a call answered: for people, and as an agent sees it."""

    request: Markup
    readable: Markup
    literal: Markup
    summary: str
    is_error: bool
    is_json: bool
    milliseconds: float
    tokens: int


def tool_routes(pages: Pages) -> list[BaseRoute]:
    """Return /tools and /tools/{name}."""
    return _Tools(pages).routes()


class _Tools:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/tools", self.show_list, methods=["GET"]),
            Route("/tools/{name}", self.show, methods=["GET"]),
            Route("/tools/{name}", self.call, methods=["POST"]),
        ]

    async def show_list(self, request: Request) -> Response:
        wanted = request.query_params.get("find", "").strip()
        groups = self._groups(wanted.lower())
        return self._pages.render(request, "tools.html", page="tools", groups=groups, find=wanted, count=_count(groups))

    async def show(self, request: Request) -> Response:
        toolset, tool = self._find(request.path_params["name"])
        return self._render(request, toolset, tool, dict(request.query_params))

    async def call(self, request: Request) -> Response:
        """Call a tool with the arguments of a form, or show the command for that; read-only ones refuse changes."""
        form = await parse_form(request)
        self._pages.forms.check_csrf(request, form.get("csrf"))
        toolset, tool = self._find(request.path_params["name"])
        shown: dict[str, Any] = {}
        problem = None
        try:
            arguments = parse_arguments(tool, form)
            if form.get("as") == "curl":
                shown["curl"] = self._curl(request, tool.name, arguments)
            else:
                shown["answer"] = await _call(toolset, tool, arguments)
        except InvalidField as error:
            problem = error
        if "x-part" in request.headers:
            return self._pages.render_fragment("tool_answer.html", problem=problem, **shown)
        return self._render(request, toolset, tool, form, problem, **shown)

    def _render(
        self,
        request: Request,
        toolset: Toolset,
        tool: Tool,
        given: Mapping[str, str],
        problem: InvalidField | None = None,
        **shown: Any,
    ) -> Response:
        groups = self._groups()
        return self._pages.render(
            request,
            "tool.html",
            page="tools",
            groups=groups,
            count=_count(groups),
            toolset=toolset,
            tool=tool,
            tokens=count_tokens(tool),
            fields=make_fields(tool, given, problem),
            problem=problem,
            schemas=[
                (title, render_json(schema))
                for title, schema in (("Arguments", tool.input_schema), ("Result", tool.output_schema))
                if schema
            ],
            **shown,
        )

    def _find(self, name: str) -> tuple[Toolset, Tool]:
        for toolset in self._pages.toolsets.values():
            if name in toolset.tools:
                return toolset, toolset.tools[name]
        known = [tool for toolset in self._pages.toolsets.values() for tool in toolset.tools]
        near = get_close_matches(name, known, 1)
        advice = f"Did you mean {near[0]}?" if near else "The page Tools lists every tool."
        raise UnknownTool(f"Unknown tool {name!r}. {advice}")

    def _groups(self, wanted: str = "") -> list[ToolGroup]:
        """Return the tools of each toolset, on request those with some words in their name or description."""
        groups = []
        for label, toolset in self._pages.toolsets.items():
            tools = [
                ListedTool(tool, count_tokens(tool))
                for tool in toolset.tools.values()
                if wanted in f"{tool.name} {tool.title} {tool.description}".lower()
            ]
            navigation = self._pages.specs[label].navigation
            groups.append(ToolGroup(toolset.title, navigation[0].icon if navigation else "search", tools))
        return [group for group in groups if group.tools]

    def _curl(self, request: Request, name: str, arguments: Mapping[str, Any]) -> str:
        """Return a command that makes the same call."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        body = shlex.quote(json.dumps(call, ensure_ascii=False))
        token = ' \\\n  -H "Authorization: Bearer $BEDSTONE_TOKEN"' if self._pages.options.token else ""
        address = f"{str(request.base_url).rstrip('/')}/mcp/tools/call"
        return f"curl -s {shlex.quote(address)} \\\n  -H 'Content-Type: application/json'{token} \\\n  -d {body}"


async def _call(toolset: Toolset, tool: Tool, arguments: dict[str, Any]) -> Answer:
    started = time.perf_counter()
    reply = await toolset.call(tool.name, arguments)
    milliseconds = (time.perf_counter() - started) * 1000
    outcome = {"outcome": "error" if reply.is_error else "ok", "characters": len(reply.text)}
    log_call("page", tool.name, outcome, milliseconds)
    is_json = not isinstance(reply.payload, str | tuple)
    text = reply.text if reply.note is None else f"{reply.text}\n{reply.note}"
    literal = escape(text.encode("utf-8", "backslashreplace").decode())
    return Answer(
        request=render_json({"name": tool.name, "arguments": arguments}),
        readable=render_readable(reply.payload if is_json else text),
        literal=render_json(reply.payload) if is_json else literal,
        summary=_summarize(reply),
        is_error=reply.is_error,
        is_json=is_json,
        milliseconds=round(milliseconds, 1),
        tokens=estimate_tokens(text),
    )


def _summarize(reply: Reply) -> str:
    """Return in a word or two what came back."""
    if reply.is_error:
        return "Error"
    if isinstance(reply.payload, list):
        return format_count(len(reply.payload), "result")
    payload = reply.payload if isinstance(reply.payload, dict) else {}
    lists = [(name, item) for name, item in payload.items() if isinstance(item, list)]
    if len(lists) == 1 and lists[0][0].endswith("s"):
        name, items = lists[0]
        return format_count(len(items), name[:-1].replace("_", " "))
    return "Answered"


def count_tokens(tool: Tool) -> int:
    """Return how many tokens a tool takes in the list of an agent."""
    return estimate_tokens(json.dumps([tool.name, tool.description, tool.input_schema]))


def _count(groups: Sequence[ToolGroup]) -> int:
    return sum(len(group.tools) for group in groups)
