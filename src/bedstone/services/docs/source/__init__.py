"""Read a documentation folder: files, manifests, front matter, prompt templates."""
