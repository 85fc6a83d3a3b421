"""A documentation file as people read it: its passages as rich text, with links that lead to pages of this server."""

import posixpath
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from markupsafe import Markup

from bedstone.ingest.chunking.slugs import slug
from bedstone.services.docs.corpus import ChunkNotFound, DocsCorpus
from bedstone.services.docs.source.listing import MARKDOWN_SUFFIXES, has_suffix
from bedstone.web.docs.dialects import to_plain_markdown
from bedstone.web.frame import estimate_tokens

if TYPE_CHECKING:
    from bedstone.records import StoredChunk
    from bedstone.search.matching import Matcher
    from bedstone.services.docs.library import DocsLibrary

PASSAGES_PER_PAGE = 40
CHARACTERS_PER_PAGE = 30_000  # a page stays below 150 kB with its markup, and takes about 30 ms
# Nothing is matched twice, however long a line of spaces or letters is.
HEADING = re.compile(r"\s*+(?:#{1,6}[ \t]++([^\n]*+)(?:\n|$)|([^\n]++)\n(?:=++|-++)[ \t]*+(?:\n|$))")
ANY_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+([^\n]+)$", re.MULTILINE)
OWN_ANCHOR = re.compile(r"\{(?::|/\*)?[ \t]*+#?([\w:.-]++)[^{}\n]*+\}[ \t\r]*+$", re.MULTILINE)
OTHER_NAMES = ("", ".md", ".mdx", ".rst", ".txt", "/index.md", "/index.mdx", "/README.md", "/index.rst")
BUILT_SUFFIXES = (".html", ".htm")  # a link to what a site generator makes of a page


@dataclass(frozen=True)
class Passage:
    """A passage of a file: what agents name it by, what it costs them, and its text."""

    id: str
    number: int
    heading: str
    level: int
    tokens: int
    text: Markup


@dataclass(frozen=True)
class FileView:
    """The part of a file that a page shows; `chosen` is the passage that was asked for, if it is in the file."""

    title: str
    facets: Mapping[str, str]
    tokens: int
    total: int
    page: int
    pages: int
    passages: Sequence[Passage]
    chosen: Passage | None


