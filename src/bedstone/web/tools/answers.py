"""Answers of tools for people: a readable form of JSON, and JSON itself in colour. Every text is escaped."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

MAX_DEPTH = 6
MAX_VALUES = 3_000  # of one answer
MAX_ITEMS = 100  # of one list
MAX_COLUMNS = 8
MAX_TEXT = 4_000  # characters of one text
SHORT_TEXT = 80
MAX_COLOURED = 100_000  # characters of JSON
FACT = Markup("<dt>{}</dt><dd>{}</dd>")
WIDE_FACT = Markup('<dt class="over">{}</dt><dd class="over">{}</dd>')
TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*")(?P<colon>:)?|\b(?:true|false|null|NaN|-?Infinity)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"""
)


def render_readable(value: Any) -> Markup:
    """Return JSON as lists of facts, tables and texts; what does not fit is left to the literal form."""
    return _Reader().render(value, 0)


class _Reader:
    """Renders one answer, and counts values so that a huge one does not become a huge page."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def render(self, value: Any, depth: int) -> Markup:
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            return Markup('<span class="softer">…</span>')
        match value:
            case dict() if value:
                return self._render_object(value, depth)
            case list() if value:
                return self._render_list(value, depth)
            case dict() | list():
                return Markup('<span class="softer">none</span>')
            case _:
                return _render_scalar(value)

    def _render_object(self, value: Mapping[str, Any], depth: int) -> Markup:
        rows = Markup("").join(
            (WIDE_FACT if _is_wide(item) else FACT).format(str(name), self.render(item, depth + 1))
            for name, item in value.items()
        )
        return Markup('<dl class="facts">{}</dl>').format(rows)

    def _render_list(self, value: Sequence[Any], depth: int) -> Markup:
        shown = value[:MAX_ITEMS]
        columns = _columns(shown)
        if columns:
            body = self._render_table(columns, shown)
        elif not any(isinstance(item, dict | list) for item in shown) and _is_short(shown):
            body = Markup(", ").join(self.render(item, depth + 1) for item in shown)
        else:
            items = Markup("").join(Markup("<li>{}</li>").format(self.render(item, depth + 1)) for item in shown)
            body = Markup('<ol class="items">{}</ol>').format(items)
        more = len(value) - len(shown)
        return body + Markup('<p class="small softer">{:,} more</p>').format(more) if more else body

    def _render_table(self, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Markup:
        self._left -= len(columns) * len(rows)
        head = Markup("").join(Markup("<th>{}</th>").format(name) for name in columns)
        body = Markup("").join(
            Markup("<tr>{}</tr>").format(
                Markup("").join(Markup("<td>{}</td>").format(_render_scalar(row.get(name, ""))) for name in columns)
            )
            for row in rows
        )
        return Markup(
            '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table class="table dense">'
            "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>"
        ).format(head, body)


def _is_wide(value: Any) -> bool:
    """Return whether a value stands below its name: a container that is not empty, or a long text."""
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return not _is_short(value)
    return bool(value) if isinstance(value, dict | list) else not _is_short([value])


def _columns(rows: Sequence[Any]) -> list[str]:
    """Return the columns of a list of flat objects with short values; nothing for another list."""
    if len(rows) < 2 or not all(isinstance(row, dict) for row in rows):  # noqa: PLR2004 - one row is a list of facts
        return []
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    flat = all(not isinstance(value, dict | list) and _is_short([value]) for row in rows for value in row.values())
    return names if flat and 0 < len(names) <= MAX_COLUMNS else []


def _is_short(values: Sequence[Any]) -> bool:
    return sum(len(str(value)) for value in values) <= SHORT_TEXT and not any("\n" in str(value) for value in values)


def _render_scalar(value: Any) -> Markup:
    match value:
        case None:
            return Markup('<span class="softer">&ndash;</span>')
        case bool():
            return escape("yes" if value else "no")
        case int() | float():
            return Markup('<span class="number">{}</span>').format(json.dumps(value))
        case _:
            return _render_text(str(value))


def _render_text(text: str) -> Markup:
    shown = _encodable(text[:MAX_TEXT])
    more = len(text) - MAX_TEXT
    rest = Markup('<span class="softer"> … {:,} more characters</span>').format(more) if more > 0 else Markup("")
    if len(text) <= SHORT_TEXT and "\n" not in text:
        return escape(shown)
    return Markup('<span class="as-is">{}</span>{}').format(shown, rest)


def render_json(value: Any) -> Markup:
    """Return JSON with line breaks, its names and values marked for colours; a very long one plain."""
    text = _encodable(json.dumps(value, ensure_ascii=False, indent=2))
    if len(text) > MAX_COLOURED:
        return escape(text)
    parts: list[Markup] = []
    end = 0
    for token in TOKEN.finditer(text):
        kind = "value" if token["text"] is None else "name" if token["colon"] else "text"
        written = token["text"] or token[0]
        parts += [escape(text[end : token.start()]), Markup('<span class="{}">{}</span>').format(kind, written)]
        end = token.start() + len(written)
    return Markup("").join([*parts, escape(text[end:])])


def _encodable(text: str) -> str:
    """Return a text with halves of surrogate pairs escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
