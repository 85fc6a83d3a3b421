"""Fixtures that the official MCP conformance suite looks for; never on by default."""
