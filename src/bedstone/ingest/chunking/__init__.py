"""Split text into chunks: by heading for documentation, by size for files."""
