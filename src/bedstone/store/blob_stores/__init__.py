"""Places for files, each behind the protocol in `blobs.py`."""
