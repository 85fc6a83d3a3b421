"""Toolsets to MCP servers."""

from bedstone.server.mcp_server import BedstoneServer

__all__ = ["BedstoneServer"]
