"""Run the kb server from a checkout: .venv/bin/python mcp_servers/kb/server.py."""

import runpy

runpy.run_module("bedstone.mcp_servers.kb.server", run_name="__main__")
