"""The everything toolset as a server of its own."""
