"""What the product does, without MCP: one service for each domain."""
