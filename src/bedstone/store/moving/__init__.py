"""Moving a whole store from one engine to another: every row as it is, with its number."""
