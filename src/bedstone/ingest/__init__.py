"""Read files, and split their text into chunks."""
