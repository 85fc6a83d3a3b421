"""What the product does, without MCP: one service per domain."""
