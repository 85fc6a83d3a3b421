"""Docs corpora: folders of documentation, built into an index and searched."""
