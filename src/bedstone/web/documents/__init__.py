"""Documents: the list, uploads, and one document with its original beside its text."""
