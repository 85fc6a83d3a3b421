"""The docs toolset: search first, read what was found."""

import logging
import re
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote

import anyio.from_thread
import anyio.lowlevel
from anyio import to_thread

from bedstone.errors import BedstoneError, InvalidInput, InvalidSetting, NotFound, UnknownPrompt, UnknownResource
from bedstone.services.docs.index_folder import METADATA, IndexFolder, united_taxonomy
from bedstone.toolkit import (
    Prompt,
    PromptArgument,
    PromptMessage,
    Reply,
    Resource,
    ResourceContents,
    ResourceTemplate,
    Text,
    Tool,
    Toolset,
    tool,
)
from bedstone.toolsets.docs.contract import (
    GET_DESCRIPTION,
    SEARCH_DESCRIPTION,
    GetDoc,
    SearchDocs,
    SearchHint,
    SearchHit,
    SearchResult,
    search_arguments,
)

if TYPE_CHECKING:  # the engine is imported when it is first asked, not when the server starts
    from bedstone.records import StoredChunk
    from bedstone.search.index import Weights
    from bedstone.services.docs.corpus import DocHit, EmbedderFor
    from bedstone.services.docs.library import DocPage, DocsLibrary
    from bedstone.services.docs.watcher import DocsKeeper

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
CHUNK_ID = re.compile(r"[^#]+(#[^#]+)?")
TOOL_PREFIX = re.compile(r"[A-Za-z0-9_-]{1,52}")  # a tool's name has 64 characters at most
SCHEME = "docs:"
RESOURCE = f"{SCHEME}///"
MARKDOWN = "text/markdown"
FOLLOW_SECONDS = 1.0
REOPEN_SECONDS = 0.2
RETIREMENT_SECONDS = 60.0  # no search takes that long


