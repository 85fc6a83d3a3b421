"""Prompt templates that clients request by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bedstone.toolkit.content import Content


@dataclass(frozen=True)
class PromptArgument:
    name: str
    description: str | None = None
    required: bool = False
    title: str | None = None


@dataclass(frozen=True)
class Prompt:
    """An entry of `prompts/list`."""

    name: str
    description: str | None = None
    arguments: Sequence[PromptArgument] = ()
    title: str | None = None


@dataclass(frozen=True)
class PromptMessage:
    role: Literal["user", "assistant"]
    content: Content
