"""A small package that extends Bedstone: a toolset, an embedder, a file format, a search index and a store."""
