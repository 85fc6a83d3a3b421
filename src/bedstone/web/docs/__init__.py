"""Documentation: corpora, folders and files, as people read them and as agents get them."""
