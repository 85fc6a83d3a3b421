"""Run the knowledge server from a checkout: .venv/bin/python mcp_servers/knowledge/server.py."""

import runpy

runpy.run_module("bedstone.mcp_servers.knowledge.server", run_name="__main__")
