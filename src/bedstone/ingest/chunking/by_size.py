"""Pages of Markdown to chunks of about one size: by structure first, by size second."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal
from uuid import UUID

from bedstone.ingest.extraction import Page
from bedstone.ingest.markdown import Block, markdown_blocks
from bedstone.records import Chunk

Splitting = Literal["sentence", "paragraph", "fixed"]
# A sentence ends with its mark and a space, in any script; full-width marks need none.
SENTENCE = re.compile(
    r"[^.!?\u3002\uff01\uff1f\u0964\u061f\n]*(?:[.!?]+[\"')\]\u201d\u2019]*(?=\s|$)|[\u3002\uff01\uff1f\u0964\u061f]+|\n|$|.)\s*"
)
TABLE_RULE = re.compile(r"^\|?[\s:|-]+\|?$")
LEAST_SHARE = 4  # of the size: a smaller chunk does not stand alone before a heading


@dataclass(frozen=True)
class SplitOptions:
    """Sizes in characters."""

    size: int = 500
    overlap: int = 50
    by: Splitting = "sentence"


@dataclass
class _Piece:
    """Text that goes into one chunk, and where it stands."""

    text: str
    plain: str
    page: int | None
    trail: tuple[str, ...]


@dataclass
class _Open:
    """A chunk that still takes pieces."""

    pieces: list[_Piece] = field(default_factory=list)
    length: int = 0

    def add(self, piece: _Piece) -> None:
        self.pieces.append(piece)
        self.length += len(piece.text) + 2


def split_pages(document_id: str, pages: Sequence[Page], options: SplitOptions, facets: dict[str, str]) -> list[Chunk]:
    """The chunks of a document; their ids stay the same as long as the text does."""
    chunks = []
    for number, opened in enumerate(_packed(_pieces(pages, options), options)):
        first = opened.pieces[0]
        text = "\n\n".join(piece.text for piece in opened.pieces)
        chunks.append(
            Chunk(
                id=stable_uuid(f"{document_id}\n{number}\n{text}"),
                text=text,
                plain="\n".join(piece.plain for piece in opened.pieces),
                heading=first.trail[-1] if first.trail else "",
                breadcrumb=first.trail,
                facets=facets,
                page=first.page,
            )
        )
    return chunks


def stable_uuid(text: str) -> str:
    """An id in the shape of a random UUID that is always the same for a text."""
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
    """A block as it is if it fits, else cut where it reads best."""
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


def _packed(pieces: Iterator[_Piece], options: SplitOptions) -> Iterator[_Open]:
    """Pieces together as long as they fit; a heading begins a chunk unless the one before is tiny."""
    opened = _Open()
    for piece in pieces:
        full = opened.length + len(piece.text) > options.size
        is_heading = piece.text.startswith("#") and bool(piece.trail)
        large_enough = opened.length >= options.size // LEAST_SHARE and not _only_headings(opened)
        other_part = bool(opened.pieces) and opened.pieces[-1].trail[:2] != piece.trail[:2]
        if opened.pieces and not _only_headings(opened) and (full or ((is_heading or other_part) and large_enough)):
            yield opened
            opened = _Open()
        opened.add(piece)
    if opened.pieces:
        yield opened


def _only_headings(opened: _Open) -> bool:
    return all(piece.text.startswith("#") for piece in opened.pieces)


def _sentence_parts(text: str, options: SplitOptions) -> Iterator[str]:
    """Whole sentences as long as they fit; the next part begins with the last of them again, if they are short."""
    held: list[str] = []
    length = 0
    for sentence in _sentences(text, options.size):
        if held and length + len(sentence) > options.size:
            yield "".join(held).strip()
            held = _tail(held, options.overlap)
            length = sum(map(len, held))
        held.append(sentence)
        length += len(sentence)
    if "".join(held).strip():
        yield "".join(held).strip()


def _sentences(text: str, most: int) -> Iterator[str]:
    for found in SENTENCE.findall(text):
        start = 0
        while len(found) - start > most:
            cut = found.rfind(" ", start + 1, start + most) + 1 or start + most
            yield found[start:cut]
            start = cut
        if start < len(found):
            yield found[start:]


def _tail(held: list[str], overlap: int) -> list[str]:
    tail: list[str] = []
    for sentence in reversed(held):
        if sum(map(len, tail)) + len(sentence) > overlap:
            break
        tail.insert(0, sentence)
    return tail if len(tail) < len(held) else []


def _is_table(text: str) -> bool:
    lines = text.splitlines()
    return len(lines) > 1 and "|" in lines[0] and bool(TABLE_RULE.match(lines[1]))


def _table_parts(text: str, size: int) -> Iterator[str]:
    """Rows as long as they fit, each time under the head of the table."""
    head, rule, *rows = text.splitlines()
    held: list[str] = []
    for row in rows or [""]:
        if held and len(head) + len(rule) + sum(map(len, held)) + len(row) > size:
            yield "\n".join([head, rule, *held])
            held = []
        held.append(row)
    yield "\n".join([head, rule, *held])


def _cells(line: str) -> str:
    return " | ".join(cell.strip() for cell in line.strip().strip("|").split("|"))


def _line_parts(lines: Sequence[str], size: int) -> Iterator[str]:
    held: list[str] = []
    for line in lines:
        for start in range(0, max(len(line), 1), size):
            part = line[start : start + size]
            if held and sum(map(len, held)) + len(part) > size:
                yield "\n".join(held)
                held = []
            held.append(part)
    if held:
        yield "\n".join(held)


def _step(options: SplitOptions) -> int:
    """How far a fixed window moves: never nothing, whatever the overlap."""
    return max(1, options.size - min(options.overlap, options.size // 2))
