"""Parse Markdown into top-level blocks: position, heading level, and text without markup."""

import re
from dataclasses import dataclass
from typing import Any

import pyromark

OPTIONS = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_FOOTNOTES
    | pyromark.Options.ENABLE_STRIKETHROUGH
    | pyromark.Options.ENABLE_TASKLISTS
)
# What each element ends with in plain text, so that cells, items and paragraphs stay apart.
ENDS = {
    "Paragraph": "\n",
    "Heading": "\n",
    "CodeBlock": "\n",
    "HtmlBlock": "\n",
    "Item": "\n",
    "TableCell": " | ",
    "TableHead": "\n",
    "TableRow": "\n",
}
FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
TAG = re.compile(r"<[^<>]*>")
BLANK_LINES = re.compile(r"\n\s*\n+")


@dataclass(frozen=True, slots=True)
class Block:
    """A top-level block: its bytes in the source, and its plain text; headings have a level.

    An entry describes one function, class or setting: it starts a chunk at every level.
    """

    start: int
    end: int
    plain: str
    level: int = 0
    slug_text: str = ""  # what the id of a heading is made of, where that is not its plain text
    is_entry: bool = False


def markdown_blocks(source: str) -> list[Block]:
    """Return the top-level blocks of a document in order."""
    found: list[Block] = []
    words: list[str] = []
    depth = level = start = 0
    for event, span in pyromark.events_with_range(source, options=OPTIONS):
        kind, detail = next(iter(event.items())) if isinstance(event, dict) else (event, None)
        if kind == "Start":
            if depth == 0:
                start, level, words = span["start"], _level(detail), []
            depth += 1
        elif kind == "End":
            depth -= 1
            words.append(ENDS.get(_name(detail), ""))
            if depth == 0:
                found.append(Block(start, span["end"], _tidy(words), level))
        elif depth:
            words.append(_words(kind, detail))
        else:
            found.append(Block(span["start"], span["end"], ""))  # a thematic break
    return _with_gaps(found, source.encode())


def _with_gaps(blocks: list[Block], source: bytes) -> list[Block]:
    """Add what the parser skips, such as link definitions, as blocks without plain text."""
    found: list[Block] = []
    end = 0
    for block in (*blocks, Block(len(source), len(source), "")):
        if gap := source[end : block.start].strip():
            start = source.index(gap, end)
            found.append(Block(start, start + len(gap), ""))
        found.append(block)
        end = max(end, block.end)
    return found[:-1]


def _without_tags(html: str) -> str:
    """Remove tags and comments; a pattern for comments would take quadratic time."""
    kept, start = [], 0
    while (opened := html.find("<!--", start)) >= 0 and (closed := html.find("-->", opened)) >= 0:
        kept.append(html[start:opened])
        start = closed + 3
    return TAG.sub(" ", " ".join([*kept, html[start:]]))


def _name(detail: Any) -> str:
    return str(detail if isinstance(detail, str) else next(iter(detail)))


def _level(detail: Any) -> int:
    heading = detail.get("Heading") if isinstance(detail, dict) else None
    return int(heading["level"][1]) if heading else 0


def _words(kind: str, detail: Any) -> str:
    match kind:
        case "Text" | "Code":
            return str(detail)
        case "SoftBreak" | "HardBreak":
            return "\n"
        case "Html":
            return _without_tags(str(detail))
        case _:
            return ""


def _tidy(words: list[str]) -> str:
    return BLANK_LINES.sub("\n", "".join(words).replace(" | \n", "\n")).strip(" \n|")
