"""Run the salesforce_graph server from a checkout: .venv/bin/python mcp_servers/salesforce_graph/server.py."""

import runpy

runpy.run_module("bedstone.mcp_servers.salesforce_graph.server", run_name="__main__")
