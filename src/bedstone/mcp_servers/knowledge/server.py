"""`python -m bedstone.mcp_servers.knowledge.server`: the knowledge toolset alone, over stdio unless told otherwise."""

from bedstone.cli.main import serve_toolset

if __name__ == "__main__":
    serve_toolset("knowledge")
