"""MCP servers built from toolsets."""

from bedstone.server.mcp_server import BedstoneServer

__all__ = ["BedstoneServer"]
