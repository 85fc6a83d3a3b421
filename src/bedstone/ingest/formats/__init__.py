"""Formats of documentation beside Markdown, one per file: each becomes Markdown, or blocks of text."""
