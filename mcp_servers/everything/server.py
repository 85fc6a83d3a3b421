"""Run the everything server from a checkout: .venv/bin/python mcp_servers/everything/server.py."""

import runpy

runpy.run_module("bedstone.mcp_servers.everything.server", run_name="__main__")