class DocsToolset(Toolset):
    """Serves docs indexes, and newer ones as soon as they are published.

    `keepers` bring indexes up to date with their documents while the toolset is open.
    """

    label = "docs"
    title = "Documentation"
    server_name = "docs"

    def __init__(
        self,
        indexes: Sequence[Path],
        embedder_for: "EmbedderFor | None" = None,
        *,
        keepers: "Sequence[DocsKeeper]" = (),
        weights: "Weights | None" = None,
        tool_prefix: str | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(read_only=read_only)
        if tool_prefix is not None and not TOOL_PREFIX.fullmatch(tool_prefix):
            raise InvalidSetting("docs.tool_prefix takes letters, digits, _ and -, at most 52 of them.")
        self._indexes = {path.name: path for path in indexes}
        if len(self._indexes) < len(indexes):
            raise InvalidSetting("Two docs indexes have the same folder name, which is the name of their corpus.")
        self._embedder_for = embedder_for
        self._keepers = keepers
        self._weights = weights
        self._prefix = f"{tool_prefix}_" if tool_prefix else ""
        self._lock = threading.Lock()
        self._library: DocsLibrary | None = None
        self._metadata: Mapping[str, Mapping[str, Any]] = {}
        if not keepers:
            self._read_metadata()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[object]:
        """Keep indexes up to date and follow what is published, in threads: whoever stops us may be another task."""
        stop = threading.Event()
        for keeper in self._keepers:
            await to_thread.run_sync(keeper.start)
        self._read_metadata()
        token = anyio.lowlevel.current_token()
        threading.Thread(target=self._follow, args=(stop, token), name="docs-follow", daemon=True).start()
        try:
            yield self
        finally:
            stop.set()
            for keeper in self._keepers:
                keeper.stop()
            with self._lock:
                if self._library is not None:
                    self._library.close()
                    self._library = None

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """The two tools, with the corpora's facets and descriptions."""
        search, read = super().tools["search_docs"], super().tools["get_doc"]
        corpora = list(self._metadata.values())
        described = corpora[0].get("tool_descriptions", {}) if len(corpora) == 1 else {}
        subject = " and ".join(dict.fromkeys(metadata["corpus_description"] for metadata in corpora))
        search = replace(
            search,
            name=f"{self._prefix}search_docs",
            arguments=search_arguments(united_taxonomy(self._metadata)),
            description=described.get("search_docs", SEARCH_DESCRIPTION.format(subject)),
        )
        read = replace(read, name=f"{self._prefix}get_doc", description=described.get("get_doc", GET_DESCRIPTION))
        return {search.name: search, read.name: read}

    @tool("search_docs", SEARCH_DESCRIPTION, title="Search documentation")
    async def search(self, arguments: SearchDocs) -> SearchResult | Reply:
        """A page of hits, as JSON that people can read too."""
        filters = arguments.model_dump(exclude={"query", "limit", "cursor"}, exclude_none=True)
        page = await self.ask(
            lambda library: library.search(arguments.query, filters, arguments.limit, arguments.cursor)
        )
        result = _result(page)
        # Where words stand in a snippet is for programs.
        text = result.model_dump_json(indent=2, exclude={"hits": {"__all__": {"highlights"}}})
        return Reply(text, structured=result.model_dump(mode="json"))

    @tool("get_doc", GET_DESCRIPTION, title="Read documentation")
    async def read(self, arguments: GetDoc) -> str:
        """A chunk and its neighbours, each under a line that says where it stands."""
        chunk_id = arguments.chunk_id
        try:
            chunks, target, total = await self.ask(lambda library: library.read(chunk_id, arguments.context))
        except NotFound:
            if CHUNK_ID.fullmatch(chunk_id):  # a path may have a # in it, so it is asked first
                raise
            raise InvalidInput(
                f"Chunk ID '{chunk_id}' has invalid format. Expected {{filepath}} or {{filepath}}#{{heading-path}}."
            ) from None
        return "\n\n".join(_block(stored, index - target, total) for index, stored in enumerate(chunks))

    def render_error(self, error: BedstoneError) -> Reply:
        """Errors are sentences."""
        return Reply(error.message, is_error=True)

    def resources(self) -> Sequence[Resource]:
        """The files whose facet value is marked as a resource."""
        if not self._has_resources:
            return ()
        return [
            Resource(
                f"{RESOURCE}{quote(document.id)}", document.id, document.title or None, MARKDOWN, _title(document.id)
            )
            for document in self._open_library().documents()
        ]

    def resource_templates(self) -> Sequence[ResourceTemplate]:
        """The family of their addresses."""
        if not self._has_resources:
            return ()
        return [ResourceTemplate(f"{RESOURCE}{{+path}}", "Documentation file", "A whole file by its path", MARKDOWN)]

    async def read_resource(self, uri: str) -> ResourceContents:
        """A whole file."""
        if not uri.startswith(SCHEME):
            raise UnknownResource(f"Invalid URI scheme: {uri.partition(':')[0]}:. Expected '{SCHEME}'")
        path = unquote(uri.removeprefix(RESOURCE))
        text = await self.ask(lambda library: library.text(path)) if self._has_resources else None
        if text is None:
            raise UnknownResource(f"Resource not found: {uri}")
        return ResourceContents(uri, text, MARKDOWN)

    def prompts(self) -> Sequence[Prompt]:
        """The prompt templates that lie beside the documents."""
        return [
            Prompt(
                name,
                template.description,
                [PromptArgument(item.name, item.description, item.required, item.title) for item in template.arguments],
                template.title,
            )
            for name, template in self._templates.items()
        ]

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> Sequence[PromptMessage]:
        """A template, filled in."""
        template = self._templates.get(name)
        if template is None:
            raise UnknownPrompt(f"Prompt '{name}' not found")
        for argument in template.arguments:
            if argument.required and argument.name not in arguments:
                raise InvalidInput(f"Missing required prompt argument '{argument.name}'")
        return [
            PromptMessage("assistant" if role == "assistant" else "user", Text(text))
            for role, text in template.filled(arguments)
        ]

    @cached_property
    def _templates(self) -> Mapping[str, Any]:
        if not any(metadata.get("prompts") for metadata in self._metadata.values()):
            return {}
        from bedstone.services.docs.library import templates  # noqa: PLC0415

        return templates(self._metadata)

    @property
    def _has_resources(self) -> bool:
        entries = (entry for metadata in self._metadata.values() for entry in metadata["taxonomy"].values())
        return any("properties" in entry for entry in entries)

    def _read_metadata(self, library: "DocsLibrary | None" = None) -> None:
        """What an open library was made from, or what is published."""
        if library is not None:
            self._metadata = library.metadata
        else:
            self._metadata = {name: IndexFolder(path).existing_metadata for name, path in self._indexes.items()}
        told = dict.fromkeys(metadata.get("mcpServerInstructions") for metadata in self._metadata.values())
        self.instructions = "\n".join(text for text in told if text) or None
        for name in ("tools", "_templates"):
            vars(self).pop(name, None)

    async def ask(self, question: "Callable[[DocsLibrary], Answer]") -> "Answer":
        """Ask the open corpora, in a thread unless that would take longer than the answer."""
        library = self._library
        if library is not None and library.is_quick:
            return question(library)
        return await to_thread.run_sync(lambda: question(self._open_library()))

    def _open_library(self) -> "DocsLibrary":
        with self._lock:
            if self._library is None:
                try:
                    self._library = self._new_library()
                except (OSError, ValueError, sqlite3.Error):  # replaced while it was opened: there is a newer one
                    time.sleep(REOPEN_SECONDS)
                    self._library = self._new_library()
            return self._library

    def _new_library(self) -> "DocsLibrary":
        from bedstone.services.docs.corpus import DocsCorpus  # noqa: PLC0415
        from bedstone.services.docs.library import DocsLibrary  # noqa: PLC0415

        return DocsLibrary(
            {name: DocsCorpus(path, self._embedder_for, weights=self._weights) for name, path in self._indexes.items()}
        )

    def _follow(self, stop: threading.Event, token: "anyio.lowlevel.EventLoopToken") -> None:
        """Open what is published meanwhile, and tell clients if the tools are others now."""
        seen: list[int] = []
        retired: list[tuple[float, DocsLibrary]] = []
        while not stop.wait(FOLLOW_SECONDS):
            try:
                now = [(path / METADATA).stat().st_mtime_ns for path in self._indexes.values()]
                if now != seen and self._generations() != self._served():
                    self._swap(retired, token)
                seen = now
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look decides
                # A build may be replacing files this very moment.
                logger.warning("The docs index cannot be opened: %s", error, extra={"action": "docs_not_opened"})
            while retired and retired[0][0] < time.monotonic() - RETIREMENT_SECONDS:
                retired.pop(0)[1].close()

    def _swap(self, retired: "list[tuple[float, DocsLibrary]]", token: "anyio.lowlevel.EventLoopToken") -> None:
        before = _visible(self.tools)
        fresh = self._new_library() if self._library is not None else None
        with self._lock:
            if self._library is not None:
                retired.append((time.monotonic(), self._library))
            self._library = fresh
        self._read_metadata(fresh)
        logger.info("Serving a newer docs index", extra={"action": "docs_swapped"})
        if _visible(self.tools) != before:
            anyio.from_thread.run(self.tools_changed, token=token)

    def _generations(self) -> list[str]:
        return [IndexFolder(path).existing_metadata["index"]["generation"] for path in self._indexes.values()]

    def _served(self) -> list[str]:
        return [metadata["index"]["generation"] for metadata in self._metadata.values()]


def _visible(tools: Mapping[str, Tool]) -> list[tuple[str, str, Any]]:
    """What clients see of tools."""
    return [(item.name, item.description, item.input_schema) for item in tools.values()]


def _title(path: str) -> str:
    """A path in sentence case: `guides/web-hooks.md` is Guides / Web hooks."""
    parts = path.rpartition(".")[0].split("/") if "." in path else path.split("/")
    words = (re.sub(r"[-_]+", " ", part).strip() for part in parts)
    return " / ".join(word[:1].upper() + word[1:] for word in words)


def _block(stored: "StoredChunk", distance: int, total: int) -> str:
    role = "Target" if distance == 0 else f"Context: {distance:+d}"
    return f"--- Chunk: {stored.chunk.id} (Chunk {stored.position + 1} of {total}) ({role}) ---\n{stored.chunk.text}"


def _result(page: "DocPage") -> SearchResult:
    hint = page.hint and SearchHint(
        message=page.hint.message,
        suggested_filters={key: list(values) for key, values in page.hint.suggested_filters.items()},
    )
    return SearchResult(hits=[_hit(hit) for hit in page.hits], next_cursor=page.next_cursor, hint=hint)


def _hit(hit: "DocHit") -> SearchHit:
    chunk = hit.stored.chunk
    return SearchHit(
        chunk_id=chunk.id,
        score=hit.score,
        heading=chunk.heading,
        breadcrumb=" > ".join(chunk.breadcrumb),
        snippet=hit.snippet.text,
        filepath=hit.stored.document,
        metadata=dict(chunk.facets),
        highlights=list(hit.snippet.highlights),
    )
