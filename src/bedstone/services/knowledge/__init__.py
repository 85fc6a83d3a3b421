"""The knowledge base: files that users add, as documents, pages and chunks."""
