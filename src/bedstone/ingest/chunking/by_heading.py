"""Split a document into chunks at its headings; ids stay the same as long as the headings do."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from bedstone.ingest.chunking.headings import MAX_HEADING_CHARS, short_heading
from bedstone.ingest.chunking.slugs import slug
from bedstone.ingest.markdown import Block
from bedstone.records import CHUNK_SEPARATOR, Chunk

ChunkBy = Literal["h1", "h2", "h3", "file"]
LEVELS: dict[str, int] = {"file": 0, "h1": 1, "h2": 2, "h3": 3}
MAX_LEVEL = 6
MAX_BREADCRUMB_CHARS = 1_000  # headings below that get what is left, but not less than the minimum
MIN_HEADING_CHARS = 40
LINE = re.compile(r"[^\n]*\n|[^\n]+")
SITE_NAME = re.compile(r"\s+[|\u2013\u2014\u00b7-]\s.*$")  # behind the title of an HTML page
FENCE = re.compile(r"^\s*(`{3,}|~{3,}).*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Strategy:
    """How to split a file; sizes are characters of its source."""

    chunk_by: ChunkBy = "h2"
    max_chunk_size: int = 20_000
    min_chunk_size: int = 0


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading with those above it: slugs for the id, texts for the breadcrumb."""

    level: int = 0
    slugs: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """Consecutive blocks under one id."""

    id: str
    heading: Heading
    blocks: Sequence[Block]


class HeadingChunker:
    """Splits one document."""

    def __init__(self, path: str, source: str, blocks: Sequence[Block], strategy: Strategy) -> None:
        self._path = path
        self._source = source
        self._strategy = strategy
        self._blocks = blocks if source.isascii() else _by_characters(blocks, source)
        self._headings = _headings(self._blocks)

    @property
    def first_heading(self) -> str:
        """Return the text of the first heading of level 1."""
        return next((block.plain for block in self._blocks if block.level == 1), "")

    def sections(self) -> Iterator[Section]:
        """Yield every section in order, without empty ones."""
        level = LEVELS[self._strategy.chunk_by]
        first = self._path if level == 0 else f"{self._path}#_preamble"
        for section in self._at_level(Section(first, Heading(), self._blocks), level):
            yield from self._fit(section, level)

    def text(self, section: Section) -> str:
        """Return the source of a section."""
        return self._source[section.blocks[0].start : section.blocks[-1].end].rstrip()

    def _at_level(self, section: Section, level: int) -> Iterator[Section]:
        """Split at headings of exactly this level and at entries; what precedes the first keeps the id."""
        starts = dict.fromkeys(  # ordered, with fast lookup
            index
            for index in _starts(section.blocks, level)
            if not (index == 0 and section.heading.level == section.blocks[0].level)
        )
        edges = [0, *starts, len(section.blocks)]
        for begin, end in pairwise(edges):
            inside = section.blocks[begin:end]
            if not inside:
                continue
            if begin in starts:
                heading = self._headings[inside[0].start]
                yield Section(f"{self._path}#{'/'.join(heading.slugs)}", heading, inside)
            else:
                yield Section(section.id, section.heading, inside)

    def _fit(self, section: Section, level: int) -> Iterator[Section]:
        """Yield a section unchanged if it fits, else split it at deeper headings, else between its blocks."""
        if len(self.text(section)) <= self._strategy.max_chunk_size:
            yield section
            return
        for deeper in range(level + 1, MAX_LEVEL + 1):
            smaller = list(self._at_level(section, deeper))
            if len(smaller) > 1:
                for piece in smaller:
                    yield from self._fit(piece, deeper)
                return
        yield from self._between_blocks(section)

    def _between_blocks(self, section: Section) -> Iterator[Section]:
        """Group blocks up to the limit, and split oversized blocks.

        The pieces of an oversized block have numbers of their own, so that the ids of other sections do not change.
        """
        limit = self._strategy.max_chunk_size
        groups: list[list[Block]] = []
        for block in section.blocks:
            if groups and block.end - groups[-1][0].start <= limit:
                groups[-1].append(block)
            else:
                groups.append([block])
        for number, group in enumerate(self._join_small(groups), start=1):
            for piece, inside in enumerate(self._split_oversized(group, limit), start=1):
                yield Section(_piece_id(self._path, section.id, number, piece), section.heading, inside)

    def _split_oversized(self, group: list[Block], limit: int) -> Iterator[list[Block]]:
        if all(block.end - block.start <= limit for block in group):
            yield group
            return
        pieces: list[list[Block]] = []
        for block in self._small_blocks(group, limit):
            if pieces and block.end - pieces[-1][0].start <= limit:
                pieces[-1].append(block)
            else:
                pieces.append([block])
        yield from pieces

    def _join_small(self, groups: list[list[Block]]) -> Iterator[list[Block]]:
        joined: list[list[Block]] = []
        for group in groups:
            if joined and group[-1].end - group[0].start < self._strategy.min_chunk_size:
                joined[-1].extend(group)
            else:
                joined.append(group)
        return iter(joined)

    def _small_blocks(self, found: Sequence[Block], limit: int) -> Iterator[Block]:
        """Split oversized blocks, such as tables and code, at their lines, and oversized lines at spaces."""
        for block in found:
            if block.end - block.start <= limit:
                yield block
                continue
            start = block.start
            for line in LINE.findall(self._source[block.start : block.end]):
                for piece in _pieces(line, limit):
                    plain = FENCE.sub("", piece).replace("|", " | ").strip(" \n|")
                    yield Block(start, start + len(piece), plain)
                    start += len(piece)


