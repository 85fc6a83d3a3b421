"""A folder of documents: which files there are, and each as a document with its chunks."""

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

MARKDOWN, REST, TEXT, HTML = (".md", ".mdx"), (".rst",), (".txt",), (".html", ".htm")
SUFFIXES = (*MARKDOWN, *REST, *TEXT, *HTML)
FORMAT = "4"  # of chunking: another one means that every file is cut again
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
DEEPEST = 100  # folders in each other
MOST_VISITS = 8  # of one folder by links, which may multiply
SETTLED_SECONDS = 2  # a file younger than this may change again without a new time stamp


class UnreadableFile(InvalidInput):
    """A file is not text, or is gone."""

    code = "unreadable_file"


@dataclass(frozen=True)
class SourceFile:
    """A file that was read, and the digest of everything its chunks depend on."""

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
        """Cut it."""
        title, chunks = chunk_blocks(
            self.path, self.text, self.blocks(self.text), self.strategy, title=self.title, facets=self.facets
        )
        labels = {f"facet:{key}": value for key, value in self.facets.items()}
        return Document(self.path, title, self.digest, {"signature": self.signature, **labels}), chunks


class DocumentsFolder:
    """Reads the documents below a folder."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InvalidInput(f"There is no folder {root}")
        self.root = root
        self.manifests = Manifests(root)
        self._manifest_folders: list[str] = []
        self._visits: Counter[str] = Counter()

    def paths(self) -> list[str]:
        """Every document, in the order of their paths; links are followed, loops are not."""
        return [path for path in self._everything if path.endswith(SUFFIXES) and not _is_template(path)]

    def template_paths(self) -> list[str]:
        """Every prompt template."""
        return [path for path in self._everything if _is_template(path)]

    def every_manifest(self) -> tuple[list[Manifest], list[str]]:
        """All there are, also those that no file is nearest to, and what is wrong with the others."""
        self._everything  # noqa: B018 - finds them
        return self.manifests.united(self._manifest_folders)

    def signature(self, path: str) -> str:
        """What a file's chunks depend on, as far as one can tell without reading it; empty if one cannot."""
        try:
            status = os.stat(f"{self.root}/{path}")  # noqa: PTH116 - thousands of times
            strategy, facets = self._planned(path)
        except (OSError, InvalidManifest):
            return ""
        if time.time() - status.st_mtime < SETTLED_SECONDS:
            return ""
        facts = f"{sorted(facets.items())!r}, {status.st_size}, {status.st_mtime_ns}"
        parts = f"({FORMAT!r}, {_fingerprint(strategy)}, {facts})"
        return blake2b(parts.encode(), digest_size=16).hexdigest()

    def read(self, path: str) -> SourceFile:
        """Read one file and work out how it is to be cut."""
        signature = self.signature(path)
        try:
            data = (self.root / path).read_bytes()
        except OSError as error:
            raise UnreadableFile(f"{path}: {error.strerror}") from None
        front, blocks = _parsed(path, data)
        strategy, facets = self._planned(path)
        try:
            strategy, facets = front.apply(strategy, facets)
        except InvalidManifest as error:
            raise InvalidManifest(f"{path}: {error.message}") from None
        depends_on = f"{FORMAT}\n{_fingerprint(strategy)}\n{sorted(facets.items())}\n".encode() + data
        digest = blake2b(depends_on, digest_size=16).hexdigest()
        return SourceFile(path, front.body, strategy, facets, front.title, digest, signature, blocks, front)

    def _planned(self, path: str) -> tuple[Strategy, dict[str, str]]:
        manifest = self.manifests.nearest(path)
        return manifest.plan(path) if manifest else (Strategy(), {})

    @cached_property
    def _everything(self) -> list[str]:
        """What there was when somebody first asked."""
        return sorted(self._walk(str(self.root), "", frozenset()), key=lambda path: path.split("/"))

    def _walk(self, folder: str, inside: str, above: frozenset[str]) -> Iterator[str]:
        real = os.path.realpath(folder)
        self._visits[real] += 1
        if real in above or len(above) > DEEPEST or self._visits[real] > MOST_VISITS:
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
            elif entry.name.endswith((*SUFFIXES, *TEMPLATE_SUFFIXES)) and _may_be_read(entry):
                yield inside + entry.name


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _may_be_read(entry: "os.DirEntry[str]") -> bool:
    """Not a pipe or a device, which would never end, nor a name that is no text; a broken link is named later."""
    try:
        return (entry.is_symlink() or entry.is_file()) and not UNPRINTABLE.search(entry.name)
    except OSError:
        return False


def _is_template(path: str) -> bool:
    return path.endswith(TEMPLATE_SUFFIXES)


def _parsed(path: str, data: bytes) -> tuple[FrontMatter, Callable[[str], list[Block]]]:
    """A file without its front matter, and how its blocks are found."""
    if path.endswith(HTML):
        return _parsed_html(path, data), markdown_blocks
    try:
        source = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path}: not a text in UTF-8 (byte {error.start})") from None
    if "\0" in source:
        raise UnreadableFile(f"{path}: not a text, but binary data")
    if path.endswith(TEXT):
        from bedstone.ingest.formats.text import text_blocks  # noqa: PLC0415 - formats are loaded when they occur

        return FrontMatter(source), text_blocks
    if path.endswith(REST):
        from bedstone.ingest.formats.rst import rst_to_markdown  # noqa: PLC0415

        return FrontMatter(rst_to_markdown(source)), markdown_blocks
    try:
        return split_front_matter(source), markdown_blocks
    except InvalidManifest as error:
        raise InvalidManifest(f"{path}: {error.message}") from None


def _parsed_html(path: str, data: bytes) -> FrontMatter:
    from bedstone.ingest.formats.html import MAX_HTML_BYTES, html_to_markdown  # noqa: PLC0415

    if len(data) > MAX_HTML_BYTES:
        raise UnreadableFile(f"{path}: more than {MAX_HTML_BYTES // 1_000_000} MB of HTML")
    try:
        title, body = html_to_markdown(data, contents_only=True)
    except ExtractionError as error:
        raise UnreadableFile(f"{path}: {error.message}") from None
    return FrontMatter(body, title=title)


def _fingerprint(strategy: Strategy) -> str:
    """Return the text that digests depend on; with another spelling every corpus would be cut and embedded again."""
    sizes = f"max_chunk_size={strategy.max_chunk_size}, min_chunk_size={strategy.min_chunk_size}"
    return f"Strategy(chunk_by={strategy.chunk_by!r}, {sizes})"
