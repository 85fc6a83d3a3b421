"""`python -m bedstone.mcp_servers.salesforce_graph.server`: the toolset alone, over stdio by default."""

from bedstone.cli.main import serve_toolset

if __name__ == "__main__":
    serve_toolset("salesforce_graph")
