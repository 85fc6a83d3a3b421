"""Run the salesforce_knowledge server from a checkout: .venv/bin/python mcp_servers/salesforce_knowledge/server.py."""

import runpy

runpy.run_module("bedstone.mcp_servers.salesforce_knowledge.server", run_name="__main__")
