"""The strict form of a tool's arguments, for clients that accept closed schemas only.

Every key is required and those that were optional allow null; objects with free keys become lists of key and value;
a boolean `additionalProperties`, which an adapter for Gemini fails on, is left out. Clients that close objects add it.
"""

from collections.abc import Mapping
from typing import Any

from bedstone.toolkit.schema import Schema

OTHER = "other"  # free keys beside named ones
ANY_VALUE: Schema = {
    "anyOf": [
        {"type": "string"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string"}},
    ]
}


def strict_schema(schema: Schema) -> Schema:
    """Return the strict form of an input schema, whose root takes the named arguments only."""
    return _strict(schema | {"additionalProperties": False})


def relax_arguments(arguments: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return arguments of the strict form as the contract's schema has them."""
    relaxed = _relax(dict(arguments), schema | {"additionalProperties": False})
    assert isinstance(relaxed, dict)
    return relaxed


def _strict(schema: Schema) -> Schema:
    if schema.get("type") != "object":
        return _strict_value(schema)
    required = schema.get("required", ())
    properties = {
        name: _strict(value) if name in required else _nullable(_strict(value), value)
        for name, value in schema.get("properties", {}).items()
    }
    if _is_open(schema):
        pairs = _pairs(schema)
        if not properties:
            return _description_of(schema) | pairs
        properties[OTHER] = _nullable(pairs, {})
    return _description_of(schema) | {"type": "object", "properties": properties, "required": list(properties)}


def _relax(value: Any, schema: Schema) -> Any:
    if schema.get("type") != "object":
        return value
    if isinstance(value, list) and _is_open(schema):
        return _from_pairs(value)
    if not isinstance(value, dict):
        return value
    properties, required = schema.get("properties", {}), schema.get("required", ())
    relaxed = {
        name: _relax(item, properties.get(name, {}))
        for name, item in value.items()
        if item is not None or name in required
    }
    if _is_open(schema) and isinstance(relaxed.get(OTHER), list):
        relaxed |= _from_pairs(relaxed.pop(OTHER))
    return relaxed


def _from_pairs(pairs: list[Any]) -> Any:
    """Return pairs as an object; anything else stays, so that validation reports it."""
    if not all(isinstance(pair, dict) and isinstance(pair.get("key"), str) and "value" in pair for pair in pairs):
        return pairs
    return {pair["key"]: pair["value"] for pair in pairs}


def _is_open(schema: Schema) -> bool:
    """Return whether an object takes keys of the caller's choice."""
    return schema.get("additionalProperties") is not False


def _pairs(schema: Schema) -> Schema:
    extra = schema.get("additionalProperties")
    value = _strict_value(extra) if isinstance(extra, dict) and {"type", "anyOf"} & set(extra) else ANY_VALUE
    properties = {"key": {"type": "string"}, "value": value}
    return {"type": "array", "items": {"type": "object", "properties": properties, "required": list(properties)}}


def _description_of(schema: Schema) -> Schema:
    return {"description": schema["description"]} if "description" in schema else {}


def _strict_value(schema: Schema) -> Schema:
    plain = {key: value for key, value in schema.items() if key not in ("default", "additionalProperties")}
    if isinstance(plain.get("items"), dict):
        plain["items"] = _strict(plain["items"])
    if "anyOf" in plain:
        plain["anyOf"] = [_strict(option) for option in plain["anyOf"]]
    return plain


def _nullable(strict: Schema, contract: Schema) -> Schema:
    """Allow null, and say in the description which value null stands for."""
    allowed = dict(strict)
    if "anyOf" in allowed:
        allowed["anyOf"] = [*allowed["anyOf"], {"type": "null"}]
    elif isinstance(allowed.get("type"), str):
        allowed["type"] = [allowed["type"], "null"]
    if "enum" in allowed:
        allowed["enum"] = [*allowed["enum"], None]
    if "default" in contract:
        default = f"null means {contract['default']!r}".replace("True", "true").replace("False", "false")
        allowed["description"] = f"{allowed['description']} ({default})" if "description" in allowed else default
    return allowed
