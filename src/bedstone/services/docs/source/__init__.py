"""A folder of documentation as its author wrote it: files, manifests, front matter, prompts."""
