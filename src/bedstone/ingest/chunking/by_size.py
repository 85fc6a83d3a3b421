"""Split pages of Markdown into chunks of about one size: by structure first, by size second."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from uuid import UUID

from bedstone.ingest.chunking.headings import short_heading, short_trail
from bedstone.ingest.chunking.pieces import SplitOptions, split_block
from bedstone.ingest.chunking.ranges import BlockRanges
from bedstone.ingest.extraction import Page
from bedstone.ingest.markdown import markdown_blocks
from bedstone.ingest.page_marks import text_starts
from bedstone.records import Chunk, Place

MAX_COPIES = 20  # of the same text in one document: a small file can unpack to a text that repeats a million times
MIN_FRACTION = 4  # a heading starts a chunk if the one before has a quarter of the size
SEPARATOR = "\n\n"
PLAIN_SEPARATOR = "\n"


@dataclass
class _Piece:
    """Text that belongs in one chunk, with its page, headings and range in the text of the document.

    A whole heading introduces what follows it.
    """

    text: str
    plain: str
    page: int | None
    trail: tuple[str, ...]
    span: tuple[int, int]
    is_heading: bool = False


@dataclass
class _OpenChunk:
    """A chunk that pieces are added to."""

    pieces: list[_Piece] = field(default_factory=list)
    length: int = 0
    body_end: int = 0  # behind the last piece that is not a heading

    def add(self, piece: _Piece) -> None:
        self.pieces.append(piece)
        self.length += len(piece.text) + len(SEPARATOR)
        if not piece.is_heading:
            self.body_end = len(self.pieces)

    def split_headings(self) -> "tuple[_OpenChunk, _OpenChunk]":
        """Return the chunk without the headings at its end, and a new one that begins with them."""
        whole, rest = _OpenChunk(), _OpenChunk()
        end = self.body_end or len(self.pieces)
        for number, piece in enumerate(self.pieces):
            (whole if number < end else rest).add(piece)
        return whole, rest

    def places(self) -> tuple[Place, ...]:
        """Return where pages and sections begin, unless all of the chunk is in one place."""
        found: list[Place] = []
        start = text_start = 0
        for piece in self.pieces:
            if not found or (found[-1].page, found[-1].breadcrumb) != (piece.page, piece.trail):
                found.append(Place(start, text_start, piece.page, piece.trail))
            start += len(piece.plain) + len(PLAIN_SEPARATOR)
            text_start += len(piece.text) + len(SEPARATOR)
        return tuple(found) if len(found) > 1 else ()


def chunk_pages(
    document_id: str,
    pages: Sequence[Page],
    options: SplitOptions,
    facets: dict[str, str],
    *,
    splits_pages: bool = False,
) -> list[Chunk]:
    """Return the chunks of a document; their ids stay the same as long as the text does.

    With `splits_pages` no chunk has text of two pages, and no heading holds beyond its page: slides, sheets.
    """
    chunks: list[Chunk] = []
    placed = list(zip(pages, text_starts(pages), strict=True))
    for group in [[pair] for pair in placed] if splits_pages else [placed]:
        for packed in _pack(_pieces(group, options), options):
            chunks.append(_to_chunk(packed, document_id, len(chunks), facets))
    return chunks


def _to_chunk(packed: _OpenChunk, document_id: str, number: int, facets: dict[str, str]) -> Chunk:
    first = packed.pieces[0]
    text = SEPARATOR.join(piece.text for piece in packed.pieces)
    return Chunk(
        id=stable_uuid(f"{document_id}\n{number}\n{text}"),
        text=text,
        plain=PLAIN_SEPARATOR.join(piece.plain for piece in packed.pieces),
        heading=first.trail[-1] if first.trail else "",
        breadcrumb=first.trail,
        facets=facets,
        page=first.page,
        places=packed.places(),
        span=(first.span[0], max(piece.span[1] for piece in packed.pieces)),
    )


def without_copies(chunks: Sequence[Chunk]) -> tuple[list[Chunk], int]:
    """Return chunks without those whose text many others had before, and how many were left out."""
    seen: Counter[str] = Counter()
    kept = []
    for chunk in chunks:
        seen[chunk.text] += 1
        if seen[chunk.text] <= MAX_COPIES:
            kept.append(chunk)
    return kept, len(chunks) - len(kept)


def stable_uuid(text: str) -> str:
    """Return an id in the form of a random UUID that depends on the text only."""
    return str(UUID(bytes=sha256(text.encode(errors="replace")).digest()[:16], version=4))


def _pieces(pages: Sequence[tuple[Page, int]], options: SplitOptions) -> Iterator[_Piece]:
    headings: dict[int, str] = {}
    trail: tuple[str, ...] = ()
    for page, page_start in pages:
        data = page.markdown.encode(errors="replace")
        byte, start = 0, page_start  # the same place, counted in bytes and in characters
        for block in markdown_blocks(page.markdown):
            start += len(data[byte : block.start].decode(errors="replace"))
            byte = block.start
            whole = data[block.start : block.end].decode(errors="replace")
            text = whole.strip()
            begin = start + len(whole) - len(whole.lstrip())
            if block.level:
                headings = {level: title for level, title in headings.items() if level < block.level}
                headings[block.level] = short_heading(block.plain)
                trail = short_trail([headings[level] for level in sorted(headings)])
            ranges = BlockRanges(text, block.plain)
            for part, plain in split_block(block, text, options):
                first, last = ranges.find(part)
                if plain.strip():
                    is_heading = bool(block.level) and plain == block.plain
                    yield _Piece(part, plain, page.number, trail, (begin + first, begin + last), is_heading)


def _pack(pieces: Iterator[_Piece], options: SplitOptions) -> Iterator[_OpenChunk]:
    """Combine pieces up to the size; a heading starts a chunk unless the one before is tiny.

    Headings stay with the text they introduce: with nothing else, a chunk ends only if more of them follow, or if the
    size is fixed.
    """
    chunk = _OpenChunk()
    for piece in pieces:
        is_full = chunk.length + len(piece.text) > options.size
        is_other_section = bool(chunk.pieces) and chunk.pieces[-1].trail[:2] != piece.trail[:2]
        starts_section = (piece.is_heading or is_other_section) and chunk.length >= options.size // MIN_FRACTION
        if chunk.body_end or options.by == "fixed":
            is_complete = bool(chunk.pieces) and (is_full or starts_section)
        else:
            is_complete = piece.is_heading and chunk.length > options.size
        if is_complete:
            whole, chunk = chunk.split_headings()
            yield whole
        chunk.add(piece)
    if chunk.pieces:
        yield chunk
