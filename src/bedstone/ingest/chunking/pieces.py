"""Split blocks that are longer than a chunk: between rows, lines or sentences."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bedstone.ingest.markdown import Block

Splitting = Literal["sentence", "paragraph", "fixed"]
# A sentence ends with punctuation and a space, in any script; full-width punctuation needs no space. Possessive
# quantifiers, because a long run of dots would otherwise take quadratic time.
SENTENCE = re.compile(
    r"[^.!?\u3002\uff01\uff1f\u0964\u061f\n]*+"
    r"(?:[.!?]++[\"')\]\u201d\u2019]*+(?=\s|$)|[\u3002\uff01\uff1f\u0964\u061f]++|\n|$|[.!?]++)\s*+"
)
TABLE_RULE = re.compile(r"^\|?[\s:|-]+\|?$")
MAX_HEAD_ROWS = 2  # a table's head that is longer than so many average rows, and than half a chunk, is not repeated
MAX_ROW_CHUNKS = 4  # rows longer than so many chunks are split


@dataclass(frozen=True)
class SplitOptions:
    """How to split pages; sizes are characters."""

    size: int = 500
    overlap: int = 50
    by: Splitting = "sentence"

    @property
    def max_shared(self) -> int:
        """Return how much of a part the next one may repeat: otherwise the parts of a text could multiply it."""
        return min(self.overlap, self.size // 2)


def split_block(block: Block, text: str, options: SplitOptions) -> Iterator[tuple[str, str]]:
    """Yield a block unchanged if it fits, else its parts; each with its plain text."""
    if len(text) <= options.size and options.by != "fixed":
        yield text, block.plain
    elif _is_table(text):
        for part in _table_parts(text, options.size):
            yield part, "\n".join(_cells(line) for line in part.splitlines() if not TABLE_RULE.match(line))
    elif text.startswith(("```", "~~~")):
        for part in _line_parts(block.plain.splitlines(), options.size):
            yield f"```\n{part}\n```", part
    elif options.by == "fixed":
        for start in range(0, len(block.plain), max(1, options.size - options.max_shared)):
            part = block.plain[start : start + options.size]
            yield part, part
    else:
        for part in _sentence_parts(block.plain, options):
            yield part, part


def _sentence_parts(text: str, options: SplitOptions) -> Iterator[str]:
    """Combine sentences up to the size; each part repeats the last short sentences of the one before."""
    sentences: list[str] = []
    length = 0
    for sentence in _sentences(text, options.size):
        if sentences and length + len(sentence) > options.size:
            yield "".join(sentences).strip()
            sentences = _tail(sentences, options.max_shared)
            length = sum(map(len, sentences))
        sentences.append(sentence)
        length += len(sentence)
    if "".join(sentences).strip():
        yield "".join(sentences).strip()


def _sentences(text: str, limit: int) -> Iterator[str]:
    for found in SENTENCE.finditer(text):
        yield from _at_spaces(found[0], limit)


def _at_spaces(text: str, limit: int) -> Iterator[str]:
    """Split text into pieces of at most `limit` characters, after a space if possible."""
    start = 0
    while len(text) - start > limit:
        cut = text.rfind(" ", start + 1, start + limit) + 1 or start + limit
        yield text[start:cut]
        start = cut
    if start < len(text):
        yield text[start:]


def _tail(sentences: list[str], overlap: int) -> list[str]:
    start, length = len(sentences), 0
    while start and length + len(sentences[start - 1]) <= overlap:
        start -= 1
        length += len(sentences[start])
    return sentences[start:] if start else []


def _is_table(text: str) -> bool:
    lines = text.splitlines()
    return len(lines) > 1 and "|" in lines[0] and bool(TABLE_RULE.match(lines[1]))


def _table_parts(text: str, size: int) -> Iterator[str]:
    """Combine rows up to the size, and repeat the head of the table in each part.

    A head that is long compared with the rows would multiply the table: only the first part has it.
    """
    head, rule, *rows = text.splitlines()
    lead = len(head) + len(rule)
    average = sum(map(len, rows)) // max(1, len(rows))
    if lead <= max(size // 2, MAX_HEAD_ROWS * average) and lead <= MAX_ROW_CHUNKS * size:
        for group in _groups(_short_rows(rows, size), size - lead) if rows else [[]]:
            yield "\n".join([head, rule, *group])
    else:
        for group in _groups([*_short_rows([head], size), *_short_rows(rows, size)], size):
            yield "\n".join(group)


def _short_rows(rows: Iterable[str], size: int) -> Iterator[str]:
    """Yield rows; those that exceed several chunks in pieces."""
    for row in rows:
        if len(row) > MAX_ROW_CHUNKS * size:
            yield from _at_spaces(row, size)
        else:
            yield row


def _cells(line: str) -> str:
    return " | ".join(cell.strip() for cell in line.strip().strip("|").split("|"))


def _line_parts(lines: Sequence[str], size: int) -> Iterator[str]:
    short = (line[start : start + size] for line in lines for start in range(0, max(len(line), 1), size))
    for group in _groups(short, size):
        yield "\n".join(group)


def _groups(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    """Combine lines up to the size; an empty line counts as well, or there would be no end to them."""
    group: list[str] = []
    length = empty = 0
    for line in lines:
        if group and (length + len(line) > size or empty > size):
            yield group
            group, length, empty = [], 0, 0
        group.append(line)
        length += len(line)
        empty += not line
    if group:
        yield group
