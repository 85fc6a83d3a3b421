"""Segments of the vector index: passages that never change, in files mapped into memory, and a tail that grows."""
