"""A form made from the schema of a tool, and the arguments that a form sends."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bedstone.services.service import format_count
from bedstone.toolkit import Tool

LONG_TEXTS = frozenset({"query", "question", "whereClause", "content", "quote"})
LONG_TEXT_CHARACTERS = 500  # a text that may be as long gets several lines
NUMBERS = frozenset({"integer", "number"})
JSON_KINDS = frozenset({"object", "array"})
MAX_QUOTED = 80  # characters
TRUE = frozenset({"true", "yes", "on", "1"})


@dataclass(frozen=True)
class Field:
    """One argument of a tool: how it is entered, what it may be, and what was entered."""

    name: str
    kind: str
    help: str
    choices: tuple[str, ...]
    is_required: bool
    value: str
    default: str
    low: float | None
    high: float | None
    max_length: int | None
    problem: str = ""

    @property
    def is_json(self) -> bool:
        """Return whether it is entered as JSON."""
        return self.kind in JSON_KINDS

    @property
    def is_number(self) -> bool:
        """Return whether it is a number."""
        return self.kind in NUMBERS

    @property
    def is_long(self) -> bool:
        """Return whether it needs several lines."""
        return self.name in LONG_TEXTS or (self.max_length or 0) >= LONG_TEXT_CHARACTERS

    @property
    def is_short(self) -> bool:
        """Return whether two of them fit into a line."""
        return self.is_number or bool(self.choices) or self.kind == "boolean"


class InvalidField(Exception):
    """A field does not have the type of its argument."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.message = message


def make_fields(tool: Tool, given: Mapping[str, str], problem: InvalidField | None = None) -> list[Field]:
    """Return a field for each argument, with what was entered before."""
    required = set(tool.input_schema.get("required", ()))
    return [
        _make_field(
            name,
            facts,
            value=given.get(name, ""),
            is_required=name in required,
            problem=problem.message if problem is not None and problem.name == name else "",
        )
        for name, facts in tool.input_schema["properties"].items()
    ]


def _make_field(name: str, facts: Mapping[str, Any], *, value: str, is_required: bool, problem: str) -> Field:
    default = facts.get("default")
    return Field(
        name,
        str(facts.get("type", "string")),
        _describe(facts),
        tuple(str(item) for item in facts.get("enum", ())),
        is_required,
        value,
        "" if default in (None, {}, "") else str(default).lower() if isinstance(default, bool) else str(default),
        facts.get("minimum"),
        facts.get("maximum"),
        facts.get("maxLength"),
        problem,
    )


def _describe(facts: Mapping[str, Any]) -> str:
    """Return what an argument means, and its limits."""
    low, high = facts.get("minimum"), facts.get("maximum")
    limits = {(True, True): f"{low} to {high}", (True, False): f"at least {low}", (False, True): f"at most {high}"}
    meaning = str(facts.get("description", ""))
    is_told = any(char.isdigit() for char in meaning)
    range_text = "" if is_told else limits.get((low is not None, high is not None), "")
    length = facts.get("maxLength")
    parts = [range_text, f"up to {format_count(length, 'character')}" if length else ""]
    text = ", ".join(part for part in parts if part)
    return f"{meaning} ({text})" if meaning and text else meaning or text


def parse_arguments(tool: Tool, form: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments by the types of the schema; raise `InvalidField` for the first that does not fit."""
    arguments = {}
    for name, facts in tool.input_schema["properties"].items():
        text = form.get(name, "").strip()
        if not text:
            continue
        kind = facts.get("type")
        if kind is None and "anyOf" in facts:  # several types: JSON looks like JSON
            kind = "object" if text.startswith(("[", "{")) else "string"
        try:
            arguments[name] = _parse(text, str(kind))
        except (ValueError, RecursionError):
            expected = "valid JSON" if kind in JSON_KINDS else "a number"
            raise InvalidField(name, f"{name} must be {expected}: {text[:MAX_QUOTED]}") from None
    return arguments


def _parse(text: str, kind: str) -> Any:
    match kind:
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "boolean":
            return text.lower() in TRUE
        case "object" | "array":
            value = json.loads(text)
            json.dumps(value, ensure_ascii=False).encode()  # fails for half of a surrogate pair
            return value
        case _:
            return text
