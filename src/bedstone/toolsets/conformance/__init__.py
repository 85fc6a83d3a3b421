"""Fixtures for the official MCP conformance suite; never on by default."""
