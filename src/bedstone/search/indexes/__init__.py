"""Derived indexes: words in tantivy, vectors in a matrix or a graph."""
