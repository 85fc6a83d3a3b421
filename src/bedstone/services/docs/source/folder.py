"""Read a documents folder: list its files, and turn each into a document with chunks."""

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from bedstone.errors import InvalidInput
from bedstone.ingest.chunking.by_heading import Strategy, chunk_blocks
from bedstone.ingest.extraction import ExtractionError
from bedstone.ingest.markdown import Block, markdown_blocks
from bedstone.records import Chunk, Document
from bedstone.services.docs.source.front_matter import FrontMatter, split_front_matter
from bedstone.services.docs.source.manifest import NAME as MANIFEST
from bedstone.services.docs.source.manifest import InvalidManifest, Manifest, Manifests
from bedstone.services.docs.source.prompt_templates import TEMPLATE_SUFFIXES

HTML_SUFFIXES = (".html", ".htm")
SUFFIXES = (".md", ".mdx", ".rst", ".txt", *HTML_SUFFIXES)
FORMAT = "4"  # version of chunking; a new one re-chunks every file
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
MAX_DEPTH = 100  # of nested folders
MAX_VISITS = 8  # of one folder through symbolic links
SETTLED_SECONDS = 2  # a younger file may change again without a new time stamp


class UnreadableFile(InvalidInput):
    """A file is not text, or no longer exists."""

    code = "unreadable_file"


@dataclass(frozen=True)
class SourceFile:
    """The content of a file, and the digest of everything its chunks depend on."""

    path: str
    text: str
    strategy: Strategy
    facets: dict[str, str]
    title: str
    digest: str
    signature: str
    blocks: Callable[[str], list[Block]]
    front: FrontMatter

    def document(self) -> tuple[Document, list[Chunk]]:
        """Chunk the file."""
        title, chunks = chunk_blocks(
            self.path, self.text, self.blocks(self.text), self.strategy, title=self.title, facets=self.facets
        )
        labels = {f"facet:{key}": value for key, value in self.facets.items()}
        return Document(self.path, title, self.digest, {"signature": self.signature, **labels}), chunks


