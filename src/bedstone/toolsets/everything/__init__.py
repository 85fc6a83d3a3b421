"""The everything toolset: search, fetch and cite over every source."""
