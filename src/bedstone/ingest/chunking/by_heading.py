"""Blocks to chunks by heading, with ids that stay the same as long as the headings do."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from bedstone.ingest.chunking.slugs import slug
from bedstone.ingest.markdown import Block
from bedstone.records import Chunk

ChunkBy = Literal["h1", "h2", "h3", "file"]
LEVELS: dict[str, int] = {"file": 0, "h1": 1, "h2": 2, "h3": 3}
DEEPEST = 6
LINE = re.compile(r"[^\n]*\n|[^\n]+")
FENCE = re.compile(r"^\s*(`{3,}|~{3,}).*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a file is cut; sizes are characters of source."""

    chunk_by: ChunkBy = "h2"
    max_chunk_size: int = 20_000
    min_chunk_size: int = 0


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading and those above it: slugs for the id, texts for the breadcrumb."""

    level: int = 0
    slugs: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive blocks under one id."""

    id: str
    heading: Heading
    blocks: Sequence[Block]


class Cutter:
    """Cuts one document."""

    def __init__(self, path: str, source: str, blocks: Sequence[Block], strategy: Strategy) -> None:
        self._path = path
        self._source = source
        self._strategy = strategy
        self._blocks = blocks if source.isascii() else _by_characters(blocks, source)
        self._headings = _headings(self._blocks)

    @property
    def first_heading(self) -> str:
        """The text of the first top heading."""
        return next((block.plain for block in self._blocks if block.level == 1), "")

    def parts(self) -> Iterator[Part]:
        """Every part in order; empty ones are left out."""
        level = LEVELS[self._strategy.chunk_by]
        first = self._path if level == 0 else f"{self._path}#_preamble"
        for part in self._at_level(Part(first, Heading(), self._blocks), level):
            yield from self._fit(part, level)

    def text(self, part: Part) -> str:
        """A part's source."""
        return self._source[part.blocks[0].start : part.blocks[-1].end].rstrip()

    def _at_level(self, part: Part, level: int) -> Iterator[Part]:
        """Cut at headings of exactly this level; what stands before the first keeps the part's id."""
        starts = {  # in order, and looked up for each
            index: None
            for index, block in enumerate(part.blocks)
            if block.level == level and level and not (index == 0 and part.heading.level == level)
        }
        edges = [0, *starts, len(part.blocks)]
        for begin, end in pairwise(edges):
            inside = part.blocks[begin:end]
            if not inside:
                continue
            if begin in starts:
                heading = self._headings[inside[0].start]
                yield Part(f"{self._path}#{'/'.join(heading.slugs)}", heading, inside)
            else:
                yield Part(part.id, part.heading, inside)

    def _fit(self, part: Part, level: int) -> Iterator[Part]:
        """A part as it is if it fits, else cut at deeper headings, else between its blocks."""
        if len(self.text(part)) <= self._strategy.max_chunk_size:
            yield part
            return
        for deeper in range(level + 1, DEEPEST + 1):
            smaller = list(self._at_level(part, deeper))
            if len(smaller) > 1:
                for piece in smaller:
                    yield from self._fit(piece, deeper)
                return
        yield from self._between_blocks(part)

    def _between_blocks(self, part: Part) -> Iterator[Part]:
        """Whole blocks as long as they fit; a huge one is a part of its own, which is then cut inside.

        Its further pieces have numbers of their own, so that they change nobody else's id.
        """
        limit = self._strategy.max_chunk_size
        groups: list[list[Block]] = []
        for block in part.blocks:
            if groups and block.end - groups[-1][0].start <= limit:
                groups[-1].append(block)
            else:
                groups.append([block])
        for number, group in enumerate(self._join_small(groups), start=1):
            for piece, inside in enumerate(self._cut_huge(group, limit), start=1):
                yield Part(_part_id(self._path, part.id, number, piece), part.heading, inside)

    def _cut_huge(self, group: list[Block], limit: int) -> Iterator[list[Block]]:
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
        """One huge block, a table or a listing, is cut at its lines; a huge line wherever it must be."""
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
    """Blocks whose places count characters, as sizes do, and not bytes of UTF-8."""
    data = source.encode()
    places: dict[int, int] = {}
    byte = character = 0
    for place in sorted({place for block in blocks for place in (block.start, block.end)}):
        character += len(data[byte:place].decode())
        byte = place
        places[place] = character
    return [replace(block, start=places[block.start], end=places[block.end]) for block in blocks]


def _pieces(line: str, limit: int) -> Iterator[str]:
    """A line in pieces of at most so many characters, cut after a space if there is one."""
    start = 0
    while len(line) - start > limit:
        cut = line.rfind(" ", start + 1, start + limit) + 1 or start + limit
        yield line[start:cut]
        start = cut
    yield line[start:]


def chunk_blocks(
    path: str, source: str, blocks: Sequence[Block], strategy: Strategy, *, title: str, facets: dict[str, str]
) -> tuple[str, list[Chunk]]:
    """The title and the chunks of a document whose front matter is gone.

    Without a title the first top heading is one; a part without headings goes by it.
    """
    cutter = Cutter(path, source, blocks, strategy)
    title = title or cutter.first_heading
    chunks = []
    ids: set[str] = set()
    for part in cutter.parts():
        identity, count = part.id, 1
        while identity in ids:  # a heading may be called like a part of another
            count += 1
            identity = f"{part.id}-{count}"
        ids.add(identity)
        plain = "\n".join(block.plain for block in part.blocks if block.plain)
        breadcrumb = part.heading.texts or ((title,) if title else ())
        chunk = Chunk(
            id=identity,
            text=cutter.text(part),
            plain=plain if plain.isascii() else unicodedata.normalize("NFC", plain),
            heading=breadcrumb[-1] if breadcrumb else "",
            level=part.heading.level,
            breadcrumb=breadcrumb,
            facets=facets,
        )
        chunks.append(chunk)
    return title, chunks


def _headings(found: Sequence[Block]) -> dict[int, Heading]:
    """Each heading by its position, with slugs made unique below their parent."""
    headings: dict[int, Heading] = {}
    open_headings: list[Heading] = []
    seen: Counter[tuple[str, ...]] = Counter()
    for block in found:
        if not block.level:
            continue
        open_headings = [heading for heading in open_headings if heading.level < block.level]
        parent = open_headings[-1] if open_headings else Heading()
        slugs = (*parent.slugs, slug(block.plain))
        seen[slugs] += 1
        base, count, name = slugs, seen[slugs], slugs[-1]
        while count > 1 and (slugs := (*parent.slugs, f"{name}-{count}")) in seen:  # another heading is called so
            count += 1
        seen[base] = count  # the next one need not try those again
        seen[slugs] += count > 1
        heading = Heading(block.level, slugs, (*parent.texts, block.plain))
        open_headings.append(heading)
        headings[block.start] = heading
    return headings


def _part_id(path: str, section_id: str, number: int, piece: int) -> str:
    if (number, piece) == (1, 1):
        return section_id
    suffix = f"part-{number}" if piece == 1 else f"part-{number}-{piece}"
    return f"{path}#_{suffix}" if section_id == path else f"{section_id}-{suffix}"
