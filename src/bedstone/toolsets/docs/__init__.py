"""Documentation search: search_docs and get_doc."""
