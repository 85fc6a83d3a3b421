"""JSON Schema of models as agents read it: no generated titles, no references, optional fields printed plainly."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from bedstone.toolkit.models import Arguments

Schema = dict[str, Any]

VALUES = ("default", "examples", "enum", "const")  # their content is data, not a schema


def input_schema(model: type[Arguments]) -> Schema:
    """Return the schema of a tool's arguments."""
    schema = _plain(model)
    properties = schema.pop("properties", {})
    required = schema.get("required", ())
    ordered = sorted(properties, key=lambda name: name not in required)  # required arguments first
    return {"type": "object", "properties": {name: properties[name] for name in ordered}} | schema


def output_schema(models: Sequence[type[BaseModel]]) -> Schema | None:
    """Return the schema of a successful result; alternatives are the `anyOf` of one object."""
    shapes = [_plain(model) for model in models]
    match shapes:
        case []:
            return None
        case [shape]:
            return shape
        case _:
            return {"type": "object", "anyOf": shapes}


def _plain(model: type[BaseModel]) -> Schema:
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
    plain = _rewrite(schema, definitions)
    assert isinstance(plain, dict)
    return plain


def _rewrite(node: Any, definitions: Schema) -> Any:
    match node:
        case {"$ref": reference, **rest}:
            return _rewrite(definitions[reference.rpartition("/")[2]] | rest, definitions)
        case dict():
            return _schema_node(node, definitions)
        case list():
            return [_rewrite(item, definitions) for item in node]
        case _:
            return node


def _schema_node(node: Schema, definitions: Schema) -> Schema:
    plain = {"type": node["type"]} if "type" in node else {}
    if "properties" in node:  # a property may be named title
        plain["properties"] = {name: _rewrite(value, definitions) for name, value in node["properties"].items()}
    rest = {key: value for key, value in node.items() if key not in ("type", "properties", "title")}
    rewritten = {key: value if key in VALUES else _rewrite(value, definitions) for key, value in rest.items()}
    if "const" in rewritten:  # an enum of one value
        rewritten["enum"] = [rewritten.pop("const")]
    if rewritten.get("additionalProperties") is True:  # that is the default, and some clients fail on it
        del rewritten["additionalProperties"]
    return _without_null(plain | rewritten)


def _without_null(node: Schema) -> Schema:
    """Print `X | None = None` as X, and `X | None` without a default as a type that allows null."""
    options = node.get("anyOf")
    if not options or {"type": "null"} not in options:
        return node
    others = [option for option in options if option != {"type": "null"}]
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    if "default" in rest and rest["default"] is None:
        del rest["default"]
        return {**rest, **(others[0] if len(others) == 1 else {"anyOf": others})}
    if len(others) == 1 and isinstance(others[0].get("type"), str) and "enum" not in others[0]:
        return {**rest, **others[0], "type": [others[0]["type"], "null"]}
    return node
