"""The docs toolset as a server of its own."""
