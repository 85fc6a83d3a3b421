"""The toolset of the knowledge base."""
