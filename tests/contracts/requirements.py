"""What the contracts require, sentence by sentence, each under an id that some test proves."""

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])

REQUIREMENTS = {
    # The MCP surface every toolset shares (knowledge contract "MCP Protocol Details", graph contract "Endpoints").
    "mcp.tools.same-everywhere": "Every transport lists the same tools and gives the same answers",
    "mcp.version.contract": "2025-06-18 is negotiated exactly",
    "mcp.version.all": "2024-11-05 to 2025-11-25 are negotiated by handshake; 2026-07-28 needs none",
    "mcp.capabilities": "tools.listChanged is true, prompts and resources false, subscribe false",
    "mcp.error.unknown-tool": "An unknown tool is -32602",
    "mcp.error.unknown-method": "An unknown method is -32601",
    "mcp.error.parse": "Text that is not JSON is -32700",
    "mcp.error.invalid-request": "JSON that is no request, or a batch, is -32600",
    "mcp.error.internal": "An exception is -32603 and its text stays inside",
    "mcp.error.unknown-resource": "An unknown resource is -32002 by handshake and on plain endpoints, -32602 in 2026",
    "mcp.plain.initialize": "POST /mcp/initialize answers with capabilities even to empty params",
    "mcp.plain.resources-list": "POST /mcp/resources/list takes cursor null and answers nextCursor null",
    "mcp.plain.templates": "POST /mcp/resources/templates/list lists templates",
    "mcp.plain.resources-read": "POST /mcp/resources/read reads one resource",
    "mcp.bare.tools-call": "POST /mcp takes tools/call without a handshake and answers JSON",
    "mcp.websocket": "ws://host/mcp carries the same JSON-RPC messages",
    "mcp.progress": "Long calls report progress on the caller's token",
    "mcp.cancel.request": "notifications/cancelled stops a running call",
    "mcp.cancel.task": "tools/cancel stops a background task, as request and as notification; unknown ids are -32602",
    "mcp.list-changed": "Clients of both eras are told when the tools change",
    # docs
    "docs.search.schema": "search_docs takes query, limit, cursor and one optional enum per facet, and nothing else",
    "docs.search.answer": "hits with every printed field, next_cursor, hint; JSON in one text block",
    "docs.search.meaning": "Full text and vectors together",
    "docs.search.filters": "Facets filter; a language alone also lets guides in",
    "docs.search.collapse": "Variants of one page in several languages stand once",
    "docs.search.cursor": "Opaque cursors page through the results; null on the last page",
    "docs.search.cursor-invalid": "A cursor that is invalid, malformed or of another query is an error",
    "docs.search.errors": "Wrong arguments are told in words",
    "docs.search.hint": "Empty results come with a message and filters to try",
    "docs.search.hint.meaning": "Hints come with vectors on too, and name words spelt almost alike",
    "docs.search.cursor-stale": "A cursor from before the index changed is refused in words",
    "docs.search.names": "A prefix before tool names; descriptions and instructions from the build",
    "docs.search.corpora": "Several corpora: ids begin with their names, a facet chooses among them",
    "docs.resources": "Files of marked facet values are resources; others and other schemes are refused",
    "docs.prompts": "Templates beside the documents are prompts",
    "docs.swap": "A newer index is served without a restart, and clients are told when the tools change",
    "docs.watch": "A folder of documents is served, and followed as it changes",
    "docs.get.schema": "get_doc takes chunk_id and context, and nothing else",
    "docs.get.answer": "A chunk and its context under delimiters with positions",
    "docs.get.errors": "Unknown and malformed ids are told in words",
    "docs.get.nearest": "A miss lists the nearest ids; a bare path lists its chunks",
    "docs.serve": "An index is built and served from the command line",
    "docs.build.incremental": "A build reads what changed; bad files are named and the rest is built",
    # knowledge
    "knowledge.tools": "Seven tools with the printed arguments, defaults and limits",
    "knowledge.add.async": "A file is queued: task id, message, estimate",
    "knowledge.add.sync": "A file is read at once: document id, chunks, method, time; progress on the caller's token",
    "knowledge.add.errors": "Unsupported, too large, absent and missing files in the contract's words",
    "knowledge.search.answer": "Passages with document, chunk, file, text, score and metadata; time and count",
    "knowledge.search.filters": "Filters by format and date, and a least relevance",
    "knowledge.search.empty": "Nothing found is an answer with a message; an empty base is an error",
    "knowledge.remove": "Unknown ids first, then confirmation, then removal",
    "knowledge.show": "Documents by page and order; an empty base says so",
    "knowledge.clear": "Only with confirm and the exact phrase",
    "knowledge.status": "Figures, health as probed, configuration",
    "knowledge.task-status": "Queued, running, completed, failed and cancelled tasks",
    "knowledge.cancel": "tools/cancel stops a task and removes what it did",
    "knowledge.get": "A document's text by pages, a passage among its neighbours",
    "knowledge.contexts": "Named collections: create, list, show, delete; on add, search and show",
    "knowledge.progress": "On the caller's token while it waits, under the task's id afterwards",
    "knowledge.tasks-extension": "A client that knows tasks gets one, and asks about it",
    "knowledge.errors": "Missing and wrong arguments by name",
    "knowledge.durable": "Documents and tasks outlive the process",
    "knowledge.reach": "Other machines are served only with named folders",
    # kb
    "kb.tools": "Exactly get_kb_info and get_kb_content, both without input",
    "kb.info.available": "A readable file: size, length, last modification, status available, description",
    "kb.info.empty": "A readable empty file is available",
    "kb.info.unavailable": "A missing or unreadable file: status unavailable with minimal fields, no crash",
    "kb.content.ok": "A readable file: status ok, full content, correct contentLength",
    "kb.content.empty": "An empty file: status empty, contentLength 0, content ''",
    "kb.content.error": "Whatever prevents reading: status error with a message and nothing else",
    "kb.content.unmodified": "The text comes back unmodified; lengths count characters",
    "kb.content.large": "10 MB are returned whole",
    "kb.edge.not-configured": "No file configured: the server runs and says so",
    "kb.edge.not-utf8": "A file that is not UTF-8 takes the error path",
    "kb.edge.io-error": "A read that fails takes the error path",
    "kb.reload": "A changed or vanished file is noticed; reload = never serves the text of the start",
    "kb.arguments": "Arguments the tools do not take are refused in the contract's error shape",
    "kb.stdio": "stdio transport, handshake and discovery work with a standard client",
    "kb.startup": "A missing file never stops the server; the log says which file was used and whether it loaded",
}


def proves(*requirements: str) -> Callable[[Test], Test]:
    """Say which requirements a test proves."""
    unknown = set(requirements) - set(REQUIREMENTS)
    assert not unknown, f"no such requirement: {unknown}"
    return lambda test: test
