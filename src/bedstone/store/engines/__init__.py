"""Store engines, one per file."""
