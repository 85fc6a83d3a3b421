"""What the vendors of models accept of tools, stated as rules, and every tool held against them.

Their own adapters agree: google-genai 3.3 `mcp_to_gemini_tools` and openai-agents 0.24 `ensure_strict_json_schema`
take every tool of the strict profile.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from bedstone.app import build_toolset
from bedstone.server import BedstoneServer
from bedstone.server.tools import definition
from bedstone.services.docs.builder import BuildOptions, DocsBuilder
from bedstone.settings import Settings
from bedstone.toolkit.strict import relax_arguments, strict_schema
from bedstone.toolsets import TOOLSETS
from support.doors import HANDSHAKE

Schema = dict[str, Any]

NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")  # clients put prefixes before it, and cut at 63
MAX_DESCRIPTION = 2_000
MAX_LEVELS = 10
MAX_ENUM_VALUES = 1_000
UNSUPPORTED = {
    *("$ref", "$defs", "$schema", "allOf", "oneOf", "not", "if", "then", "else"),
    *("dependentRequired", "dependentSchemas", "patternProperties"),
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("docs")
    (folder / "source").mkdir()
    for language in ("go", "python"):
        (folder / "source" / f"{language}.md").write_text(f"---\nmetadata: {{language: {language}}}\n---\n# Setup\n")
    DocsBuilder(folder / "source", folder / "index", None, BuildOptions(), lambda *_: None).build()
    return Settings.model_validate(
        {
            "data_dir": folder / "data",
            "docs": {"index": folder / "index"},
            "salesforce": {"more_tools": ["all"]},
            "embedding": {"provider": "none"},
        }
    )


def tools(settings: Settings) -> list[Schema]:
    """Every tool of the strict profile as it is listed."""
    return [
        definition(tool, strict_schema(tool.input_schema)).model_dump(mode="json", by_alias=True, exclude_none=True)
        for label in TOOLSETS.builtin
        for tool in build_toolset(label, settings).tools.values()
    ]


def nodes(schema: Schema, level: int = 1) -> Iterator[tuple[int, Schema]]:
    """Every schema inside a schema, with its level."""
    yield level, schema
    for child in schema.get("properties", {}).values():
        yield from nodes(child, level + 1)
    for option in schema.get("anyOf", ()):
        yield from nodes(option, level)
    if isinstance(schema.get("items"), dict):
        yield from nodes(schema["items"], level + 1)


def types(schema: Schema) -> list[str]:
    kind = schema.get("type", [])
    return kind if isinstance(kind, list) else [kind]


def break_openai_strict(schema: Schema) -> Iterator[str]:
    """OpenAI's strict mode: closed objects, every key required, no combinators at the root, bounded size."""
    if schema.get("type") != "object" or "anyOf" in schema:
        yield "the root is not a plain object"
    enum_values = 0
    for level, node in nodes(schema):
        if "object" in types(node):
            if "properties" not in node:
                yield "an object with free keys"
            if set(node.get("required", ())) != set(node.get("properties", {})):
                yield "a key that is not required"
        if UNSUPPORTED & set(node):
            yield f"unsupported: {UNSUPPORTED & set(node)}"
        if not ({"type", "anyOf"} & set(node)):
            yield "a value without a type"
        if "default" in node:
            yield "a default"
        if level > MAX_LEVELS:
            yield "too deep"
        enum_values += len(node.get("enum", ()))
    if enum_values > MAX_ENUM_VALUES:
        yield "too many enum values"


def break_gemini(schema: Schema) -> Iterator[str]:
    """Gemini's adapters: no boolean where they expect a schema, one type or one type and null."""
    for _, node in nodes(schema):
        if isinstance(node.get("additionalProperties"), bool) or isinstance(node.get("items"), bool):
            yield "a boolean schema"
        if len([kind for kind in types(node) if kind != "null"]) > 1:
            yield "several types at once"
        if "array" in types(node) and "items" not in node:
            yield "an array without items"


def break_anthropic(tool: Schema) -> Iterator[str]:
    """Anthropic's clients: short names, descriptions below 2 KB, hints and a title on every tool."""
    if not NAME.fullmatch(tool["name"]):
        yield "name"
    if len(tool["description"].encode()) > MAX_DESCRIPTION:
        yield "description"
    if not {"title", "readOnlyHint", "destructiveHint", "openWorldHint"} <= set(tool["annotations"]):
        yield "annotations"


def test_every_tool_of_the_strict_profile_follows_every_vendors_rules(settings: Settings) -> None:
    listed = tools(settings)
    assert len(listed) >= 38
    broken = {
        tool["name"]: found
        for tool in listed
        if (
            found := [
                *break_openai_strict(tool["inputSchema"]),
                *break_gemini(tool["inputSchema"]),
                *break_anthropic(tool),
            ]
        )
    }
    assert broken == {}


def test_the_contracts_schemas_have_booleans_only_where_a_contract_prints_them(settings: Settings) -> None:
    for label in TOOLSETS.builtin:
        for tool in build_toolset(label, settings).tools.values():
            printed = json.dumps(tool.input_schema)
            assert '"additionalProperties": true' not in printed, tool.name
            assert label in ("docs", "knowledge") or '"additionalProperties": false' not in printed, tool.name


def test_answers_that_clients_would_cut_declare_their_size(settings: Settings) -> None:
    declared = {tool["name"] for tool in tools(settings) if "_meta" in tool}
    assert {"get_doc", "get_kb_content", "knowledge-get", "get-object"} <= declared


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"name": "x", "more": None, "free": None, "mixed": None}, {"name": "x"}),
        ({"free": [{"key": "a", "value": "1"}]}, {"free": {"a": "1"}}),
        ({"mixed": {"named": None, "other": [{"key": "b", "value": 2}]}}, {"mixed": {"b": 2}}),
        ({"mixed": {"named": "n", "other": None}}, {"mixed": {"named": "n"}}),
        ({"free": {"a": "1"}, "mixed": {"c": 3}}, {"free": {"a": "1"}, "mixed": {"c": 3}}),
        ({"free": ["bad"]}, {"free": ["bad"]}),
    ],
)
def test_strict_arguments_mean_what_the_contracts_say(given: Schema, meant: Schema) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "more": {"type": "integer", "default": 3},
            "free": {"type": "object", "additionalProperties": {"type": "string"}},
            "mixed": {
                "type": "object",
                "properties": {"named": {"type": "string"}},
                "additionalProperties": {"description": "anything"},
            },
        },
        "required": ["name"],
    }
    assert relax_arguments(given, schema) == meant


async def test_a_strict_client_adds_and_filters_by_metadata(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "oars.txt"
    file.write_text("Oars are stored in the boathouse.")
    toolset = build_toolset("knowledge", settings)
    server = BedstoneServer("knowledge-server", [toolset], strict_schemas=True)
    async with toolset.opened(), Client(server, mode=HANDSHAKE) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "metadata" in listed["knowledge-add"].input_schema["required"]
        pairs = [{"key": "author", "value": "Rower"}]
        arguments = {"file_path": str(file), "metadata": pairs, "force_ocr": None, "async": False, "contexts": None}
        assert not (await client.call_tool("knowledge-add", arguments)).is_error
        filters = {"format": None, "date_range": None, "other": [{"key": "author", "value": "Rower"}]}
        query = {"query": "oars", "top_k": None, "min_relevance": None, "filters": filters, "context": None}
        found = await client.call_tool("knowledge-search", query)
        assert found.structured_content
        assert [hit["metadata"]["author"] for hit in found.structured_content["results"]] == ["Rower"]
