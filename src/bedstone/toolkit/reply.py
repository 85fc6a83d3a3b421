"""The reply of a tool call, before a protocol wraps it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bedstone.toolkit.content import Content, Text
from bedstone.toolkit.models import Result


@dataclass(frozen=True)
class Reply:
    """A payload (JSON, plain text or content blocks) and whether it reports a failure.

    `structured` is the JSON object beside the text. Errors have none, because clients validate it against the output
    schema, which describes success. A bare array has none unless it is given. `note` is a text block of its own, for
    what a bare array cannot say.
    """

    payload: dict[str, Any] | list[Any] | str | tuple[Content, ...]
    is_error: bool = False
    structured: dict[str, Any] | None = None
    note: str | None = None

    @classmethod
    def of(cls, result: "Result | str | Sequence[Content] | Reply") -> "Reply":
        """Wrap what a tool's method returned."""
        match result:
            case Reply():
                return result
            case Result():
                payload = result.model_dump(mode="json")
                return cls(payload, structured=payload)
            case str():
                return cls(result)
            case _:
                return cls(tuple(result))

    @cached_property
    def text(self) -> str:
        """The payload as text."""
        if isinstance(self.payload, str):
            return self.payload
        if isinstance(self.payload, tuple):
            return "\n".join(block.text for block in self.payload if isinstance(block, Text))
        return json.dumps(self.payload, ensure_ascii=False, separators=(",", ":"))

    @property
    def content(self) -> tuple[Content, ...]:
        """The payload as content blocks."""
        blocks = self.payload if isinstance(self.payload, tuple) else (Text(self.text),)
        return blocks if self.note is None else (*blocks, Text(self.note))
