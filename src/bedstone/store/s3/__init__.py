"""The parts of the place for files in a bucket."""
