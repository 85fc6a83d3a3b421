"""The docs toolset: search first, read what was found."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from bedstone.errors import BedstoneError, InvalidInput, NotFound
from bedstone.library.docs_index import IndexFolder
from bedstone.toolkit import Reply, Tool, Toolset, tool
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
    from bedstone.documents import StoredChunk
    from bedstone.library.docs_corpus import DocHit, DocPage, DocsCorpus
    from bedstone.search.embedder import Embedder

CHUNK_ID = re.compile(r"[^#]+(#[^#]+)?")


class DocsToolset(Toolset):
    """Serves one docs index."""

    label = "docs"
    title = "Documentation"
    server_name = "docs"

    def __init__(self, index: Path, embedder: "Callable[[], Embedder | None]", *, read_only: bool = False) -> None:
        super().__init__(read_only=read_only)
        self._index = index
        self._embedder = embedder
        metadata = IndexFolder(index).metadata
        if metadata is None:
            raise NotFound(f"There is no docs index in {index}. Make one with: bedstone docs build DIR --out {index}")
        self._metadata: Mapping[str, Any] = metadata
        self.instructions = metadata.get("mcpServerInstructions")

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """The two tools, with the corpus's facets and descriptions."""
        tools = dict(super().tools)
        described = self._metadata.get("tool_descriptions", {})
        search = SEARCH_DESCRIPTION.format(self._metadata["corpus_description"])
        arguments = search_arguments(self._metadata["taxonomy"])
        tools["search_docs"] = replace(
            tools["search_docs"], arguments=arguments, description=described.get("search_docs", search)
        )
        tools["get_doc"] = replace(tools["get_doc"], description=described.get("get_doc", GET_DESCRIPTION))
        return tools

    @tool("search_docs", SEARCH_DESCRIPTION, title="Search documentation")
    async def search(self, arguments: SearchDocs) -> SearchResult | Reply:
        """A page of hits, as JSON that people can read too."""
        filters = arguments.model_dump(exclude={"query", "limit", "cursor"}, exclude_none=True)
        page = await to_thread.run_sync(
            lambda: self._corpus.search(arguments.query, filters, arguments.limit, arguments.cursor)
        )
        result = _result(page)
        return Reply(result.model_dump_json(indent=2), structured=result.model_dump(mode="json"))

    @tool("get_doc", GET_DESCRIPTION, title="Read documentation")
    async def read(self, arguments: GetDoc) -> str:
        """A chunk and its neighbours, each under a line that says where it stands."""
        chunk_id = arguments.chunk_id
        if not CHUNK_ID.fullmatch(chunk_id):
            raise InvalidInput(
                f"Chunk ID '{chunk_id}' has invalid format. Expected {{filepath}} or {{filepath}}#{{heading-path}}."
            )
        chunks, target, total = await to_thread.run_sync(lambda: self._corpus.read(chunk_id, arguments.context))
        return "\n\n".join(_block(stored, index - target, total) for index, stored in enumerate(chunks))

    def render_error(self, error: BedstoneError) -> Reply:
        """Errors are sentences."""
        return Reply(error.message, is_error=True)

    @cached_property
    def _corpus(self) -> "DocsCorpus":
        from bedstone.library.docs_corpus import DocsCorpus  # noqa: PLC0415

        return DocsCorpus(self._index, self._embedder())


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
