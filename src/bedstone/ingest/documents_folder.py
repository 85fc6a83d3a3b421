"""A folder of documents: which files there are, and each as a document with its chunks."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath

from bedstone.documents import Chunk, Document
from bedstone.errors import InvalidInput
from bedstone.ingest.chunking import Strategy, chunk_markdown
from bedstone.ingest.front_matter import split_front_matter
from bedstone.ingest.manifest import InvalidManifest, Manifests

SUFFIXES = (".md", ".mdx")
TEMPLATES = (".template.md", ".template.yaml")
FORMAT = "1"  # of chunking: another one means that every file is cut again


class UnreadableFile(InvalidInput):
    """A file is not text, or is gone."""

    code = "unreadable_file"


@dataclass(frozen=True)
class SourceFile:
    """A file that was read, and the digest of everything its chunks depend on."""

    path: PurePosixPath
    text: str
    strategy: Strategy
    facets: dict[str, str]
    title: str
    digest: str

    def document(self) -> tuple[Document, list[Chunk]]:
        """Cut it."""
        path = str(self.path)
        title, chunks = chunk_markdown(path, self.text, self.strategy, title=self.title, facets=self.facets)
        return Document(path, title, self.digest), chunks


class DocumentsFolder:
    """Reads the documents below a folder."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InvalidInput(f"There is no folder {root}")
        self._root = root
        self.manifests = Manifests(root)

    def paths(self) -> list[PurePosixPath]:
        """Every document, in the order of their paths; links are followed, loops are not."""
        return sorted(self._walk(self._root, PurePosixPath(), frozenset()))

    def read(self, path: PurePosixPath) -> SourceFile:
        """Read one file and work out how it is to be cut."""
        try:
            data = (self._root / path).read_bytes()
            source = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UnreadableFile(f"{path}: not a text in UTF-8 (byte {error.start})") from None
        except OSError as error:
            raise UnreadableFile(f"{path}: {error.strerror}") from None
        if "\0" in source:
            raise UnreadableFile(f"{path}: not a text, but binary data")
        return self._plan(path, source)

    def _plan(self, path: PurePosixPath, source: str) -> SourceFile:
        manifest = self.manifests.nearest(path)
        strategy, facets = manifest.plan(path) if manifest else (Strategy(), {})
        try:
            front = split_front_matter(source)
            strategy, facets = front.apply(strategy, facets)
        except InvalidManifest as error:
            raise InvalidManifest(f"{path}: {error.message}") from None
        depends_on = f"{FORMAT}\n{strategy}\n{sorted(facets.items())}\n{source}"
        digest = blake2b(depends_on.encode(), digest_size=16).hexdigest()
        return SourceFile(path, front.body, strategy, facets, front.title, digest)

    def _walk(self, folder: Path, inside: PurePosixPath, above: frozenset[str]) -> Iterator[PurePosixPath]:
        real = os.path.realpath(folder)
        if real in above:
            return
        try:
            entries = list(os.scandir(folder))
        except OSError:
            return
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path = inside / entry.name
            if entry.is_dir():
                yield from self._walk(folder / entry.name, path, above | {real})
            elif entry.name.endswith(SUFFIXES) and not entry.name.endswith(TEMPLATES):
                yield path
