"""Run the docs server from a checkout: .venv/bin/python mcp_servers/docs/server.py."""

import runpy

runpy.run_module("bedstone.mcp_servers.docs.server", run_name="__main__")
