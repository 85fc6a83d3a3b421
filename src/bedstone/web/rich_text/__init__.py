"""Text of others as safe rich text."""
