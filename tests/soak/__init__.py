"""What takes too long for every run."""
