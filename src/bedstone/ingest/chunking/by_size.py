"""Split pages of Markdown into chunks of about one size: by structure first, by size second."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal
from uuid import UUID

from bedstone.ingest.extraction import Page
from bedstone.ingest.markdown import Block, markdown_blocks
from bedstone.records import Chunk

Splitting = Literal["sentence", "paragraph", "fixed"]
# A sentence ends with punctuation and a space, in any script; full-width punctuation needs no space.
SENTENCE = re.compile(
    r"[^.!?\u3002\uff01\uff1f\u0964\u061f\n]*(?:[.!?]+[\"')\]\u201d\u2019]*(?=\s|$)|[\u3002\uff01\uff1f\u0964\u061f]+|\n|$|.)\s*"
)
TABLE_RULE = re.compile(r"^\|?[\s:|-]+\|?$")
MIN_FRACTION = 4  # a heading starts a chunk if the one before has a quarter of the size


@dataclass(frozen=True)
class SplitOptions:
    """How to split pages; sizes are characters."""

    size: int = 500
    overlap: int = 50
    by: Splitting = "sentence"


@dataclass
class _Piece:
    """Text that belongs in one chunk, with its page and headings."""

    text: str
    plain: str
    page: int | None
    trail: tuple[str, ...]


@dataclass
class _OpenChunk:
    """A chunk that pieces are added to."""

    pieces: list[_Piece] = field(default_factory=list)
    length: int = 0

    def add(self, piece: _Piece) -> None:
        self.pieces.append(piece)
        self.length += len(piece.text) + 2


def chunk_pages(
    document_id: str,
    pages: Sequence[Page],
    options: SplitOptions,
    facets: dict[str, str],
    check: Callable[[], object] = lambda: None,
) -> list[Chunk]:
    """Return the chunks of a document; their ids stay the same as long as the text does.

    `check` is called for each chunk, and may raise to end the work.
    """
    chunks = []
    for number, group in enumerate(_pack(_pieces(pages, options), options)):
        check()
        first = group.pieces[0]
        text = "\n\n".join(piece.text for piece in group.pieces)
        chunks.append(
            Chunk(
                id=stable_uuid(f"{document_id}\n{number}\n{text}"),
                text=text,
                plain="\n".join(piece.plain for piece in group.pieces),
                heading=first.trail[-1] if first.trail else "",
                breadcrumb=first.trail,
                facets=facets,
                page=first.page,
            )
        )
    return chunks


def stable_uuid(text: str) -> str:
    """Return an id in the form of a random UUID that depends on the text only."""
    return str(UUID(bytes=sha256(text.encode(errors="replace")).digest()[:16], version=4))


def _pieces(pages: Sequence[Page], options: SplitOptions) -> Iterator[_Piece]:
    trail: dict[int, str] = {}
    for page in pages:
        data = page.markdown.encode(errors="replace")
        for block in markdown_blocks(page.markdown):
            text = data[block.start : block.end].decode(errors="replace").strip()
            if block.level:
                trail = {level: title for level, title in trail.items() if level < block.level}
                trail[block.level] = block.plain
            headings = tuple(trail[level] for level in sorted(trail))
            for part, plain in _parts(block, text, options):
                if plain.strip():
                    yield _Piece(part, plain, page.number, headings)


def _parts(block: Block, text: str, options: SplitOptions) -> Iterator[tuple[str, str]]:
    """Yield a block unchanged if it fits, else split it between rows, lines or sentences."""
    if len(text) <= options.size and options.by != "fixed":
        yield text, block.plain
    elif _is_table(text):
        for part in _table_parts(text, options.size):
            yield part, "\n".join(_cells(line) for line in part.splitlines() if not TABLE_RULE.match(line))
    elif text.startswith(("```", "~~~")):
        for part in _line_parts(block.plain.splitlines(), options.size):
            yield f"```\n{part}\n```", part
    elif options.by == "fixed":
        for start in range(0, len(block.plain), _step(options)):
            part = block.plain[start : start + options.size]
            yield part, part
    else:
        for part in _sentence_parts(block.plain, options):
            yield part, part


def _pack(pieces: Iterator[_Piece], options: SplitOptions) -> Iterator[_OpenChunk]:
    """Combine pieces up to the size; a heading starts a chunk unless the one before is tiny."""
    chunk = _OpenChunk()
    for piece in pieces:
        is_full = chunk.length + len(piece.text) > options.size
        is_heading = piece.text.startswith("#") and bool(piece.trail)
        is_other_section = bool(chunk.pieces) and chunk.pieces[-1].trail[:2] != piece.trail[:2]
        starts_section = (is_heading or is_other_section) and chunk.length >= options.size // MIN_FRACTION
        if not _only_headings(chunk) and (is_full or starts_section):
            yield chunk
            chunk = _OpenChunk()
        chunk.add(piece)
    if chunk.pieces:
        yield chunk


def _only_headings(chunk: _OpenChunk) -> bool:
    return all(piece.text.startswith("#") for piece in chunk.pieces)


def _sentence_parts(text: str, options: SplitOptions) -> Iterator[str]:
    """Combine sentences up to the size; each part repeats the last short sentences of the one before."""
    sentences: list[str] = []
    length = 0
    for sentence in _sentences(text, options.size):
        if sentences and length + len(sentence) > options.size:
            yield "".join(sentences).strip()
            sentences = _tail(sentences, options.overlap)
            length = sum(map(len, sentences))
        sentences.append(sentence)
        length += len(sentence)
    if "".join(sentences).strip():
        yield "".join(sentences).strip()


def _sentences(text: str, limit: int) -> Iterator[str]:
    for found in SENTENCE.findall(text):
        start = 0
        while len(found) - start > limit:
            cut = found.rfind(" ", start + 1, start + limit) + 1 or start + limit
            yield found[start:cut]
            start = cut
        if start < len(found):
            yield found[start:]


def _tail(sentences: list[str], overlap: int) -> list[str]:
    tail: list[str] = []
    for sentence in reversed(sentences):
        if sum(map(len, tail)) + len(sentence) > overlap:
            break
        tail.insert(0, sentence)
    return tail if len(tail) < len(sentences) else []


def _is_table(text: str) -> bool:
    lines = text.splitlines()
    return len(lines) > 1 and "|" in lines[0] and bool(TABLE_RULE.match(lines[1]))


def _table_parts(text: str, size: int) -> Iterator[str]:
    """Combine rows up to the size, and repeat the head of the table in each part."""
    head, rule, *rows = text.splitlines()
    group: list[str] = []
    for row in rows or [""]:
        if group and len(head) + len(rule) + sum(map(len, group)) + len(row) > size:
            yield "\n".join([head, rule, *group])
            group = []
        group.append(row)
    yield "\n".join([head, rule, *group])


def _cells(line: str) -> str:
    return " | ".join(cell.strip() for cell in line.strip().strip("|").split("|"))


def _line_parts(lines: Sequence[str], size: int) -> Iterator[str]:
    group: list[str] = []
    for line in lines:
        for start in range(0, max(len(line), 1), size):
            part = line[start : start + size]
            if group and sum(map(len, group)) + len(part) > size:
                yield "\n".join(group)
                group = []
            group.append(part)
    if group:
        yield "\n".join(group)


def _step(options: SplitOptions) -> int:
    """Return how far a fixed window moves: at least one character."""
    return max(1, options.size - min(options.overlap, options.size // 2))