def _by_characters(blocks: Sequence[Block], source: str) -> list[Block]:
    """Return blocks whose positions count characters, as sizes do, instead of bytes of UTF-8."""
    data = source.encode()
    places: dict[int, int] = {}
    byte = character = 0
    for place in sorted({place for block in blocks for place in (block.start, block.end)}):
        character += len(data[byte:place].decode())
        byte = place
        places[place] = character
    return [replace(block, start=places[block.start], end=places[block.end]) for block in blocks]


def _pieces(line: str, limit: int) -> Iterator[str]:
    """Split a line into pieces of at most `limit` characters, after a space if possible."""
    start = 0
    while len(line) - start > limit:
        cut = line.rfind(" ", start + 1, start + limit) + 1 or start + limit
        yield line[start:cut]
        start = cut
    yield line[start:]


def chunk_blocks(
    path: str, source: str, blocks: Sequence[Block], strategy: Strategy, *, title: str, facets: dict[str, str]
) -> tuple[str, list[Chunk]]:
    """Return the title and the chunks of a document without front matter.

    Without a title the first heading of level 1 is the title; a section without headings takes it as its heading.
    """
    chunker = HeadingChunker(path, source, blocks, strategy)
    given_title = short_heading(title)
    title = given_title or short_heading(chunker.first_heading)
    chunks: list[Chunk] = []
    ids: dict[str, int] = {}
    start = 0  # in the text of the file as agents read it: its chunks with a blank line between them
    for section in chunker.sections():
        identity = section.id
        while identity in ids:  # a heading may have the name of a piece of another section
            ids[section.id] += 1
            identity = f"{section.id}-{ids[section.id]}"
        ids[identity] = 1
        plain = "\n".join(block.plain for block in section.blocks if block.plain)
        breadcrumb = _breadcrumb(given_title, section.heading.texts) or ((title,) if title else ())
        text = chunker.text(section)
        chunk = Chunk(
            id=identity,
            text=text,
            plain=plain if plain.isascii() else unicodedata.normalize("NFC", plain),
            heading=breadcrumb[-1] if breadcrumb else "",
            level=section.heading.level,
            breadcrumb=breadcrumb,
            facets=facets,
            span=(start, start + len(text)),
        )
        chunks.append(chunk)
        start += len(text) + len(CHUNK_SEPARATOR)
    return title, chunks


def _starts(blocks: Sequence[Block], level: int) -> Iterator[int]:
    """Yield where chunks start: at headings of a level, at entries, and at sections that follow an entry."""
    entry_level = 0
    for index, block in enumerate(blocks):
        if not level or not block.level:
            continue
        if block.level <= level:
            entry_level = 0
        if block.level == level or block.is_entry or block.level <= entry_level:
            yield index
        if block.is_entry:
            entry_level = max(entry_level, block.level)


def _breadcrumb(title: str, headings: tuple[str, ...]) -> tuple[str, ...]:
    """Return the headings below the title of the document, unless they begin with it."""
    if not title or not headings:
        return headings
    names = {title.casefold(), SITE_NAME.sub("", title).casefold()}
    return headings if headings[0].casefold() in names else (title, *headings)


def _headings(found: Sequence[Block]) -> dict[int, Heading]:
    """Return the headings by position, with slugs that are unique below their parent."""
    headings: dict[int, Heading] = {}
    open_headings: list[Heading] = []
    seen: Counter[tuple[str, ...]] = Counter()
    for block in found:
        if not block.level:
            continue
        open_headings = [heading for heading in open_headings if heading.level < block.level]
        parent = open_headings[-1] if open_headings else Heading()
        text = _short_text(block.plain, parent)
        slugs = (*parent.slugs, slug(_short_text(block.slug_text, parent) if block.slug_text else text))
        seen[slugs] += 1
        base, count, name = slugs, seen[slugs], slugs[-1]
        while count > 1 and (slugs := (*parent.slugs, f"{name}-{count}")) in seen:  # another heading has this name
            count += 1
        seen[base] = count  # the next duplicate continues from here
        seen[slugs] += count > 1
        heading = Heading(block.level, slugs, (*parent.texts, text))
        open_headings.append(heading)
        headings[block.start] = heading
    return headings


def _short_text(text: str, parent: Heading) -> str:
    """Return a heading, or its beginning: every chunk below it has its text and its slug."""
    above = sum(map(len, parent.texts))
    return short_heading(text, min(MAX_HEADING_CHARS, max(MIN_HEADING_CHARS, MAX_BREADCRUMB_CHARS - above)))


def _piece_id(path: str, section_id: str, number: int, piece: int) -> str:
    if (number, piece) == (1, 1):
        return section_id
    suffix = f"part-{number}" if piece == 1 else f"part-{number}-{piece}"
    return f"{path}#_{suffix}" if section_id == path else f"{section_id}-{suffix}"
