"""The `bedstone` command, one file per group of commands."""
