"""The knowledge file: read, searched, and as it is stored."""
