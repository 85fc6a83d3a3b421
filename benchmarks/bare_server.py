"""An echo server on the bare SDK, to compare with: over stdio, or over HTTP if a port is given."""

import json
import sys

import anyio
import mcp_types as wire
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

PAYLOAD = {"status": "available", "info": {"fileSizeBytes": 3896, "contentLength": 3896, "description": "x" * 90}}
SCHEMA = {"type": "object", "properties": {}}


async def list_tools(ctx, params):  # type: ignore[no-untyped-def]
    return wire.ListToolsResult(tools=[wire.Tool(name="get_kb_info", description="Echo", input_schema=SCHEMA)])


async def call_tool(ctx, params):  # type: ignore[no-untyped-def]
    text = wire.TextContent(type="text", text=json.dumps(PAYLOAD))
    return wire.CallToolResult(content=[text], structured_content=PAYLOAD)


server = Server("bare", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


async def over_stdio() -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if len(sys.argv) > 1:
    import uvicorn

    uvicorn.run(server.streamable_http_app(), port=int(sys.argv[1]), log_level="error")
else:
    anyio.run(over_stdio)
