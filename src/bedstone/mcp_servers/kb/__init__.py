"""The kb toolset as a server of its own."""
