"""What we know: corpora and how well they are searched."""
