"""The knowledge toolset as a server of its own."""