class DocsFile:
    """One file of a corpus, read from its index."""

    def __init__(self, library: "DocsLibrary", corpus: str, path: str) -> None:
        self.path = path
        self._name = corpus
        self._library = library
        self._corpus: DocsCorpus = library.corpora[corpus]
        self.chunks = library.chunks_of(corpus, path)

    @cached_property
    def title(self) -> str:
        """The title of the file, or its name."""
        number = self._corpus.file_numbers.get(self.path)
        title = self._corpus.files[number].title if number is not None else ""
        return title or posixpath.basename(self.path)

    @cached_property
    def starts(self) -> Sequence[int]:
        """The number of the first passage of each page."""
        starts, size = [0], 0
        for number, chunk in enumerate(self.chunks):
            is_full = number - starts[-1] >= PASSAGES_PER_PAGE or size + len(chunk.text) > CHARACTERS_PER_PAGE
            if is_full and number > starts[-1]:
                starts.append(number)
                size = 0
            size += len(chunk.text)
        return starts

    def page_of(self, chunk: "StoredChunk") -> int:
        """Return the page, counted from 1, that shows a passage."""
        return sum(start <= chunk.head.position for start in self.starts)

    def find(self, chunk_id: str) -> "StoredChunk | None":
        """Return the passage with an id; None if it is not in this file."""
        try:
            found, target, _ = self._library.read(chunk_id)
        except ChunkNotFound:
            return None
        position = found[target].head.position
        is_here = position < len(self.chunks) and self.chunks[position].head.id == found[target].head.id
        return self.chunks[position] if is_here else None

    def find_anchor(self, anchor: str) -> "StoredChunk | None":
        """Return the passage with a heading that links call by this name."""
        return self._anchors.get(anchor) or self._anchors.get(slug(anchor))

    def view(self, page: int, chosen: "StoredChunk | None", marks: "Matcher | None") -> FileView:
        """Return a page of the file; the chosen passage decides which."""
        page = self.page_of(chosen) if chosen is not None else min(page, len(self.starts))
        ends = [*self.starts[1:], len(self.chunks)]
        levels = _levels(self.chunks, self.title)
        shown = [
            self._passage(chunk, levels[chunk.head.position], marks)
            for chunk in self.chunks[self.starts[page - 1] : ends[page - 1]]
        ]
        return FileView(
            title=self.title,
            facets=self.chunks[0].head.facets,
            tokens=sum(estimate_tokens(chunk.text) for chunk in self.chunks),
            total=len(self.chunks),
            page=page,
            pages=len(self.starts),
            passages=shown,
            chosen=next((item for item in shown if chosen is not None and item.id == chosen.head.id), None),
        )

    def neighbours(self) -> "tuple[tuple[str, str] | None, tuple[str, str] | None]":
        """Return path and title of the files before and after this one."""
        files, number = self._corpus.files, self._corpus.file_numbers.get(self.path, 0)
        before, after = files[max(0, number - 1) : number], files[number + 1 : number + 2]
        named = [
            (item[0].path, item[0].title or posixpath.basename(item[0].path)) if item else None
            for item in (before, after)
        ]
        return named[0], named[1]

    def _passage(self, chunk: "StoredChunk", level: int, marks: "Matcher | None") -> Passage:
        from bedstone.web.rich_text.rendering import render_markdown  # noqa: PLC0415 - with the engine

        head = chunk.head
        text = self._source(chunk)
        anchor = head.id.partition("#")[2] or head.id
        markup = render_markdown(
            text, marks=marks, link=self._resolve, min_level=level, prefix=f"{anchor}/", anchor=head.id
        )
        heading = head.heading or self.title
        return Passage(head.id, head.position + 1, heading, head.level, estimate_tokens(chunk.text), markup)

    def _source(self, chunk: "StoredChunk") -> str:
        """Return the Markdown of a passage without the title, which stands above the page."""
        from bedstone.ingest.page_markup import readable_source  # noqa: PLC0415

        text = chunk.text
        if chunk.head.position == 0 and (found := HEADING.match(text)) and _is_title(found, self.title):
            text = text[found.end() :]
        if not has_suffix(self.path, MARKDOWN_SUFFIXES):
            return text
        return readable_source(to_plain_markdown(text), is_mdx=has_suffix(self.path, (".mdx",)))

    def _resolve(self, address: str) -> str | None:
        """Return the page for a link of this file: a passage of it, another file, or a folder."""
        target, _, anchor = address.partition("#")
        target = unquote(target.partition("?")[0])
        if not target:
            chunk = self.find_anchor(unquote(anchor))
            return self._address_of(chunk) if chunk is not None else None
        base = "" if target.startswith("/") else posixpath.dirname(self.path)
        path = posixpath.normpath(posixpath.join(base, target.lstrip("/")))
        found = self._find_file(path)
        if found is not None:
            return (
                f"/docs/corpora/{quote(self._name)}/{quote(found)}{f'?at={quote(unquote(anchor))}' if anchor else ''}"
            )
        return f"/docs/corpora/{quote(self._name)}?in={quote(path)}" if self._is_folder(path) else None

    def _address_of(self, chunk: "StoredChunk") -> str:
        page = self.page_of(chunk)
        return f"{f'?page={page}' if page > 1 else ''}#{quote(chunk.head.id)}"

    def _find_file(self, path: str) -> str | None:
        stem = path
        for suffix in BUILT_SUFFIXES:
            stem = stem.removesuffix(suffix)
        names = [path, *(f"{stem}{ending}" for ending in OTHER_NAMES)]
        return next((name for name in names if name in self._corpus.file_numbers), None)

    def _is_folder(self, path: str) -> bool:
        files = self._corpus.files
        place = bisect_left(files, f"{path}/", key=lambda item: item.path)
        return place < len(files) and files[place].path.startswith(f"{path}/")

    @cached_property
    def _anchors(self) -> "dict[str, StoredChunk]":
        """The passages by the names that links may use; headings of passages come before those inside of them."""
        own = {chunk.head.id.rpartition("#")[2].rpartition("/")[2]: chunk for chunk in reversed(self.chunks)}
        inside: dict[str, StoredChunk] = {}
        for chunk in self.chunks:
            for name in [*OWN_ANCHOR.findall(chunk.text), *map(slug, ANY_HEADING.findall(chunk.text))]:
                inside.setdefault(name, chunk)
        return inside | own


def _is_title(found: re.Match[str], title: str) -> bool:
    return slug(found[1] or found[2] or "") == slug(title)


def _levels(chunks: "Sequence[StoredChunk]", title: str) -> list[int]:
    """Return the level of the first heading of each passage below the title of the page, without gaps."""
    levels: list[int] = []
    above: list[int] = []
    for chunk in chunks:
        level = chunk.head.level
        is_title = level == 1 and chunk.head.position == 0 and slug(chunk.head.heading) == slug(title)
        if level and not is_title:
            above = [*(item for item in above if item < level), level]
        levels.append(1 + max(1, len(above)))
    return levels
