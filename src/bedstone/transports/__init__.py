"""Ways in, one per file."""
