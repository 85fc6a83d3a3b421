"""Read a documents folder: list its files, and turn each into a document with chunks."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from bedstone.errors import InvalidInput
from bedstone.ingest.chunking.by_heading import Strategy, chunk_blocks
from bedstone.ingest.markdown import Block
from bedstone.records import ABOUT, Chunk, Document
from bedstone.services.docs.source.front_matter import FrontMatter
from bedstone.services.docs.source.listing import TEMPLATE_SUFFIXES, Listing, is_page, list_files
from bedstone.services.docs.source.manifest import InvalidManifest, Manifest, Manifests
from bedstone.services.docs.source.pages import UnreadableFile, parse_page
from bedstone.settings.own_files import OwnFiles

FORMAT = "5"  # version of chunking; a new one re-chunks every file
READING = "6"  # version of what is read beside the text; a new one reads every file again, and re-chunks what changed
PROBLEMS = "problems"  # attribute of a document: one problem per line
SETTLED_SECONDS = 2  # a younger file may change again without a new time stamp


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
    problems: Sequence[str] = ()  # what of the file is not used, and why

    def document(self) -> tuple[Document, list[Chunk]]:
        """Chunk the file."""
        title, chunks = chunk_blocks(
            self.path, self.text, self.blocks(self.text), self.strategy, title=self.title, facets=self.facets
        )
        labels = {f"facet:{key}": value for key, value in self.facets.items()}
        labels |= {PROBLEMS: "\n".join(self.problems)} if self.problems else {}
        labels |= {ABOUT: self.front.about} if self.front.about else {}
        return Document(self.path, title, self.digest, {"signature": self.signature, **labels}), chunks


class DocumentsFolder:
    """Reads the documents below a folder."""

    def __init__(self, root: Path, own_files: OwnFiles | None = None) -> None:
        """Read a folder without the files of the server itself."""
        if not root.is_dir():
            raise InvalidInput(f"Folder not found: {root}")
        self.root = root
        self._is_own = (own_files or OwnFiles()).entry_test()
        self.manifests = Manifests(root)

    def paths(self) -> list[str]:
        """List all documents in the order of their paths."""
        return [path for path in self.listing.files if is_page(path) and not _is_template(path)]

    def template_paths(self) -> list[str]:
        """List all prompt templates."""
        return [path for path in self.listing.files if _is_template(path)]

    def all_manifests(self) -> tuple[list[Manifest], list[str]]:
        """Return all valid manifests, even those that govern no file, and the errors of the others."""
        return self.manifests.read_all(self.listing.manifest_folders)

    def manifest_problem(self, path: str) -> str | None:
        """Return what is wrong with the manifest that governs a file: the file is chunked without it."""
        try:
            self.manifests.nearest(path)
        except InvalidManifest as error:
            return error.message
        return None

    def signature(self, path: str) -> str:
        """Return a hash of what the chunks depend on, without reading the file; empty if that is unknown."""
        try:
            status = os.stat(f"{self.root}/{path}")  # noqa: PTH116 - called for thousands of files
            strategy, facets = self._plan(path)
        except OSError:
            return ""
        if time.time() - status.st_mtime < SETTLED_SECONDS:
            return ""
        parts = (repr(READING), strategy_key(strategy), sorted(facets.items()), status.st_size, status.st_mtime_ns)
        return blake2b(f"({', '.join(map(str, parts))})".encode(), digest_size=16).hexdigest()

    def read(self, path: str) -> SourceFile:
        """Read one file, and determine how to chunk it."""
        signature = self.signature(path)
        try:
            data = (self.root / path).read_bytes()
        except OSError as error:
            raise UnreadableFile(f"{path}: {error.strerror}") from None
        page = parse_page(path, data)
        front = page.front
        strategy, facets = front.apply(*self._plan(path))
        depends_on = f"{FORMAT}\n{strategy_key(strategy)}\n{sorted(facets.items())}\n".encode() + data
        depends_on += f"\n{READING}\n{front.about}".encode() if front.about else b""
        digest = blake2b(depends_on, digest_size=16).hexdigest()
        return SourceFile(
            path=path,
            text=front.body,
            strategy=strategy,
            facets=facets,
            title=front.title,
            digest=digest,
            signature=signature,
            blocks=page.blocks,
            front=front,
            problems=page.problems,
        )

    def _plan(self, path: str) -> tuple[Strategy, dict[str, str]]:
        try:
            manifest = self.manifests.nearest(path)
        except InvalidManifest:
            manifest = None
        return manifest.plan(path) if manifest else (Strategy(), {})

    @cached_property
    def listing(self) -> Listing:
        """The files as of the first use, and what is not indexed."""
        return list_files(self.root, self.manifests, self._is_own)


def strategy_key(strategy: Strategy) -> str:
    """Return a strategy as part of a digest. Indexes on disk depend on the spelling: a change re-chunks every file."""
    sizes = f"max_chunk_size={strategy.max_chunk_size}, min_chunk_size={strategy.min_chunk_size}"
    return f"Strategy(chunk_by={strategy.chunk_by!r}, {sizes})"


def _is_template(path: str) -> bool:
    return path.endswith(TEMPLATE_SUFFIXES)
