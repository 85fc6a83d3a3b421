"""The docs toolset: search documentation, read chunks."""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import anyio.from_thread
import anyio.lowlevel

from bedstone.errors import BedstoneError, InvalidInput, InvalidSetting, NotFound, UnknownPrompt, UnknownResource
from bedstone.services.docs.metadata import CorpusMetadata, merge_prompts, merge_taxonomies
from bedstone.services.docs.service import DocsService
from bedstone.services.service import Handle
from bedstone.toolkit import (
    Citation,
    Links,
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
    ToolsetContext,
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

if TYPE_CHECKING:  # the engine is imported on first use, not when a server starts
    from bedstone.records import StoredChunk
    from bedstone.search.hits import Hit
    from bedstone.services.docs.library import DocPage, DocsLibrary
    from bedstone.services.docs.source.prompt_templates import PromptTemplate

CHUNK_ID = re.compile(r"[^#]+(#[^#]+)?")
TOOL_PREFIX = re.compile(r"[A-Za-z0-9_-]{1,52}")  # the name of a tool has at most 64 characters
SCHEME = "docs:"
URI_PREFIX = f"{SCHEME}///"
MARKDOWN = "text/markdown"
MAX_LISTED_VARIANTS = 10  # of one hit
DELIMITER = re.compile(r"--- Chunk:.*")


class DocsToolset(Toolset):
    """Serves docs corpora, which determine the names and arguments of the tools."""

    label = "docs"
    title = "Documentation"
    server_name = "docs"
    prompts_can_change = True

    def __init__(
        self,
        docs: Handle[DocsService],
        *,
        tool_prefix: str | None = None,
        links: Links | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(docs, read_only=read_only)
        if tool_prefix is not None and not TOOL_PREFIX.fullmatch(tool_prefix):
            raise InvalidSetting("Invalid docs.tool_prefix. Use up to 52 letters, digits, _ and -.")
        self._docs = docs
        self._links = links or Links()
        self._prefix = f"{tool_prefix}_" if tool_prefix else ""
        self._refresh()

    @classmethod
    def build(cls, context: ToolsetContext) -> "DocsToolset":
        """Serve the configured corpora."""
        assert context.service is not None
        prefix = context.settings.docs.tool_prefix
        return cls(context.service, tool_prefix=prefix, links=context.links, read_only=context.read_only)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[object]:  # prose: ok - public API
        """Wait for an index to serve, and notify clients when a new one changes the tools."""
        async with super().opened():
            service = await self._docs.open()
            self._refresh()
            token = anyio.lowlevel.current_token()
            service.on_published = lambda: anyio.from_thread.run(self._apply_published, token=token)
            yield self

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """Return the two tools, with the facets and descriptions of the corpora."""
        search, read = super().tools["search_docs"], super().tools["get_doc"]
        corpora = list(self._metadata.values())
        descriptions = corpora[0].tool_descriptions if len(corpora) == 1 else {}
        subject = " and ".join(dict.fromkeys(metadata.description for metadata in corpora))
        search = replace(
            search,
            name=f"{self._prefix}search_docs",
            arguments=search_arguments(merge_taxonomies(self._metadata)),
            description=descriptions.get("search_docs", SEARCH_DESCRIPTION.format(subject)),
        )
        read = replace(read, name=f"{self._prefix}get_doc", description=descriptions.get("get_doc", GET_DESCRIPTION))
        return {search.name: search, read.name: read}

    @tool("search_docs", SEARCH_DESCRIPTION, title="Search documentation")
    async def search(self, arguments: SearchDocs) -> SearchResult | Reply:
        """Return a page of hits as indented JSON."""
        filters = arguments.model_dump(exclude={"query", "limit", "cursor"}, exclude_none=True)

        def search(docs: DocsService) -> SearchResult:
            page = docs.library.search(arguments.query, filters, arguments.limit, arguments.cursor)
            return _to_result(page, lambda hit: self._cite(docs.library, hit, arguments.query))

        result = await self._docs.run(search)
        # Positions in a snippet are for programs, so the text leaves them out.
        text = result.model_dump_json(indent=2, exclude={"hits": {"__all__": {"highlights"}}})
        return Reply(text, structured=result.model_dump(mode="json"))

    def _cite(self, library: "DocsLibrary", hit: "Hit", query: str) -> Citation:
        from bedstone.services.docs.finding import page_address  # noqa: PLC0415 - with the engine

        head = hit.head
        address = page_address(library, head.id, head.document_id, query) if self._links.base else ""
        return Citation.of(self._links, f"{SCHEME}{head.id}", address, head.span)

    @tool("get_doc", GET_DESCRIPTION, title="Read documentation", long=True)
    async def read(self, arguments: GetDoc) -> str:
        """Return a chunk and its neighbours, each below a header line with its position."""
        chunk_id = arguments.chunk_id
        try:
            chunks, target, total = await self._docs.run(lambda docs: docs.library.read(chunk_id, arguments.context))
        except NotFound:
            if CHUNK_ID.fullmatch(chunk_id):  # checked after the search, because a path may contain #
                raise
            raise InvalidInput(
                f"Chunk ID '{chunk_id}' has invalid format. Expected {{filepath}} or {{filepath}}#{{heading-path}}."
            ) from None
        return "\n\n".join(_format_chunk(stored, index - target, total) for index, stored in enumerate(chunks))

    def render_error(self, error: BedstoneError) -> Reply:
        """Render an error as its message."""
        return Reply(error.message, is_error=True)

    async def resources(self) -> Sequence[Resource]:
        """List the files whose facet value is marked as a resource."""
        if not self._has_resources:
            return ()
        return [
            Resource(
                f"{URI_PREFIX}{quote(document.id)}", document.id, document.title or None, MARKDOWN, _title(document.id)
            )
            for document in await self._docs.run(lambda docs: docs.library.documents())
        ]

    def resource_templates(self) -> Sequence[ResourceTemplate]:
        """Return the URI template of the files."""
        if not self._has_resources:
            return ()
        return [ResourceTemplate(f"{URI_PREFIX}{{+path}}", "Documentation file", "A whole file by its path", MARKDOWN)]

    async def read_resource(self, uri: str) -> ResourceContents:
        """Return the text of a file."""
        if not uri.startswith(SCHEME):
            raise UnknownResource(f"Invalid URI scheme: {uri.partition(':')[0]}:. Expected '{SCHEME}'")
        path = unquote(uri.removeprefix(URI_PREFIX))
        text = await self._docs.run(lambda docs: docs.library.text(path)) if self._has_resources else None
        if text is None:
            raise UnknownResource(f"Resource not found: {uri}")
        return ResourceContents(uri, text, MARKDOWN)

    def prompts(self) -> Sequence[Prompt]:
        """List the prompt templates of the corpora."""
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
        """Return the messages of a prompt template with its arguments filled in."""
        template = self._templates.get(name)
        if template is None:
            raise UnknownPrompt(f"Prompt '{name}' not found")
        for argument in template.arguments:
            if argument.required and argument.name not in arguments:
                raise InvalidInput(f"Missing required prompt argument '{argument.name}'")
        return [
            PromptMessage("assistant" if role == "assistant" else "user", Text(text))
            for role, text in template.fill(arguments)
        ]

    @property
    def _has_resources(self) -> bool:
        facets = (facet for metadata in self._metadata.values() for facet in metadata.taxonomy.values())
        return any(facet.resource_values for facet in facets)

    @property
    def _metadata(self) -> Mapping[str, CorpusMetadata]:
        return self._docs.get().metadata

    def _refresh(self) -> None:
        """Read instructions, tools and prompts from the served corpora again."""
        texts = dict.fromkeys(metadata.instructions for metadata in self._metadata.values())
        self.instructions = "\n".join(text for text in texts if text) or None
        self._templates: Mapping[str, PromptTemplate] = merge_prompts(self._metadata)
        vars(self).pop("tools", None)

    async def _apply_published(self) -> None:
        tools, templates = _visible(self.tools), self._templates
        self._refresh()
        if _visible(self.tools) != tools:
            await self.tools_changed()
        if self._templates != templates:
            await self.prompts_changed()


def _visible(tools: Mapping[str, Tool]) -> list[tuple[str, str, Any]]:
    """Return the parts of tools that clients see."""
    return [(item.name, item.description, item.input_schema) for item in tools.values()]


def _title(path: str) -> str:
    """Return a path as a title: `guides/web-hooks.md` becomes Guides / Web hooks."""
    parts = path.rpartition(".")[0].split("/") if "." in path else path.split("/")
    words = (re.sub(r"[-_]+", " ", part).strip() for part in parts)
    return " / ".join(word[:1].upper() + word[1:] for word in words)


def _format_chunk(stored: "StoredChunk", distance: int, total: int) -> str:
    role = "Target" if distance == 0 else f"Context: {distance:+d}"
    text = DELIMITER.sub(_escape_delimiter, stored.text)
    return f"--- Chunk: {stored.head.id} (Chunk {stored.head.position + 1} of {total}) ({role}) ---\n{text}"


def _escape_delimiter(found: re.Match[str]) -> str:
    """Escape a delimiter in the text of a chunk as Markdown does, so that only ours are delimiters."""
    return found[0].replace("--- Chunk:", "--- Chunk\\:").replace("(Target)", "(Target\\)")


def _to_result(page: "DocPage", cite: "Callable[[Hit], Citation]") -> SearchResult:
    hint = page.hint and SearchHint(
        message=page.hint.message,
        suggested_filters={key: list(values) for key, values in page.hint.suggested_filters.items()},
    )
    hits = [_to_hit(hit, cite(hit)) for hit in page.hits]
    return SearchResult(hits=hits, next_cursor=page.next_cursor, hint=hint, notice=page.notice)


def _to_hit(hit: "Hit", citation: Citation) -> SearchHit:
    chunk = hit.head
    return SearchHit(
        chunk_id=chunk.id,
        score=hit.score,
        heading=chunk.heading,
        breadcrumb=" > ".join(chunk.breadcrumb),
        snippet=hit.snippet.text,
        filepath=chunk.document_id,
        metadata=dict(chunk.facets),
        highlights=list(hit.snippet.highlights),
        citation=citation,
        variants=list(hit.variants[:MAX_LISTED_VARIANTS]) or None,
        more_variants=max(0, len(hit.variants) - MAX_LISTED_VARIANTS) or None,
    )
