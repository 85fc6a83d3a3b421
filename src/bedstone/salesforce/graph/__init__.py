"""An org's schema as a graph in memory: objects, fields, and what points to what."""
