"""Articles: the list, and one article."""
