"""One text file, served whole: get_kb_info and get_kb_content."""
