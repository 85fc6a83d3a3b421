"""One search over every source, and the texts that its hits name."""