class DocumentsFolder:
    """Reads the documents below a folder."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InvalidInput(f"Folder not found: {root}")
        self.root = root
        self.manifests = Manifests(root)
        self._manifest_folders: list[str] = []
        self._visits: Counter[str] = Counter()

    def paths(self) -> list[str]:
        """List all documents in the order of their paths; follows links, but not loops."""
        return [path for path in self._files if path.endswith(SUFFIXES) and not _is_template(path)]

    def template_paths(self) -> list[str]:
        """List all prompt templates."""
        return [path for path in self._files if _is_template(path)]

    def all_manifests(self) -> tuple[list[Manifest], list[str]]:
        """Return all valid manifests, even those that govern no file, and the errors of the others."""
        self._files  # noqa: B018 - walks the folder
        return self.manifests.read_all(self._manifest_folders)

    def signature(self, path: str) -> str:
        """Return a hash of what the chunks depend on, without reading the file; empty if that is unknown."""
        try:
            status = os.stat(f"{self.root}/{path}")  # noqa: PTH116 - called for thousands of files
            strategy, facets = self._plan(path)
        except (OSError, InvalidManifest):
            return ""
        if time.time() - status.st_mtime < SETTLED_SECONDS:
            return ""
        parts = (repr(FORMAT), strategy_key(strategy), sorted(facets.items()), status.st_size, status.st_mtime_ns)
        return blake2b(f"({', '.join(map(str, parts))})".encode(), digest_size=16).hexdigest()

    def read(self, path: str) -> SourceFile:
        """Read one file, and determine how to chunk it."""
        signature = self.signature(path)
        try:
            data = (self.root / path).read_bytes()
        except OSError as error:
            raise UnreadableFile(f"{path}: {error.strerror}") from None
        front, blocks = _parse(path, data)
        strategy, facets = self._plan(path)
        try:
            strategy, facets = front.apply(strategy, facets)
        except InvalidManifest as error:
            raise InvalidManifest(f"{path}: {error.message}") from None
        depends_on = f"{FORMAT}\n{strategy_key(strategy)}\n{sorted(facets.items())}\n".encode() + data
        digest = blake2b(depends_on, digest_size=16).hexdigest()
        return SourceFile(path, front.body, strategy, facets, front.title, digest, signature, blocks, front)

    def _plan(self, path: str) -> tuple[Strategy, dict[str, str]]:
        manifest = self.manifests.nearest(path)
        return manifest.plan(path) if manifest else (Strategy(), {})

    @cached_property
    def _files(self) -> list[str]:
        """Return the files as of the first use."""
        return sorted(self._walk(str(self.root), "", frozenset()), key=lambda path: path.split("/"))

    def _walk(self, folder: str, inside: str, above: frozenset[str]) -> Iterator[str]:
        real = os.path.realpath(folder)
        self._visits[real] += 1
        if real in above or len(above) > MAX_DEPTH or self._visits[real] > MAX_VISITS:
            return
        try:
            entries = list(os.scandir(folder))
        except OSError:
            return
        for entry in entries:
            if entry.name == MANIFEST:
                self._manifest_folders.append(inside.removesuffix("/"))
            if entry.name.startswith("."):
                continue
            if _is_folder(entry):
                if UNPRINTABLE.search(entry.name):
                    continue
                yield from self._walk(entry.path, f"{inside}{entry.name}/", above | {real})
            elif entry.name.endswith((*SUFFIXES, *TEMPLATE_SUFFIXES)) and _is_readable(entry):
                yield inside + entry.name


def strategy_key(strategy: Strategy) -> str:
    """Return a strategy as part of a digest. Indexes on disk depend on the spelling: a change re-chunks every file."""
    sizes = f"max_chunk_size={strategy.max_chunk_size}, min_chunk_size={strategy.min_chunk_size}"
    return f"Strategy(chunk_by={strategy.chunk_by!r}, {sizes})"


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # the link points to itself
        return False


def _is_readable(entry: "os.DirEntry[str]") -> bool:
    """Exclude pipes, devices and unprintable names; a broken link is reported when it is read."""
    try:
        return (entry.is_symlink() or entry.is_file()) and not UNPRINTABLE.search(entry.name)
    except OSError:
        return False


def _is_template(path: str) -> bool:
    return path.endswith(TEMPLATE_SUFFIXES)


def _parse(path: str, data: bytes) -> tuple[FrontMatter, Callable[[str], list[Block]]]:
    """Return a file without its front matter, and the function that splits it into blocks."""
    if path.endswith(HTML_SUFFIXES):
        return _parse_html(path, data), markdown_blocks
    try:
        source = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path}: not valid UTF-8 (byte {error.start})") from None
    if "\0" in source:
        raise UnreadableFile(f"{path}: not a text file (contains NUL bytes)")
    if path.endswith(".txt"):
        from bedstone.ingest.formats.text import text_blocks  # noqa: PLC0415 - load a format only when it occurs

        return FrontMatter(source), text_blocks
    if path.endswith(".rst"):
        from bedstone.ingest.formats.rst import rst_to_markdown  # noqa: PLC0415

        return FrontMatter(rst_to_markdown(source)), markdown_blocks
    try:
        return split_front_matter(source), markdown_blocks
    except InvalidManifest as error:
        raise InvalidManifest(f"{path}: {error.message}") from None


def _parse_html(path: str, data: bytes) -> FrontMatter:
    from bedstone.ingest.formats.html import MAX_HTML_BYTES, html_to_markdown  # noqa: PLC0415

    if len(data) > MAX_HTML_BYTES:
        raise UnreadableFile(f"{path}: HTML exceeds the {MAX_HTML_BYTES // 1_000_000} MB limit")
    try:
        title, body = html_to_markdown(data, contents_only=True)
    except ExtractionError as error:
        raise UnreadableFile(f"{path}: {error.message}") from None
    return FrontMatter(body, title=title)
