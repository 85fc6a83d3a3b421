"""Parse prompt templates: `*.template.md` holds one message, `*.template.yaml` several."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bedstone.errors import explain
from bedstone.ingest.markdown import FRONT_MATTER
from bedstone.services.docs.source.front_matter import parse_yaml
from bedstone.services.docs.source.listing import PageProblem
from bedstone.services.docs.source.manifest import InvalidManifest

VARIABLE = re.compile(r"\{\{\{?\s*&?\s*([\w.-]+)\s*\}?\}\}")
ROLES = ("user", "assistant")


@dataclass(frozen=True)
class TemplateArgument:
    name: str
    title: str | None = None
    description: str | None = None
    required: bool = False


@dataclass(frozen=True)
class PromptTemplate:
    """A prompt with Mustache variables; values are not escaped."""

    name: str
    messages: tuple[tuple[str, str], ...]  # role and text
    title: str | None = None
    description: str | None = None
    arguments: tuple[TemplateArgument, ...] = field(default_factory=tuple)

    def fill(self, values: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return the messages with values in place of the variables; missing values become empty."""
        return [(role, VARIABLE.sub(lambda match: values.get(match[1], ""), text)) for role, text in self.messages]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for the index."""
        data = asdict(self)
        return {**data, "messages": [list(pair) for pair in self.messages], "arguments": list(data["arguments"])}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "PromptTemplate":
        """Restore a template from the index."""
        return cls(
            name=data["name"],
            messages=tuple((role, text) for role, text in data["messages"]),
            title=data["title"],
            description=data["description"],
            arguments=tuple(TemplateArgument(**item) for item in data["arguments"]),
        )


def read_templates(root: Path, paths: Iterable[str]) -> tuple[list[PromptTemplate], list[PageProblem], list[str]]:
    """Return all templates by name, problems and warnings; YAML wins over Markdown of the same name."""
    templates: dict[str, PromptTemplate] = {}
    problems: list[PageProblem] = []
    warnings: list[str] = []
    for path in sorted(paths, key=lambda item: (item.endswith(".md"), item)):
        try:
            template = _read_template(root, path)
        except (InvalidManifest, OSError, UnicodeDecodeError) as error:
            problems.append(PageProblem(path, explain(error)))
            continue
        if template.name in templates:
            warnings.append(f"{path}: ignored, {template.name}.template.yaml has the same name")
        else:
            templates[template.name] = template
    return [templates[name] for name in sorted(templates)], problems, warnings


def _read_template(root: Path, path: str) -> PromptTemplate:
    text = (root / path).read_text(encoding="utf-8-sig")
    if path.endswith(".md"):
        front = FRONT_MATTER.match(text)
        data = _parse_mapping(front[1]) if front else {}
        body = text[front.end() :] if front else text
        messages: tuple[tuple[str, str], ...] = (("user", body.strip()),)
        return _make_template(path.removesuffix(".template.md"), data, messages)
    data = _parse_mapping(text)
    return _make_template(path.removesuffix(".template.yaml"), data, _parse_messages(data.get("messages")))


def _make_template(name: str, data: dict[str, Any], messages: tuple[tuple[str, str], ...]) -> PromptTemplate:
    return PromptTemplate(
        name=name,
        messages=messages,
        title=_optional_text(data, "title"),
        description=_optional_text(data, "description"),
        arguments=_parse_arguments(data.get("arguments", [])),
    )


def _parse_mapping(text: str) -> dict[str, Any]:
    data = parse_yaml(text)
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise InvalidManifest("must be a mapping")
    return data


def _parse_messages(data: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(data, list) or not data:
        raise InvalidManifest("messages must be a non-empty list")
    messages = []
    for number, item in enumerate(data):
        content = item.get("text", item.get("content")) if isinstance(item, dict) else None
        text = content.get("text") if isinstance(content, dict) else content
        if not isinstance(item, dict) or item.get("role") not in ROLES or not isinstance(text, str):
            raise InvalidManifest(f"messages[{number}] must have a role (user or assistant) and text")
        messages.append((str(item["role"]), text))
    return tuple(messages)


def _parse_arguments(data: Any) -> tuple[TemplateArgument, ...]:
    if not isinstance(data, list):
        raise InvalidManifest("arguments must be a list")
    arguments = []
    for number, item in enumerate(data):
        if not isinstance(item, dict) or not isinstance(item.get("name"), str) or not item["name"].strip():
            raise InvalidManifest(f"arguments[{number}].name must be a non-empty string")
        arguments.append(
            TemplateArgument(
                name=item["name"],
                title=_optional_text(item, "title"),
                description=_optional_text(item, "description"),
                required=item.get("required") is True,
            )
        )
    return tuple(arguments)


def _optional_text(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidManifest(f"{key} must be a string")
    return value
