"""A knowledge base: files people add, whole, in pages and in passages."""
