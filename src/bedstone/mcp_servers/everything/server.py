"""`python -m bedstone.mcp_servers.everything.server`: the everything toolset alone, by default over stdio."""

from bedstone.cli.main import serve_toolset

if __name__ == "__main__":
    serve_toolset("everything")
